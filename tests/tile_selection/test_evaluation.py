"""Tilings are worth what becomes of their schedules once these are justified."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from spmilp.checker.check import check
from spmilp.frontend.graph import Network
from spmilp.machine.read import MachineFile
from spmilp.pipeline import solve
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.list_scheduler.portfolio import Found
from spmilp.solvers.list_scheduler.schedules import least_value
from spmilp.solvers.partial_order.shortening import JustifiedPlan, OpenSchedule
from spmilp.source import load, lower_network
from spmilp.tile_selection import evaluation, tiled_problem
from spmilp.tile_selection.evaluation import SHARE_OF_FIRST, Evaluation
from spmilp.tile_selection.first_choice import FirstChoice, first_choice
from spmilp.tile_selection.open_values import OpenValues
from spmilp.tile_selection.pieces import PieceCounts
from spmilp.tile_selection.search import TileSearch
from spmilp.tile_selection.tiled_problem import TiledProblem

MODEL = Path(__file__).parents[2] / "models" / "resnet8_int8.onnx"


@pytest.fixture(scope="module")
def loaded() -> tuple[Network, MachineFile]:
    return load(MODEL, "xdna1")


def test_what_was_said_is_the_makespan_of_a_plan_that_is_kept(
    loaded: tuple[Network, MachineFile],
) -> None:
    said: list[int] = []
    limits = TileSearch(problems=5, on_better=lambda value, _: said.append(value))
    found = lower_network(*loaded, tile_search=limits)
    assert all(one > other for one, other in pairwise(said))
    assert found.value == said[-1]
    verdict = found.verdict()
    assert verdict is not None
    assert verdict.plan.claim.makespan == found.value
    scheduled = least_value(found.problem)
    assert scheduled is not None
    assert found.value <= 0.97 * scheduled


def test_where_the_checker_rejects_a_justified_plan_the_schedule_is_the_answer(
    loaded: tuple[Network, MachineFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = lower_network(*loaded, tile_search=TileSearch(problems=1))
    assert found.justified is not None
    wrong = found.justified_plan()
    assert wrong is not None
    cut = replace(wrong, transfers=wrong.transfers[:-1])
    monkeypatch.setattr(TiledProblem, "justified_plan", lambda self: cut)
    assert found.verdict() is None
    plan = found.plan()
    assert plan is not None
    assert not check(found.problem, plan)


@pytest.mark.parametrize("machine", ["xdna1", "gap9"])
def test_a_value_is_what_a_plan_with_addresses_takes(machine: str) -> None:
    network, target = load(MODEL, machine)
    first = first_choice(network, target.machine)
    evaluated = Evaluation(PieceCounts(network, target.machine), TileSearch(), None, Clock(None))
    worth = evaluated.value_of(first.lower(first.tilings))
    found = evaluated.finish()
    assert worth is not None
    assert found is not None
    assert found.schedule is not None
    assert found.value == pytest.approx(worth[0], rel=0.02)
    assert found.value <= found.schedule.score[0]
    plan = found.justified_plan() or found.plan()
    assert plan is not None
    assert plan.claim.makespan == found.value
    assert check(found.problem, plan) == ()


def test_only_makespans_are_compared_like_that(
    loaded: tuple[Network, MachineFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiled_problem, "OpenSchedule", None)
    found = lower_network(*loaded, Quantity.DRAM_TRAFFIC, TileSearch(problems=4))
    assert found.schedule is not None
    assert found.value == found.schedule.score[0]


class Scripted(OpenValues):
    """What tilings are worth and what their plans take, in the order in which they are asked for.

    A plan may be an interrupt, or need too much memory.
    """

    def __init__(self, values: Sequence[int], plans: Sequence[int | type[BaseException]]) -> None:
        super().__init__(Clock(None))
        self._values, self._plans = iter(values), iter(plans)

    def is_worth_opening(self, tiled: TiledProblem) -> bool:
        return True

    def once_opened(self, tiled: TiledProblem, share: float) -> TiledProblem:
        return replace(tiled, opened=cast(OpenSchedule, Takes(next(self._values))))

    def with_plan(self, opened: TiledProblem, share: float) -> TiledProblem:
        cycles = next(self._plans)
        if not isinstance(cycles, int):
            raise cycles
        return replace(opened, opened=None, justified=cast(JustifiedPlan, Takes(cycles)))


class Takes(NamedTuple):
    """A schedule that takes so many cycles."""

    makespan: int


def told(loaded: tuple[Network, MachineFile]) -> tuple[FirstChoice, Evaluation, list[int]]:
    """Return a first choice, what evaluates it within a time limit, and the values it tells of."""
    network, machine = loaded[0], loaded[1].machine
    said: list[int] = []
    limits = TileSearch(on_better=lambda value, _: said.append(value))
    evaluated = Evaluation(PieceCounts(network, machine), limits, None, Clock(1000.0))
    return first_choice(network, machine), evaluated, said


@pytest.mark.parametrize(
    ("values", "plans", "answer"),
    [
        ([100, 90], [110, 109], 109),
        ([100, 90], [110, 111], 110),
        ([100, 90], [110, KeyboardInterrupt], 110),
        ([100, 90], [110, MemoryError], 110),
        ([100, 115], [110], 110),
    ],
    ids=["keeps its promise", "promises too much", "interrupted", "no memory", "promises less"],
)
def test_the_answer_is_the_shortest_plan_once_the_best_tilings_have_one(
    loaded: tuple[Network, MachineFile],
    values: list[int],
    plans: list[int | type[BaseException]],
    answer: int,
) -> None:
    first, evaluated, said = told(loaded)
    # With a limit of time, which leaves none for plans on the way, they are made in the end.
    evaluated._open = Scripted(values, plans)
    evaluated._seconds_of_plans = 1000.0
    for _ in values:
        evaluated.value_of(first.lower(first.tilings))
    found = evaluated.finish()
    assert found is not None
    assert found.value == answer
    assert found.interrupted == (KeyboardInterrupt in plans)
    # First of all the plan of the schedule that has addresses from the beginning.
    assert said.pop(0) > max(values)
    assert said == ([110] if answer == 110 else [110, answer])


def test_a_plan_with_addresses_is_told_before_any_are_found_for_an_open_schedule(
    loaded: tuple[Network, MachineFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, evaluated, said = told(loaded)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluated, "_value_once_opened", interrupted)
    evaluated.value_of(first.lower(first.tilings))
    found = evaluated.finish()
    assert found is not None
    assert found.interrupted
    assert not found.is_open
    plan = found.plan()
    assert plan is not None
    assert said == [found.value] == [plan.claim.makespan]


def test_a_solve_ends_no_worse_than_all_that_was_said() -> None:
    result = solve(MODEL, "xdna1", time_limit=3)
    said = [entry.incumbent for entry in result.log if entry.incumbent is not None]
    assert result.makespan == min(said)


def test_with_a_time_limit_schedules_that_take_too_long_to_make_are_given_up(
    loaded: tuple[Network, MachineFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    network, machine = loaded[0], loaded[1].machine
    problem = first_choice(network, machine).lower(first_choice(network, machine).tilings)
    allowed: list[float | None] = []
    promising = evaluation.promising_schedules

    def watched(problem: Problem, *limits: Any) -> Iterator[Found]:
        allowed.append(limits[2])
        return promising(problem, *limits)

    monkeypatch.setattr(evaluation, "promising_schedules", watched)
    for seconds in (None, 1000.0):
        clock = Clock(seconds)
        evaluated = Evaluation(PieceCounts(network, machine), TileSearch(), None, clock)
        evaluated.value_of(problem)
        evaluated.value_of(problem)
    # Of the first problem of all nothing is known yet.
    assert allowed[:3] == [None, None, None]
    assert allowed[3] is not None
    assert allowed[3] >= evaluation.LEAST_SECONDS


@pytest.mark.parametrize(("takes", "asks_others"), [(0.1, True), (4.0, False)])
def test_late_in_the_first_problem_only_rules_that_take_little_are_asked(
    loaded: tuple[Network, MachineFile],
    monkeypatch: pytest.MonkeyPatch,
    takes: float,
    asks_others: bool,
) -> None:
    seconds, asked = 0.0, 0
    promising = evaluation.promising_schedules

    def slow(problem: Problem, *limits: Any) -> Iterator[Found]:
        nonlocal seconds, asked
        for found in promising(problem, *limits):
            seconds, asked = seconds + takes, asked + 1
            yield found

    monkeypatch.setattr(evaluation, "promising_schedules", slow)
    network, machine = loaded[0], loaded[1].machine
    clock, limits = Clock(100.0, lambda: seconds), TileSearch(justifies=False)
    seconds = 100.0 * SHARE_OF_FIRST
    evaluated = Evaluation(PieceCounts(network, machine), limits, None, clock)
    first = first_choice(network, machine)
    evaluated.value_of(first.lower(first.tilings))

    assert (asked > 1) == asks_others
