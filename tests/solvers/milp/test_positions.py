"""Programs of orders on one core: bounds below every plan, plans that are valid, limits kept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spmilp import load_problem
from spmilp.checker.check import check
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.bruteforce.solver import BruteForce
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.milp.messages import Limits
from spmilp.solvers.milp.options import MilpOptions
from spmilp.solvers.milp.positions.model import PositionModel
from spmilp.solvers.milp.positions.tables import (
    PositionTables,
    is_for_positions,
    number_of_orders,
)
from spmilp.solvers.milp.process import run
from spmilp.solvers.milp.solver import MilpSolver
from tests.solvers.tiny_problems import tiny_problem

MOST_STATES = 1000
TOO_LARGE = {18, 355}
"""Problems whose brute force would take seconds."""
BLOCK = 260
BY_POSITION = MilpOptions(formulations=("position",))
INSTANCES = Path(__file__).parents[3] / "instances" / "problems"
LIMITS = Limits(seconds=None, threads=1, seed=0)


def short(number: int) -> Problem:
    """Return a tiny problem whose makespan is to be made small."""
    return replace(tiny_problem(number), objective=Objective.of(Quantity.MAKESPAN))


def optimum(problem: Problem) -> int | None:
    """Return the least makespan, if brute force can prove it soon."""
    found = BruteForce(MOST_STATES).solve(problem, SolveOptions())
    return found.bound if found.status is SolveStatus.OPTIMAL else None


def by_position(problem: Problem, **settings: int) -> SolverResult:
    return MilpSolver(replace(BY_POSITION, **settings)).solve(problem, SolveOptions())


@pytest.mark.parametrize("first", range(0, 780, BLOCK))
def test_no_bound_exceeds_the_optimum_and_most_reach_it(first: int) -> None:
    compared = reached = 0
    for number in range(first, first + BLOCK):
        problem = short(number)
        is_able = is_for_positions(problem) and number not in TOO_LARGE
        best = optimum(problem) if is_able else None
        if best is None:
            continue
        found = by_position(problem)
        if found.plan is None:
            continue
        assert check(problem, found.plan) == ()
        assert found.bound <= best <= found.plan.claim.makespan, number
        compared += 1
        reached += found.bound == best
    assert compared >= 20
    assert reached >= 0.8 * compared


@pytest.mark.parametrize("number", [7, 60])
def test_what_the_first_tasks_prove_is_no_more_than_what_the_whole_order_does(number: int) -> None:
    problem = chained(number)
    tables = PositionTables(problem)
    order = tuple(problem.topological_order())
    minima = []
    for length in range(len(order) + 1):
        model = PositionModel(tables, order[:length], floor=0, ceiling=10_000)
        minima.append(run(model.program, "HiGHS", LIMITS).bound)

    assert None not in minima
    assert minima == sorted(minima, key=lambda value: value or 0)
    assert len(order) > 1


def chained(number: int) -> Problem:
    """Return the first tiny problem from a number on that has several tasks on one core."""
    while True:
        problem = short(number)
        if is_for_positions(problem) and len(problem.tasks) > 1 and optimum(problem):
            return problem
        number += 1


def test_ten_tight_tasks_in_a_row_are_solved_at_once() -> None:
    """Time-indexed models and CP-SAT leave a gap of one per cent after a minute."""
    problem = load_problem(INSTANCES / "autoencoder-10t-1c-exact-traffic.json")
    told: list[Progress] = []

    found = MilpSolver(BY_POSITION).solve(problem, SolveOptions(on_progress=told.append))

    assert found.status is SolveStatus.OPTIMAL
    assert found.bound == 37_156
    assert found.bound_source == "milp by positions (HiGHS)"
    assert found.plan is not None
    assert check(problem, found.plan) == ()
    assert told[-1].bound == 37_156


def test_a_number_of_programs_is_kept_and_what_they_prove_counts() -> None:
    problem = load_problem(INSTANCES / "residual-6t-1c-tight-balanced.json")

    none, some = by_position(problem, most_orders=0), by_position(problem, most_orders=4)
    again = by_position(problem, most_orders=4)

    assert none.bound < some.bound < 138_964
    assert again == some
    assert some.plan is not None
    assert check(problem, some.plan) == ()


def test_a_second_search_goes_on_where_the_first_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load_problem(INSTANCES / "attention-8t-1c-verytight-balanced-peakspm.json")
    problem = replace(problem, objective=Objective.of(Quantity.MAKESPAN))
    begun: list[tuple[int, ...]] = []
    start_of = PositionModel.__init__

    def noted(self: PositionModel, *given: Any) -> None:
        begun.append(tuple(given[1]))
        start_of(self, *given)

    monkeypatch.setattr(PositionModel, "__init__", noted)
    context = SearchContext(problem, SolveOptions())
    first = MilpSolver(replace(BY_POSITION, most_orders=5)).search(context.member(None, None))
    of_first = len(begun)
    last = MilpSolver(BY_POSITION).search(context.member(None, first.plan))
    of_last = len(begun) - of_first
    alone = MilpSolver(BY_POSITION).solve(problem, SolveOptions(), first.plan)

    assert (last.status, last.bound) == (alone.status, alone.bound)
    assert last.status is SolveStatus.OPTIMAL
    assert first.bound < last.bound
    # Besides the one that is no better than its own plan, what was left undone is begun again.
    assert of_last < len(begun) - of_first - of_last


def test_both_formulations_together_prove_what_positions_alone_cannot() -> None:
    problem = short(986)
    alone, both = by_position(problem), MilpSolver().solve(problem, SolveOptions())

    assert alone.bound < both.bound == optimum(problem)
    assert both.status is SolveStatus.OPTIMAL


def test_orders_are_counted_without_making_them() -> None:
    residual = load_problem(INSTANCES / "residual-6t-1c-tight-balanced.json")
    row = load_problem(INSTANCES / "autoencoder-10t-1c-exact-traffic.json")

    assert number_of_orders(residual, 1000) == 44
    assert number_of_orders(row, 1000) == 1
    assert number_of_orders(residual, 10) == 10


def test_other_objectives_and_several_cores_are_left_to_the_other_formulation() -> None:
    several = load_problem(INSTANCES / "residual-8t-2c-crossbar-verytight-balanced.json")
    residual = load_problem(INSTANCES / "residual-6t-1c-tight-balanced.json")

    assert is_for_positions(residual)
    assert not is_for_positions(several)
    assert not is_for_positions(replace(residual, objective=Objective.of(Quantity.PEAK_SPM)))
