"""Tile sizes are chosen in the time there is: what is said, what is kept, what the answer is."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

import pytest

from spmilp.checker.check import check
from spmilp.errors import DoesNotFitError, SpmilpError
from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower
from spmilp.machine.read import MachineFile
from spmilp.solvers.common.clock import Clock, Pace, Step
from spmilp.solvers.justify.shortening import JustifiedPlan, OpenSchedule
from spmilp.solvers.schedule.portfolio import Found, schedules_by
from spmilp.source import load
from spmilp.tile_selection import choose, evaluation
from spmilp.tile_selection.choose import (
    QuickPlans,
    choose_tiles,
    first_choice_in_time,
    promising_first,
    search_tilings,
)
from spmilp.tile_selection.coarse import CoarseTilings, tasks_of
from spmilp.tile_selection.evaluation import Evaluation
from spmilp.tile_selection.first_choice import FirstChoice, NetworkOnMachine, first_choice
from spmilp.tile_selection.pieces import PieceCounts
from spmilp.tile_selection.settings import SEARCH, TileOptions, Tiles
from spmilp.tile_selection.tiled_problem import TiledProblem
from tests.lowering.builders import NetworkBuilder, star_machine

Loaded: TypeAlias = tuple[Network, MachineFile]

MODEL = Path(__file__).parents[2] / "models" / "resnet8_int8.onnx"


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load(MODEL, "xdna1")


@pytest.fixture(scope="module")
def first(loaded: Loaded) -> FirstChoice:
    return first_choice(loaded[0], loaded[1].machine)


def test_what_was_said_is_the_makespan_of_a_plan_that_is_kept(loaded: Loaded) -> None:
    said: list[int] = []
    limits = TileOptions(
        how=Tiles.SEARCH, problems=5, on_better=lambda value, _: said.append(value)
    )
    found = choose_tiles(NetworkOnMachine.of(*loaded), limits)
    assert all(one > other for one, other in pairwise(said))
    assert found.value == said[-1] < said[0]
    verdict = found.verdict()
    assert verdict is not None
    assert verdict.plan.claim.makespan == found.value
    scheduled = min(one.score[0] for one in schedules_by(found.problem))
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
    loaded: Loaded,
    first: FirstChoice,
    values: list[int],
    plans: list[int | type[BaseException]],
    answer: int,
) -> None:
    said: list[int] = []
    limits = TileOptions(how=Tiles.SEARCH, on_better=lambda value, _: said.append(value))
    counts = PieceCounts(loaded[0], loaded[1].machine)
    evaluated = Scripted(counts, limits, None, Clock(1000.0))
    evaluated.script(values, plans)
    for _ in values:
        evaluated.value_of(first.lower(first.tilings))
    found = evaluated.finish()
    assert found is not None
    assert found.value == answer
    assert found.interrupted == (KeyboardInterrupt in plans)
    # First of all the plan of the schedule that has addresses from the beginning.
    assert said.pop(0) > max(values)
    assert said == ([110] if answer == 110 else [110, answer])


def test_the_same_search_finds_the_same_tiles(first: FirstChoice) -> None:
    limits = TileOptions(how=Tiles.SEARCH, tasks=2_000)
    some, again = (search_tilings(first, limits) for _ in range(2))
    assert some.problem == again.problem


def test_without_time_the_first_tiles_stay(loaded: Loaded, first: FirstChoice) -> None:
    found = search_tilings(first, TileOptions(how=Tiles.SEARCH), clock=Clock(0.0))
    assert found.schedule is None
    assert found.problem == lower(loaded[0], loaded[1].machine, first.tilings)


@pytest.mark.full
def test_an_interrupt_keeps_the_best_schedule_so_far(first: FirstChoice) -> None:
    said: list[int] = []

    def interrupt(value: int, tasks: int) -> None:
        said.append(value)
        if len(said) == 3:
            raise KeyboardInterrupt

    found = search_tilings(first, TileOptions(how=Tiles.SEARCH, on_better=interrupt))
    assert len(said) == 3
    assert found.value == said[-1]
    assert found.interrupted
    result = found.result()
    assert result is not None
    assert result.interrupted
    assert result.plan is not None
    assert result.plan.claim.makespan == found.value
    assert result.bound <= said[-1]
    assert check(found.problem, result.plan) == ()


def test_an_interrupt_before_the_first_schedule_passes_on(
    first: FirstChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Iterator[Found]:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation, "promising_schedules", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search_tilings(first, TileOptions(how=Tiles.SEARCH))


def test_where_the_first_choice_takes_long_an_interrupt_of_it_leaves_a_plan(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[int] = []
    limits = TileOptions(how=Tiles.SEARCH, on_better=lambda value, tasks: said.append(value))

    def interrupted(*_: object, **__: object) -> FirstChoice:
        raise KeyboardInterrupt

    monkeypatch.setattr(choose, "SEARCH", replace(SEARCH, soon_compared=0))
    monkeypatch.setattr(choose, "first_choice_of", interrupted)
    tiled = choose_tiles(NetworkOnMachine.of(*loaded), limits)

    plan = tiled.plan()
    assert plan is not None
    assert check(tiled.problem, plan) == ()
    assert [tiled.value] == said


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
    now = Ticking(0.01)
    quickest, pace = CoarseTilings(network, target.machine), Pace(now)
    tilings = next(iter(quickest))
    tasks, reads = tasks_of(tilings), quickest.counts.of_all(tilings)
    pace.note(Step.LOWER, tasks, 2.0)
    clock = Clock(pace.seconds_from_scratch(tasks, reads) + 1.0, pace)

    subject = NetworkOnMachine(network=network, machine=target.machine)
    quick = QuickPlans(quickest, clock)
    assert quick.for_all_cores is None
    assert first_choice_in_time(subject, clock, quick, has_plan=False) is None
    assert now.seconds == pytest.approx(1.0, abs=0.1)


def test_a_first_choice_that_takes_half_of_the_time_still_says_what_others_cost() -> None:
    network, target = load(MODEL, "gap9")
    now, subject = Ticking(0.0), NetworkOnMachine.of(network, target)
    clock = Clock(1.0, Pace(now))
    quick = QuickPlans(CoarseTilings(network, target.machine), clock)
    first = first_choice_in_time(subject, clock, quick, has_plan=True)
    now.seconds = 0.9
    assert first is not None
    assert promising_first(first, quick)


@pytest.mark.parametrize("machine", ["gap9", "mesh4x4"])
def test_without_time_to_compare_tiles_there_is_work_for_all_cores(machine: str) -> None:
    network, target = load(MODEL, machine)
    subject = NetworkOnMachine.of(network, target)
    options = TileOptions(how=Tiles.SEARCH)
    few = choose_tiles(subject, options, Clock(0.0))
    soon = choose_tiles(subject, options, Clock(2.0, Pace(Ticking(0.01))))

    assert few.is_fallback
    assert soon.is_fallback
    assert 5 * (soon.value or 0) < (few.value or 0)
    plan = soon.plan()
    assert plan is not None
    assert check(soon.problem, plan) == ()


@pytest.mark.parametrize("machine", ["gap9", "mesh4x4", "xdna1"])
def test_without_any_time_there_is_a_valid_plan_of_few_tasks(machine: str) -> None:
    network, target = load(MODEL, machine)
    subject = NetworkOnMachine.of(network, target)
    tiled = choose_tiles(subject, TileOptions(how=Tiles.SEARCH), Clock(0.0))

    plan = tiled.plan()
    assert plan is not None
    assert check(tiled.problem, plan) == ()
    assert len(tiled.problem.tasks) <= tasks_of(first_choice(network, target.machine).tilings)


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
    both = r"4,000,000 tiles at least, expected at most 200,000.*65,536 B; "
    with pytest.raises(SpmilpError, match=f"{both}use a machine"):
        choose_tiles(subject)
    subject = replace(subject, network=replace(network, dim={"batch": 1_000_000}))
    with pytest.raises(SpmilpError, match=rf"{both}give smaller dimensions \(--dim\), or use"):
        choose_tiles(subject)
