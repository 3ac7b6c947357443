"""Transfers with several destinations in the plans of the list scheduler and of what follows it."""

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from spmilp.bounds.best import Bound
from spmilp.checker.check import check
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.exact.cpsat.solver import CpSatSolver
from spmilp.solvers.improve.reassignment import Reassigner
from spmilp.solvers.improve.steps import with_unplaced
from spmilp.solvers.justify.context import context_of
from spmilp.solvers.justify.passes import backward_pass
from spmilp.solvers.schedule.portfolio import Schedules, plan_from
from tests.solvers.random_problems import small_problem
from tests.solvers.schedules import packed
from tests.solvers.tiny_problems import tiny_problem

NO_BOUND = Bound("none", Quantity.MAKESPAN, 0)


def _problems(count: int) -> Iterator[Problem]:
    """Yield the first small problems whose machines have engines that can multicast."""
    number = 0
    while count:
        problem = small_problem(number)
        if any(engine.multicast for engine in problem.machine.engines):
            yield problem
            count -= 1
        number += 1


def _plans(problem: Problem) -> Iterator[Plan]:
    """Yield the list scheduler's plans with multicasts, one for each trial of its rules."""
    schedules = Schedules(problem)
    for found in schedules:
        if found is not None:
            plan = plan_from(problem, found, NO_BOUND, "list")
            if any(len(move.destinations) > 1 for move in plan.transfers):
                yield plan


@pytest.mark.full
def test_list_plans_with_multicasts_are_valid() -> None:
    found = [(problem, plan) for problem in _problems(60) for plan in _plans(problem)]

    assert len(found) >= 40
    assert all(check(problem, plan) == () for problem, plan in found)


@pytest.mark.parametrize("number", [52, 112, 244, 288, 460, 476])
def test_no_list_plan_with_multicasts_is_better_than_the_optimum(number: int) -> None:
    problem = tiny_problem(number)
    optimum = CpSatSolver().solve(problem, SolveOptions())

    assert optimum.status is SolveStatus.OPTIMAL
    makespans = [plan.claim.makespan for plan in _plans(problem)]
    assert min(makespans) >= optimum.plan.claim.makespan


@pytest.mark.full
def test_tasks_whose_operands_or_results_are_multicast_change_cores() -> None:
    random, moved = Random(0), 0
    for problem, plan in ((one, plan) for one in _problems(40) for plan in _plans(one)):
        context, first = context_of(problem, plan)
        late = backward_pass(first, context.with_capacity(context.usable))
        reassigner, tasks = Reassigner(context), len(problem.tasks)
        for _ in range(12):
            task, pool = random.randrange(tasks), random.randrange(len(reassigner.pools))
            schedule = late.schedule
            sent = np.flatnonzero(np.diff(schedule.fills.begin)[tasks:] > 1) + tasks
            touched = {
                r
                for one in sent
                for r in (*schedule.reads.values(one), *schedule.fills.values(one))
            }
            own = {*schedule.reads.values(task), *schedule.fills.values(task)}
            found = reassigner.reassigned(late, task, pool)
            if found is None:
                continue
            late = with_unplaced(schedule, found, late.start)
            built = packed(context, late)
            if built is not None:
                assert check(problem, built) == ()
                moved += bool(own & touched)
    assert moved >= 20
