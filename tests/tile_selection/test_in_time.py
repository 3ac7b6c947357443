"""Choosing tiles when time is short: what is cut, what is not begun, what is then the answer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import spmilp.tile_selection.search as tile_search
from spmilp.checker.check import check
from spmilp.errors import DoesNotFitError, SpmilpError
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tilings
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock, OutOfTimeError, Pace, Step
from spmilp.source import load, lower_network
from spmilp.tile_selection.coarse import CoarseTilings, fast_initial_tilings, tasks_of
from spmilp.tile_selection.evaluation import Evaluation
from spmilp.tile_selection.first_choice import NetworkOnMachine, first_choice
from spmilp.tile_selection.pieces import PieceCounts
from spmilp.tile_selection.search import (
    TileSearch,
    fast_initial_problem,
    first_choice_in_time,
    search_tilings,
)
from spmilp.tile_selection.trials import Trials
from tests.lowering.builders import NetworkBuilder, star_machine

MODEL = Path(__file__).parents[2] / "models" / "resnet8_int8.onnx"
NETWORK, TARGET = load(MODEL, "gap9")
SUBJECT = NetworkOnMachine(network=NETWORK, machine=TARGET.machine)
QUICKEST = CoarseTilings(NETWORK, TARGET.machine)


def size_of(tilings: Tilings) -> tuple[int, int]:
    """Return the tasks and their reads, as they are forecast."""
    return tasks_of(tilings), QUICKEST.counts.of_all(tilings)


class Ticking:
    """The time, of which some passes whenever somebody looks."""

    def __init__(self, tick: float) -> None:
        self.seconds = 0.0
        self.tick = tick

    def __call__(self) -> float:
        self.seconds += self.tick
        return self.seconds


def test_a_lowering_ends_where_it_is_told_to() -> None:
    tilings = first_choice(NETWORK, TARGET.machine).tilings
    calls = 0

    def go_on() -> None:
        nonlocal calls
        calls += 1
        if calls == 10:
            raise OutOfTimeError

    with pytest.raises(OutOfTimeError):
        lower(NETWORK, TARGET.machine, tilings, go_on=go_on)
    assert calls == 10


def test_where_there_is_no_time_for_a_tile_for_each_core_there_are_fewer_tiles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tile_search, "SOON_COMPARED", 0)
    network, target = load(MODEL, "mesh4x4")
    subject = NetworkOnMachine(network=network, machine=target.machine)
    quickest = CoarseTilings(network, target.machine)
    tilings = fast_initial_tilings(network, target.machine)
    assert tilings is not None
    most, fewest = tasks_of(tilings), tasks_of(next(iter(quickest)))
    assert fewest < most
    needed = Pace().seconds_from_scratch(most, quickest.counts.of_all(tilings))

    for seconds, tasks in ((1.01 * needed, most), (0.99 * needed, fewest)):
        said: list[tuple[int, int]] = []
        limits = TileSearch(on_better=lambda value, tasks, said=said: said.append((value, tasks)))
        clock = Clock(seconds, Ticking(0.0))
        tiled = fast_initial_problem(subject, limits, clock, quickest)
        assert tiled is not None
        assert len(tiled.problem.tasks) == tasks
        assert said == [(tiled.value, tasks)]


def test_the_first_choice_is_cut_when_its_share_is_used() -> None:
    now = Ticking(0.01)
    assert first_choice_in_time(SUBJECT, Clock(10.0, now), QUICKEST, has_plan=True) is None
    assert now.seconds == pytest.approx(5.5, abs=0.1)


def test_the_first_choice_leaves_time_for_the_quickest_plan_where_there_is_none() -> None:
    pace = Pace()
    tasks, reads = size_of(next(iter(QUICKEST)))
    pace.note(Step.LOWER, tasks, 2.0)
    now = Ticking(0.01)
    clock = Clock(pace.seconds_from_scratch(tasks, reads) + 1.0, now, pace=pace)

    assert first_choice_in_time(SUBJECT, clock, QUICKEST, has_plan=False) is None
    assert now.seconds == pytest.approx(1.0, abs=0.1)


def test_a_first_choice_whose_plan_would_come_too_late_gives_way_to_a_quicker_one() -> None:
    tasks, reads = size_of(first_choice(NETWORK, TARGET.machine).tilings)
    quicker, fewer_reads = size_of(next(iter(QUICKEST)))
    assert quicker < tasks
    assert fewer_reads < reads
    pace = Pace()
    pace.note(Step.LOWER, tasks, 2.0)
    enough, too_little = (
        (1 + change) * pace.seconds_from_scratch(tasks, reads) for change in (0.01, -0.01)
    )

    for seconds, is_chosen in ((enough, True), (too_little, False)):
        clock = Clock(seconds, Ticking(0.0), pace=pace)
        found = first_choice_in_time(SUBJECT, clock, QUICKEST, has_plan=False)
        assert (found is not None) == is_chosen


def test_the_problem_of_a_first_choice_that_was_in_time_is_made_to_the_end() -> None:
    now = Ticking(0.0)
    found = first_choice_in_time(SUBJECT, Clock(10.0, now), QUICKEST, has_plan=True)
    now.seconds = 20.0

    assert found is not None
    assert len(found.lower(found.tilings).tasks) == tasks_of(found.tilings)


def test_with_time_the_first_choice_is_what_it_would_be_without_a_clock() -> None:
    found = first_choice_in_time(SUBJECT, Clock(10.0, Ticking(0.0)), QUICKEST, has_plan=False)
    assert found is not None
    assert found.tilings == first_choice(NETWORK, TARGET.machine).tilings


@pytest.mark.parametrize("machine", ["gap9", "mesh4x4", "xdna1"])
def test_without_any_time_there_is_a_valid_plan_of_few_tasks(machine: str) -> None:
    network, target = load(MODEL, machine)
    tiled = lower_network(network, target, tile_search=TileSearch(), clock=Clock(0.0))

    plan = tiled.plan()
    assert plan is not None
    assert check(tiled.problem, plan) == ()
    usual = first_choice(network, target.machine).tilings
    assert len(tiled.problem.tasks) <= tasks_of(usual)


def test_coarse_tiles_that_do_not_fit_are_cut_further() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.conv(builder.input((1, 3, 64, 64)), 16))
    counts = [tasks_of(one) for one in CoarseTilings(network, star_machine(4, 1 << 13))]
    assert counts == sorted(counts)
    assert len(set(counts)) > 1


def test_what_fits_nowhere_is_said_though_there_is_no_time() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.conv(builder.input((1, 3, 64, 64)), 16))
    target = replace(TARGET, machine=star_machine(4, 64))
    with pytest.raises(DoesNotFitError):
        lower_network(network, target, tile_search=TileSearch(), clock=Clock(0.0))


def test_once_there_is_a_schedule_the_search_ends_at_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = first_choice(NETWORK, TARGET.machine)
    now = Ticking(0.0)

    def slow(said: int, tasks: int) -> None:
        now.seconds += 20.0

    clock = Clock(30.0, now)
    tiled = search_tilings(found, TileSearch(on_better=slow), clock=clock)
    # The first schedule takes more than the share: no other rule is asked, nothing else is tried.
    assert now.seconds == 20.0
    assert tiled.problem == found.lower(found.tilings)
    assert tiled.value is not None


def test_a_lowering_that_takes_too_long_is_given_up_once_there_is_a_schedule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = first_choice(NETWORK, TARGET.machine)
    now, begun = Ticking(0.0), list[int]()
    lowered = lower(NETWORK, TARGET.machine, found.tilings)

    def slowly(*arguments: object, go_on: Callable[[], None], **names: object) -> Problem:
        begun.append(1)
        for _ in range(1000):
            now.seconds += 0.1 * (len(begun) > 1)
            go_on()
        return lowered

    monkeypatch.setattr("spmilp.tile_selection.first_choice.lower", slowly)
    found = replace(found, problem=None)
    tiled = search_tilings(found, TileSearch(), clock=Clock(30.0, now))
    assert len(begun) == 2
    assert now.seconds == pytest.approx(0.55 * 30.0, abs=0.2)
    assert tiled.problem == lower(NETWORK, TARGET.machine, found.tilings)


def test_tilings_that_would_take_too_long_are_not_lowered() -> None:
    first = first_choice(NETWORK, TARGET.machine).tilings
    other = {**first, 0: first[0].with_count(1, 1)}
    lowered: list[object] = []

    def count(tilings: object) -> Problem:
        lowered.append(tilings)
        return lower(NETWORK, TARGET.machine, first)

    trials = Trials(count, lambda problem: 7, affords=lambda tilings: tilings is first)
    assert trials.is_better(first)
    assert not trials.is_better(other)
    assert lowered == [first]
    assert not trials.are_new(other)


def test_more_tasks_than_are_evaluated_in_all_are_never_lowered() -> None:
    found = first_choice(NETWORK, TARGET.machine)
    limits = TileSearch(tasks=tasks_of(found.tilings) - 1)
    counts = PieceCounts(NETWORK, TARGET.machine)
    evaluation = Evaluation(counts, limits, None, Clock(None))
    assert not evaluation.affords(found.tilings)


def test_results_that_can_only_have_too_many_tiles_are_refused_with_both_numbers() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.conv(builder.input((1_000_000, 3, 64, 64)), 16))
    target = replace(TARGET, machine=star_machine(4, 1 << 16))
    with pytest.raises(
        SpmilpError, match=r"4,000,000 tiles at least, expected at most 200,000"
    ) as said:
        lower_network(network, target)
    assert "--dim" in str(said.value)
