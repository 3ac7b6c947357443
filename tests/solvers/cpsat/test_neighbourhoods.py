"""Neighbourhoods of a plan: never worse, repeatable, interruptible, and the kind that pays next."""

from typing import Any

import pytest
from ortools.sat.python import cp_model

from spmilp.checker.check import check
from spmilp.plan.write import plan_bytes
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.cpsat import inquiry, phases
from spmilp.solvers.cpsat.inquiry import Limits, Way
from spmilp.solvers.cpsat.options import CpSatOptions, CpSatState
from spmilp.solvers.cpsat.phases import FIRST, SHARE, improve_around
from spmilp.solvers.cpsat.solver import CpSatSolver
from spmilp.solvers.formulation.candidates import scope_of_residencies
from spmilp.solvers.list_scheduler.solver import ListScheduler
from tests.solvers.chains import chain, star

PROBLEM = chain(star(2, 1280), layers=3, strips=5)
START = ListScheduler().solve(PROBLEM, SolveOptions())
LIMIT = 0.3


def state_at_start(limit: float = LIMIT) -> CpSatState:
    """Return the state of a search that knows the list scheduler's plan."""
    assert START.plan is not None
    context = SearchContext(PROBLEM, SolveOptions())
    state = CpSatState(context, CpSatOptions(), START, "cpsat")
    state.clock.deterministic = limit
    state.offer(START.plan)
    return state


def solved(limit: float) -> SolverResult:
    return CpSatSolver(CpSatOptions(deterministic_limit=limit)).solve(PROBLEM, SolveOptions())


def test_neighbourhoods_improve_a_plan_within_their_share() -> None:
    state = state_at_start()
    improve_around(state)

    assert START.plan is not None
    assert state.incumbent.plan is not None
    assert not check(PROBLEM, state.incumbent.plan)
    assert state.incumbent.plan.claim.makespan < START.plan.claim.makespan
    assert state.clock.spent <= SHARE * LIMIT + 0.05


def test_the_same_limit_of_deterministic_time_gives_the_same_bytes() -> None:
    first, second = (solved(limit=LIMIT).plan for _ in range(2))

    assert first is not None
    assert second is not None
    assert START.plan is not None
    assert first.claim.makespan < START.plan.claim.makespan
    assert plan_bytes(first, PROBLEM) == plan_bytes(second, PROBLEM)


def test_without_any_limit_they_end() -> None:
    problem = chain(star(2, 1536), layers=1, strips=2)
    start = ListScheduler().solve(problem, SolveOptions())
    assert start.plan is not None
    context = SearchContext(problem, SolveOptions())
    state = CpSatState(context, CpSatOptions(), start, "cpsat")
    state.offer(start.plan)
    improve_around(state)

    assert state.incumbent.plan is not None
    assert state.incumbent.plan.claim.makespan <= start.plan.claim.makespan


def test_an_interrupt_keeps_what_earlier_turns_have_found(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    find_plans = phases.find_plans

    def interrupted(state: CpSatState, *arguments: Any) -> Any:
        assert state.incumbent.plan is not None
        if turns and turns[-1] > state.incumbent.plan.claim.makespan:
            raise KeyboardInterrupt
        turns.append(state.incumbent.plan.claim.makespan)
        return find_plans(state, *arguments)

    monkeypatch.setattr(phases, "find_plans", interrupted)
    options = CpSatOptions(
        deterministic_limit=2 * LIMIT, retime=False, load_relaxation=False, retention=False
    )
    result = CpSatSolver(options).solve(PROBLEM, SolveOptions())

    assert result.interrupted
    assert result.plan is not None
    assert result.plan.claim.makespan < turns[-1]
    assert not check(PROBLEM, result.plan)


def test_only_the_search_for_neighbours_runs_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[bool, bool]] = []
    solver_within = inquiry.solver_within

    def noted(limits: Limits) -> cp_model.CpSolver:
        solver = solver_within(limits)
        made.append((limits.way is Way.NEIGHBOURHOODS, solver.parameters.use_lns_only))
        return solver

    monkeypatch.setattr(inquiry, "solver_within", noted)
    state = state_at_start(FIRST)
    improve_around(state)

    assert made
    assert all(wanted and alone for wanted, alone in made)


def test_only_the_residencies_of_a_plan_are_there_and_their_filling_is_open() -> None:
    state = state_at_start()
    reading = state.reading()
    assert reading is not None
    whole = state.builder.scope(relaxed=False)
    scope = scope_of_residencies(state.tables, reading, whole)

    assert START.plan is not None
    assert scope.fills is scope.servers is None
    assert [pool for (pool,) in scope.pools] == list(state.tables.pools_of_plan(START.plan))
    assert set(scope.candidates) < set(whole.candidates)
