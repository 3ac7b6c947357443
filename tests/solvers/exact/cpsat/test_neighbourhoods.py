"""Neighbourhoods of a plan: never worse, within their share, repeatable, interruptible."""

from typing import Any

import pytest

from spmilp.checker.check import check
from spmilp.plan.file import plan_bytes
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.cpsat.solver import TURN, CpSatOptions, CpSatSearch, CpSatSolver
from spmilp.solvers.schedule.solver import ListScheduler
from tests.solvers.chains import chain, star

pytestmark = pytest.mark.full

PROBLEM = chain(star(2, 1280), layers=3, strips=5)
START = ListScheduler().solve(PROBLEM, SolveOptions())
LIMIT = 0.3


def solved(limit: float) -> SolverResult:
    return CpSatSolver(CpSatOptions(deterministic_limit=limit)).solve(PROBLEM, SolveOptions())


def test_neighbourhoods_improve_a_plan_within_their_share() -> None:
    assert START.plan is not None
    search = CpSatSearch(SearchContext(PROBLEM, SolveOptions()), CpSatOptions(), START)
    search.clock.deterministic = LIMIT
    search.offer(START.plan)

    search.improve()

    assert not check(PROBLEM, search.incumbent.plan)
    assert search.incumbent.plan.claim.makespan < START.plan.claim.makespan
    assert search.clock.spent <= TURN.share * LIMIT + 0.05


def test_the_same_limit_of_deterministic_time_gives_the_same_bytes() -> None:
    first, second = (solved(limit=LIMIT).plan for _ in range(2))

    assert second is not None
    assert first.claim.makespan < START.plan.claim.makespan
    assert plan_bytes(first, PROBLEM) == plan_bytes(second, PROBLEM)


def test_an_interrupt_keeps_what_earlier_turns_have_found(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[int] = []
    find_plans = CpSatSearch.find_plans

    def interrupted(search: CpSatSearch, *arguments: Any, **named: Any) -> Any:
        known.append(search.incumbent.plan.claim.makespan)
        if len(known) == 3:
            raise KeyboardInterrupt
        return find_plans(search, *arguments, **named)

    monkeypatch.setattr(CpSatSearch, "find_plans", interrupted)
    result = solved(limit=4 * LIMIT)

    assert result.interrupted
    assert result.plan.claim.makespan == known[-1] < START.plan.claim.makespan
    assert not check(PROBLEM, result.plan)
