"""Time limits with a clock that is told the time: forecasts, reserves, shares."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from spmilp.bounds.best import Proof, best_bound, fast_bound, proofs
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common import clock as clock_module
from spmilp.solvers.common.clock import Clock, OutOfTimeError, Pace, Step
from spmilp.solvers.common.context import KnownBounds, SearchContext, rows_of
from spmilp.solvers.exact.cpsat.phases import CpSatOptions
from spmilp.solvers.exact.cpsat.solver import CpSatSolver
from spmilp.solvers.exact.formulation.candidates import Structure
from spmilp.solvers.exact.formulation.model import StructureBuilder
from spmilp.solvers.schedule.restarts import PerturbedRestarts
from spmilp.solvers.schedule.solver import ListScheduler
from tests.solvers.chains import chain, star

PROBLEM = chain(star(2, 2_048), layers=2, strips=2)


class Now:
    """The time, which passes only when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_step_takes_as_long_for_each_unit_as_it_did_before() -> None:
    now = Now()
    pace = Pace(now)
    with pace.measured(Step.CHECK, 1_000):
        now.seconds += 2.0
    assert pace.seconds(Step.CHECK, 500) == pytest.approx(1.0)


def test_the_seconds_in_which_code_is_compiled_are_no_part_of_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, compiled = Now(), Now()
    monkeypatch.setattr(clock_module, "seconds_of_compiling", compiled)
    pace, clock = Pace(now), Clock(60.0, now)
    began = clock.without_compiling()
    with pace.measured(Step.OPEN, 1_000):
        compiled.seconds += 30.0
        now.seconds += 32.0
    assert pace.seconds(Step.OPEN, 1_000) == pytest.approx(2.0)
    assert clock.without_compiling() - began == pytest.approx(2.0)
    assert clock.seconds_left() == pytest.approx(28.0)


def test_a_step_that_compiles_code_says_little_about_other_steps() -> None:
    pace = Pace()
    pace.note(Step.BOUND, 1_000, 8.0)
    assert pace.seconds(Step.CHECK, 2_000) < 1.0


def test_a_step_that_was_not_taken_is_expected_to_be_as_slow_as_the_last_one() -> None:
    pace = Pace()
    pace.note(Step.LOWER, 1_000, 3 * Step.LOWER.value * 1_000)
    assert pace.seconds(Step.WRITE, 10_000) == pytest.approx(3 * Step.WRITE.value * 10_000)


def test_a_bound_says_how_busy_the_machine_is_and_not_how_slow() -> None:
    now, worked = Now(), Now()
    pace = Pace(now, worked)
    with pace.measured(Step.BOUND, 10):
        now.seconds += 6.0
        worked.seconds += 2.0
    assert pace.seconds(Step.CHECK, 1_000) == pytest.approx(3 * Step.CHECK.value * 1_000)
    pace.note(Step.PLAN, 10_000, 2 * Step.PLAN.value * 10_000)
    assert pace.seconds(Step.CHECK, 1_000) == pytest.approx(2 * Step.CHECK.value * 1_000)


def test_steps_too_short_to_measure_and_steps_that_raise_say_nothing_about_the_pace() -> None:
    now = Now()
    pace = Pace(now)
    pace.note(Step.CHECK, 1, 0.001)
    with suppress(OutOfTimeError), pace.measured(Step.CHECK, 1):
        now.seconds += 100.0
        raise OutOfTimeError
    assert pace.seconds(Step.CHECK, 1) == Step.CHECK.value


def test_what_is_reserved_is_no_part_of_the_time_and_may_be_corrected() -> None:
    now = Now()
    clock = Clock(10.0, now)
    clock.reserve(4.0)
    now.seconds = 5.0
    assert clock.seconds_left() == pytest.approx(1.0)
    assert not clock.has_seconds(1.5)
    clock.reserve(2.0)
    assert clock.has_seconds(1.5)
    clock.reserve(20.0)
    assert clock.is_over()


def test_going_on_raises_when_a_share_is_used() -> None:
    now = Now()
    clock = Clock(10.0, now)
    now.seconds = 5.0
    clock.go_on(0.55)
    now.seconds = 5.6
    with pytest.raises(OutOfTimeError):
        clock.go_on(0.55)
    Clock(None, now).go_on()


def test_the_search_leaves_time_to_finish_a_plan_of_the_size_of_the_hint() -> None:
    hint = ListScheduler().solve(PROBLEM, SolveOptions()).plan
    assert hint is not None
    pace = Pace()
    pace.note(Step.CHECK, rows_of(hint), 5.0)
    options = SolveOptions(time_limit=60.0, pace=pace)
    now = Now()
    left = SearchContext(PROBLEM, options, hint, now).clock.seconds_left()
    assert left == pytest.approx(60.0 - pace.seconds_to_finish(rows_of(hint)))
    # Of a member's own time nothing is taken away twice.
    member = SearchContext(PROBLEM, options, hint, now).member(left, hint)
    assert member.clock.seconds_left() == left


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> tuple[Now, list[str]]:
    """Note which bounds are computed; each takes a second."""
    now, names = Now(), list[str]()

    def slowly(problem: Problem, quantity: Quantity) -> Iterator[Proof]:
        for proof in proofs(problem, quantity):
            yield replace(proof, value=partial(prove, proof))

    def prove(proof: Proof) -> int:
        now.seconds += 1.0
        names.append(proof.name)
        return proof.value()

    monkeypatch.setattr(f"{KnownBounds.__module__}.proofs", slowly)
    return now, names


def test_bounds_are_computed_within_their_share_and_go_on_where_they_stopped(
    computed: tuple[Now, list[str]],
) -> None:
    now, names = computed
    clock = Clock(10.0, now)
    known = KnownBounds(PROBLEM, Quantity.MAKESPAN)
    first = known.within(clock)
    # A second for each is learned from the first one, which is three tenths of three and a third.
    assert len(names) == 7
    assert known.within(clock) == first
    assert len(names) == 7

    assert known.within(Clock(None, now)) == best_bound(PROBLEM)
    assert names == [proof.name for proof in proofs(PROBLEM, Quantity.MAKESPAN)]


def test_a_bound_that_takes_long_is_left_out_where_little_is_left(
    computed: tuple[Now, list[str]],
) -> None:
    now, names = computed
    clock = Clock(100.0, now)
    reads = sum(len(task.reads) for task in PROBLEM.tasks)
    clock.pace.note(Step.HEADS, reads, 29.5)
    KnownBounds(PROBLEM, Quantity.MAKESPAN).within(clock)
    # Three quick ones first; then 29.5 seconds are more than three tenths of 97.
    assert names == ["critical path", "work", "stages"]


def test_where_there_is_no_time_the_bound_is_one_that_takes_none(
    computed: tuple[Now, list[str]],
) -> None:
    now, names = computed
    assert KnownBounds(PROBLEM, Quantity.MAKESPAN).within(Clock(0.0, now)) == fast_bound(PROBLEM)
    assert names == []


@pytest.mark.parametrize("make", [ListScheduler, PerturbedRestarts])
def test_one_schedule_is_made_however_short_the_time(
    make: Callable[[], ListScheduler | PerturbedRestarts],
) -> None:
    result = make().solve(PROBLEM, SolveOptions(time_limit=0.0))
    assert result.plan is not None
    assert result.violations(PROBLEM) == ()


def test_what_was_slow_only_the_first_time_is_expected_to_be_quick_again() -> None:
    pace = Pace()
    usual = Step.SCHEDULE.value * 100

    pace.note(Step.SCHEDULE, 100, 1000 * usual)
    slow = pace.seconds(Step.SCHEDULE, 100)
    pace.note(Step.SCHEDULE, 100, 2 * usual)

    assert slow == pytest.approx(1000 * usual)
    assert pace.seconds(Step.SCHEDULE, 100) == pytest.approx(2 * usual)
    assert pace.seconds(Step.PLAN, 100) == pytest.approx(2 * Step.PLAN.value * 100)


def test_the_structure_of_an_exact_model_says_how_long_the_next_one_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = Now()
    make = StructureBuilder.structure

    def slowly(builder: StructureBuilder, *, relaxed: bool) -> Structure:
        now.seconds += 2.0
        return make(builder, relaxed=relaxed)

    monkeypatch.setattr(StructureBuilder, "structure", slowly)
    pace = Pace(now)
    context = SearchContext(PROBLEM, SolveOptions(time_limit=60.0, pace=pace), None, now)
    CpSatSolver(CpSatOptions(literals=0)).search(context)
    pairs = len(PROBLEM.slices) * len(PROBLEM.machine.memories) ** 2
    assert pace.seconds(Step.STRUCTURE, pairs) == pytest.approx(2.0)


def test_a_share_of_deterministic_time_is_used_up_like_one_of_seconds() -> None:
    clock = Clock(None, Now(), deterministic=2.0)
    clock.spend(0.9)
    assert clock.spent == 0.9
    assert clock.deterministic_left(share=0.5) == pytest.approx(0.1)
    assert clock.deterministic_left(0.3) == 0.3
    assert not clock.is_over(0.5)
    clock.spend(0.2)
    assert clock.is_over(0.5)
    assert not clock.is_over()
