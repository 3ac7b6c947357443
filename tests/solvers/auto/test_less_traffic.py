"""At the makespan that was reached, a plan that moves fewer bytes is looked for."""

from dataclasses import replace

import pytest

from spmilp.checker.check import check
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers import auto as module
from spmilp.solvers.auto import Auto, Member
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.justify.shortening import excess_of, with_less_traffic
from spmilp.solvers.schedule.solver import ListScheduler
from tests.solvers.chains import chain, star

PROBLEM = chain(star(4, 2_048, rate=64, setup=1), layers=3, strips=8)
"""Each of four cores needs every layer's weights, and a neighbour has them already."""


def greedy(problem: Problem) -> Plan:
    solver = ListScheduler(greedy=("contiguous", "layer_by_layer"))
    plan = solver.solve(problem, SolveOptions()).plan
    assert plan is not None
    return plan


def test_copies_take_the_place_of_loads_and_nothing_gets_longer() -> None:
    plan, context = greedy(PROBLEM), SearchContext(PROBLEM, SolveOptions())
    least = compulsory_dram_traffic(PROBLEM)
    assert excess_of(context, plan) == plan.claim.dram_traffic - least > 0

    found = with_less_traffic(context, plan)

    assert check(PROBLEM, found) == ()
    assert found.claim.makespan <= plan.claim.makespan
    assert found.claim.dram_traffic - least < (plan.claim.dram_traffic - least) / 2
    assert with_less_traffic(SearchContext(PROBLEM, SolveOptions()), plan) == found


@pytest.mark.parametrize("first", [Quantity.MAKESPAN, Quantity.PEAK_SPM])
def test_the_portfolio_ends_with_it_where_plans_are_made_short(
    first: Quantity, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = replace(PROBLEM, objective=Objective.of(first))
    member = Member(name="greedy", until=1.0, make=_greedy)
    monkeypatch.setattr(module, "members_for", lambda problem: (member,))
    plan = greedy(problem)
    result = Auto().solve(problem, SolveOptions(), plan)

    assert result.plan is not None
    assert result.violations(problem) == ()
    assert (result.plan.claim.dram_traffic < plan.claim.dram_traffic) == (
        first is Quantity.MAKESPAN
    )


def _greedy(options: SolveOptions) -> Solver:
    return ListScheduler(greedy=("contiguous", "layer_by_layer"))
