"""Random tiny problems, beside an exhaustive search; each number is one, always the same."""

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from spmilp.checker.check import check
from spmilp.plan.measures import measure
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.traffic.solver import Residency
from tests.oracle.solver import BruteForce
from tests.solvers.tiny_problems import tiny_problem

pytestmark = pytest.mark.full

MOST_STATES = 1_000
"""With three times as many, no other problem is decided."""
BYTES = (Quantity.DRAM_TRAFFIC, Quantity.ENERGY)


@cache
def problem(number: int, quantity: Quantity) -> Problem:
    return replace(tiny_problem(number), objective=Objective.of(quantity))


@cache
def found(number: int, quantity: Quantity) -> SolverResult:
    return Residency().solve(problem(number, quantity), SolveOptions())


@cache
def best(number: int, quantity: Quantity) -> SolverResult:
    return BruteForce(MOST_STATES).solve(problem(number, quantity), SolveOptions())


def value(number: int, quantity: Quantity) -> int | None:
    """Return what a plan costs that the checker accepts."""
    plan = found(number, quantity).plan
    if plan is None:
        return None
    assert check(problem(number, quantity), plan) == ()
    parts = (plan.placements, plan.residencies, plan.transfers)
    return measure(problem(number, quantity), *parts).of(quantity)


ON_ONE_SCRATCHPAD = [
    number for number in range(80) if len(problem(number, Quantity.DRAM_TRAFFIC).machine.spms) == 1
]


@pytest.mark.parametrize("quantity", BYTES)
@pytest.mark.parametrize("number", ON_ONE_SCRATCHPAD)
def test_no_plan_is_below_the_optimum(number: int, quantity: Quantity) -> None:
    exact, cost = best(number, quantity), value(number, quantity)

    if exact.status is SolveStatus.OPTIMAL:
        assert cost is not None
        assert cost >= exact.bound
    if exact.status is SolveStatus.INFEASIBLE:
        assert cost is None


def test_plans_on_one_scratchpad_are_optimal() -> None:
    counts = Counter(
        value(number, Quantity.DRAM_TRAFFIC) == best(number, Quantity.DRAM_TRAFFIC).bound
        for number in ON_ONE_SCRATCHPAD
        if best(number, Quantity.DRAM_TRAFFIC).status is SolveStatus.OPTIMAL
    )

    assert counts == {True: 15}


@pytest.mark.parametrize("number", range(100, 130))
def test_plans_on_several_scratchpads_are_valid(number: int) -> None:
    cost = value(number, Quantity.DRAM_TRAFFIC)

    assert cost is None or cost >= found(number, Quantity.DRAM_TRAFFIC).bound
