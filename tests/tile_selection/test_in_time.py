"""Choosing tiles when time is short: what is cut, what is not begun, what is then the answer."""

from pathlib import Path

import pytest

from spmilp.checker.check import check
from spmilp.errors import DoesNotFitError, SpmilpError
from spmilp.solvers.common.clock import Clock, Pace, Step
from spmilp.source import load
from spmilp.tile_selection.choose import choose_tiles, first_choice_in_time
from spmilp.tile_selection.coarse import CoarseTilings, tasks_of
from spmilp.tile_selection.first_choice import NetworkOnMachine, first_choice
from spmilp.tile_selection.settings import TileOptions, Tiles
from tests.lowering.builders import NetworkBuilder, star_machine

MODEL = Path(__file__).parents[2] / "models" / "resnet8_int8.onnx"


class Ticking:
    """The time, of which some passes whenever somebody looks."""

    def __init__(self, tick: float) -> None:
        self.seconds = 0.0
        self.tick = tick

    def __call__(self) -> float:
        self.seconds += self.tick
        return self.seconds


def test_the_first_choice_leaves_time_for_the_quickest_plan_where_there_is_none() -> None:
    network, target = load(MODEL, "gap9")
    quickest, pace = CoarseTilings(network, target.machine), Pace()
    tilings = next(iter(quickest))
    tasks, reads = tasks_of(tilings), quickest.counts.of_all(tilings)
    pace.note(Step.LOWER, tasks, 2.0)
    now = Ticking(0.01)
    clock = Clock(pace.seconds_from_scratch(tasks, reads) + 1.0, now, pace=pace)

    subject = NetworkOnMachine(network=network, machine=target.machine)
    assert first_choice_in_time(subject, clock, quickest, has_plan=False) is None
    assert now.seconds == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("machine", ["gap9", "mesh4x4", "xdna1"])
def test_without_any_time_there_is_a_valid_plan_of_few_tasks(machine: str) -> None:
    network, target = load(MODEL, machine)
    tiled = choose_tiles(
        NetworkOnMachine.of(network, target), TileOptions(how=Tiles.SEARCH), Clock(0.0)
    )

    plan = tiled.plan()
    assert plan is not None
    assert check(tiled.problem, plan) == ()
    usual = first_choice(network, target.machine).tilings
    assert len(tiled.problem.tasks) <= tasks_of(usual)


def test_what_fits_nowhere_is_said_though_there_is_no_time() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.conv(builder.input((1, 3, 64, 64)), 16))
    subject = NetworkOnMachine(network=network, machine=star_machine(4, 64))
    with pytest.raises(DoesNotFitError):
        choose_tiles(subject, TileOptions(how=Tiles.SEARCH), Clock(0.0))


def test_results_that_can_only_have_too_many_tiles_are_refused_with_both_numbers() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.conv(builder.input((1_000_000, 3, 64, 64)), 16))
    subject = NetworkOnMachine(network=network, machine=star_machine(4, 1 << 16))
    with pytest.raises(
        SpmilpError, match=r"4,000,000 tiles at least, expected at most 200,000"
    ) as said:
        choose_tiles(subject)
    assert "--dim" in str(said.value)
