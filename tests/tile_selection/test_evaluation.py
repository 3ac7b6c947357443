"""Tilings are worth what becomes of their schedules once these are justified."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

import pytest

from spmilp.checker.check import check
from spmilp.frontend.graph import Network
from spmilp.machine.read import MachineFile
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.justify.shortening import JustifiedPlan, OpenSchedule
from spmilp.solvers.schedule.portfolio import least_value
from spmilp.source import load
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.evaluation import Evaluation
from spmilp.tile_selection.first_choice import NetworkOnMachine, first_choice
from spmilp.tile_selection.pieces import PieceCounts
from spmilp.tile_selection.settings import TileOptions, Tiles
from spmilp.tile_selection.tiled_problem import TiledProblem

MODEL = Path(__file__).parents[2] / "models" / "resnet8_int8.onnx"


@pytest.fixture(scope="module")
def loaded() -> tuple[Network, MachineFile]:
    return load(MODEL, "xdna1")


def test_what_was_said_is_the_makespan_of_a_plan_that_is_kept(
    loaded: tuple[Network, MachineFile],
) -> None:
    said: list[int] = []
    limits = TileOptions(
        how=Tiles.SEARCH, problems=5, on_better=lambda value, _: said.append(value)
    )
    found = choose_tiles(NetworkOnMachine.of(*loaded), limits)
    assert all(one > other for one, other in pairwise(said))
    assert found.value == said[-1]
    verdict = found.verdict()
    assert verdict is not None
    assert verdict.plan.claim.makespan == found.value
    scheduled = least_value(found.problem)
    assert scheduled is not None
    assert found.value <= 0.97 * scheduled


@pytest.mark.parametrize("machine", ["xdna1", "gap9"])
def test_a_value_is_what_a_plan_with_addresses_takes(machine: str) -> None:
    network, target = load(MODEL, machine)
    first = first_choice(network, target.machine)
    evaluated = Evaluation(
        PieceCounts(network, target.machine), TileOptions(how=Tiles.SEARCH), None, Clock(None)
    )
    worth = evaluated.value_of(first.lower(first.tilings))
    found = evaluated.finish()
    assert worth is not None
    assert found is not None
    assert found.schedule is not None
    assert found.value is not None
    assert found.value == pytest.approx(worth[0], rel=0.02)
    assert found.value <= found.schedule.score[0]
    plan = found.justified_plan() or found.plan()
    assert plan is not None
    assert plan.claim.makespan == found.value
    assert check(found.problem, plan) == ()


class Scripted(Evaluation):
    """What tilings are worth and what their plans take, in the order in which they are asked for.

    A plan may be an interrupt.
    """

    def script(self, values: Sequence[int], plans: Sequence[int | type[BaseException]]) -> None:
        self._values, self._plans = iter(values), iter(plans)

    def _is_worth_opening(self, tiled: TiledProblem) -> bool:
        return True

    def _once_opened(self, tiled: TiledProblem, clock: Clock) -> TiledProblem:
        return replace(tiled, opened=cast(OpenSchedule, Takes(next(self._values))))

    def _with_plan(self, opened: TiledProblem, clock: Clock) -> TiledProblem:
        cycles = next(self._plans)
        if not isinstance(cycles, int):
            raise cycles
        return replace(opened, justified=cast(JustifiedPlan, Takes(cycles)))


class Takes(NamedTuple):
    """A schedule that takes so many cycles."""

    makespan: int


@pytest.mark.parametrize(
    ("values", "plans", "answer"),
    [
        ([100, 90], [110, 109], 109),
        ([100, 90], [110, 111], 110),
        ([100, 90], [110, KeyboardInterrupt], 110),
        ([100, 115], [110], 110),
    ],
    ids=["keeps its promise", "promises too much", "interrupted", "promises less"],
)
def test_the_answer_is_the_shortest_plan_of_what_promised_to_be_the_best(
    loaded: tuple[Network, MachineFile],
    values: list[int],
    plans: list[int | type[BaseException]],
    answer: int,
) -> None:
    network, machine = loaded[0], loaded[1].machine
    said: list[int] = []
    limits = TileOptions(how=Tiles.SEARCH, on_better=lambda value, _: said.append(value))
    evaluated = Scripted(PieceCounts(network, machine), limits, None, Clock(1000.0))
    evaluated.script(values, plans)
    first = first_choice(network, machine)
    for _ in values:
        evaluated.value_of(first.lower(first.tilings))
    found = evaluated.finish()
    assert found is not None
    assert found.value == answer
    assert found.interrupted == (KeyboardInterrupt in plans)
    # First of all the plan of the schedule that has addresses from the beginning.
    assert said.pop(0) > max(values)
    assert said == ([110] if answer == 110 else [110, answer])
