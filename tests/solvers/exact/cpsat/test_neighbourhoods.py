"""Neighbourhoods of a plan: never worse, repeatable, interruptible, and the kind that pays next."""

from typing import Any

import pytest

from spmilp.checker.check import check
from spmilp.plan.file import plan_bytes
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.cpsat import phases
from spmilp.solvers.exact.cpsat.phases import SHARE, CpSatOptions, CpSatState, improve_around
from spmilp.solvers.exact.cpsat.solver import CpSatSolver
from spmilp.solvers.schedule.solver import ListScheduler
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


@pytest.mark.full
def test_neighbourhoods_improve_a_plan_within_their_share() -> None:
    state = state_at_start()
    improve_around(state)

    assert START.plan is not None
    assert state.incumbent.plan is not None
    assert not check(PROBLEM, state.incumbent.plan)
    assert state.incumbent.plan.claim.makespan < START.plan.claim.makespan
    assert state.clock.spent <= SHARE * LIMIT + 0.05


@pytest.mark.full
def test_the_same_limit_of_deterministic_time_gives_the_same_bytes() -> None:
    first, second = (solved(limit=LIMIT).plan for _ in range(2))

    assert first is not None
    assert second is not None
    assert START.plan is not None
    assert first.claim.makespan < START.plan.claim.makespan
    assert plan_bytes(first, PROBLEM) == plan_bytes(second, PROBLEM)


@pytest.mark.full
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
    options = CpSatOptions(deterministic_limit=2 * LIMIT, retime=False)
    result = CpSatSolver(options).solve(PROBLEM, SolveOptions())

    assert result.interrupted
    assert result.plan is not None
    assert result.plan.claim.makespan < turns[-1]
    assert not check(PROBLEM, result.plan)
