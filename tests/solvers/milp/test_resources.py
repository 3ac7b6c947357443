"""Engines with channels and links that carry several transfers: three ways to say the same."""

from dataclasses import replace
from fractions import Fraction

import pytest

from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.milp import resources
from spmilp.solvers.milp.program import Linear
from spmilp.solvers.milp.solver import MilpSolver
from tests.oracle.solver import BruteForce
from tests.solvers.tiny_problems import tiny_problem


def shared(number: int) -> Problem:
    """Return a problem with two channels an engine, and links that more than one can use."""
    problem = tiny_problem(number)
    machine = problem.machine
    links = tuple(replace(link, rate=link.rate * Fraction(3, 2)) for link in machine.links)
    engines = tuple(replace(engine, channels=2) for engine in machine.engines)
    return replace(
        problem,
        machine=replace(machine, links=links, engines=engines),
        objective=Objective.of(Quantity.MAKESPAN),
    )


@pytest.mark.parametrize("most_sets", [resources.MOST_SETS, 0])
@pytest.mark.parametrize("number", [10, 104, 115])
def test_the_makespan_is_that_of_the_brute_force(
    monkeypatch: pytest.MonkeyPatch, number: int, most_sets: int
) -> None:
    monkeypatch.setattr(resources, "MOST_SETS", most_sets)
    oracle = BruteForce().solve(shared(number), SolveOptions())

    result = MilpSolver().solve(shared(number), SolveOptions())

    assert result.status is SolveStatus.OPTIMAL
    assert result.bound == oracle.bound


def test_many_forbidden_sets_behind_many_pairs_are_not_all_made() -> None:
    # 40 large users make 780 pairs; behind them 300 small ones make 4 million sets of three.
    amounts = [Fraction(2, 3)] * 40 + [Fraction(2, 5)] * 300
    users = [user(name, amount) for name, amount in enumerate(amounts)]

    assert resources._sets_if_few(users[:40], Fraction(1)) is not None
    assert resources._sets_if_few(users, Fraction(1)) is None


def user(name: int, amount: Fraction) -> resources.User:
    span = resources.Span(str(name), Linear(), Linear(), None, frozenset())
    return resources.User(span, amount, Linear())
