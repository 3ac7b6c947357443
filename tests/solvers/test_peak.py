"""Scratchpads that are cut shorter, and what is found in them."""

from dataclasses import replace

import pytest

from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.peak import PeakBisection, with_scratchpads_of
from spmilp.solvers.schedule.solver import ListScheduler
from tests.oracle.solver import BruteForce
from tests.solvers.chains import chain, star
from tests.solvers.tiny_problems import tiny_problem

CHAIN = replace(chain(star(2, 4096), layers=3, strips=5), objective=Objective.of(Quantity.PEAK_SPM))
PEAK_FIRST = [tiny_problem(number) for number in (31, 43, 51, 71, 79, 87, 91)]


@pytest.mark.full
def test_a_peak_as_low_as_its_bound_is_proven_and_shorter_than_the_first_one_found() -> None:
    by_list = ListScheduler().solve(CHAIN, SolveOptions()).plan
    result = PeakBisection().solve(CHAIN, SolveOptions())

    assert check(CHAIN, result.plan) == ()
    assert result.status is SolveStatus.OPTIMAL
    assert result.plan.claim.peak_spm == best_bound(CHAIN).value < by_list.claim.peak_spm


@pytest.mark.full
def test_behind_the_peak_the_makespan_is_made_small() -> None:
    least = best_bound(CHAIN).value
    within = replace(with_scratchpads_of(CHAIN, least), objective=Objective.of(Quantity.MAKESPAN))
    quick = ListScheduler().solve(within, SolveOptions()).plan
    plan = PeakBisection().solve(CHAIN, SolveOptions()).plan

    assert plan.claim.makespan <= quick.claim.makespan


@pytest.mark.parametrize("problem", PEAK_FIRST, ids=lambda problem: problem.name)
@pytest.mark.full
def test_no_peak_is_below_the_least_of_all_plans(problem: Problem) -> None:
    best = BruteForce().solve(problem, SolveOptions())
    result = PeakBisection().solve(problem, SolveOptions())

    assert best.status in (SolveStatus.INFEASIBLE, SolveStatus.OPTIMAL)
    if best.plan is None:
        assert result.plan is None
    elif result.plan is not None:
        assert check(problem, result.plan) == ()
        assert result.plan.claim.peak_spm >= best.plan.claim.peak_spm >= result.bound
