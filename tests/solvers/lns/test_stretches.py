"""Stretches of a schedule: cut, shortened apart from each other, and joined again."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.lns.options import LnsOptions
from spmilp.solvers.lns.rounds import Rounds, improved
from spmilp.solvers.lns.steps import Steps
from spmilp.solvers.lns.stretch import Stretch, borders_of, joined, stretches_of
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.forward import forward_pass
from spmilp.solvers.partial_order.repacking import FillLimits, justified_by_capacity
from spmilp.solvers.partial_order.schedule import TimedSchedule
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems
from tests.solvers.schedules import listed, packed, scheduled

MODEST = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def opened(problem: Problem) -> tuple[ScheduleContext, TimedSchedule, FillLimits]:
    context, first = scheduled(problem, "round_robin")
    fill = FillLimits(context)
    return context, justified_by_capacity(context, first, fill.memories(), Clock(None)), fill


def cut(context: ScheduleContext, whole: TimedSchedule, turn: int = 0) -> list[Stretch]:
    plan = context.plan
    borders = borders_of(whole, 3, turn)
    return list(stretches_of(whole, borders, len(plan.placements) + len(plan.transfers)))


@MODEST
@given(problem=problems(), turn=st.integers(0, 5))
def test_what_is_cut_and_joined_again_is_as_before(problem: Problem, turn: int) -> None:
    context, whole, _ = opened(problem)
    stretches = cut(context, whole, turn)

    again = joined(whole, [(one, replace(one.timed, makespan=one.end)) for one in stretches])

    assert again.makespan == whole.makespan
    runs = whole.schedule.cycles > 0
    assert (again.start[runs] == whole.start[runs]).all()
    for one, other in zip(again.schedule, whole.schedule, strict=True):
        assert all(np.array_equal(*pair) for pair in zip([*one], [*other], strict=True))


@MODEST
@given(problem=problems(), turn=st.integers(0, 5))
def test_nothing_runs_at_two_borders(problem: Problem, turn: int) -> None:
    _, whole, _ = opened(problem)
    end = whole.start + whole.schedule.cycles
    for first, second in pairwise(borders_of(whole, 4, turn)):
        assert first < second
        assert not ((whole.start < first) & (end > second)).any()


@MODEST
@given(problem=problems(), turn=st.integers(0, 5))
def test_what_stretches_save_adds_up_in_a_plan_that_the_checker_accepts(
    problem: Problem, turn: int
) -> None:
    context, whole, fill = opened(problem)
    parts, saved = [], 0
    for number, stretch in enumerate(cut(context, whole, turn)):
        steps, found = Steps(context, fill, Clock(None), LnsOptions(), number), stretch.timed
        for _ in range(6):
            found = steps.take(found)
        parts.append((stretch, found))
        saved += stretch.end - found.makespan

    together = joined(whole, parts)

    assert together.makespan <= whole.makespan - saved
    early, runs = forward_pass(together, fill.memories()), together.schedule.cycles > 0
    assert (early.start[runs] <= together.start[runs]).all()
    plan = packed(context, together)
    assume(plan is not None)
    assert plan is not None
    assert check(problem, plan) == ()


def test_rounds_shorten_a_plan_also_where_a_stretch_is_lost() -> None:
    problem = chain(star(2, 2_048), layers=4, strips=4)
    start = listed(problem, "round_robin")
    context = SearchContext(problem, SolveOptions())
    rounds = Rounds(context, start)
    for number in range(3):
        turns = rounds.turns(2, None, number)
        assert len(turns) == 2
        rounds.join([improved(rounds.fixed, turns[0]), None])

    plan = rounds.plan()

    assert plan is not None
    assert check(problem, plan) == ()
    assert plan.claim.makespan == rounds.makespan < start.claim.makespan


def test_the_same_answers_lead_to_the_same_plan() -> None:
    problem = chain(star(2, 2_048), layers=4, strips=4)

    def makespans() -> list[int]:
        rounds = Rounds(SearchContext(problem, SolveOptions()), listed(problem, "round_robin"))
        found = []
        for number in range(2):
            turns = rounds.turns(2, None, 10 * number)
            rounds.join([improved(rounds.fixed, turn) for turn in turns])
            found.append(rounds.makespan)
        return found

    assert makespans() == makespans()
