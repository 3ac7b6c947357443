"""Searches beside another one: their plans are taken, and their ends are survived."""

import os
import signal
from pathlib import Path

import pytest

from spmilp.plan.plan import Plan
from spmilp.problem.file import read_problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.improve import solver
from spmilp.solvers.improve.solver import LnsSolver
from spmilp.solvers.schedule.solver import ListScheduler

pytestmark = pytest.mark.full

PROBLEM = read_problem(Path(__file__).parents[3] / "instances" / "problems" / "fft-32t.json")


def thorough(context: SearchContext) -> Plan | None:
    return LnsSolver().search(context).plan


def die(context: SearchContext) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def solved(workers: int, warnings: list[str]) -> Plan | None:
    hint = ListScheduler().solve(PROBLEM, SolveOptions()).plan
    options = SolveOptions(time_limit=12.0, workers=workers, on_warning=warnings.append)
    return LnsSolver().solve(PROBLEM, options, hint).plan


def test_the_plan_of_another_search_is_the_answer_where_it_is_the_shortest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # This one finds nothing by itself.
    monkeypatch.setattr(solver, "improved_hint", thorough)
    monkeypatch.setattr(solver.Search, "_step_by_step", lambda *_: None)
    monkeypatch.setattr(solver.Search, "_candidates", lambda self: [self._candidate(self._hint)[0]])
    monkeypatch.setattr(solver.Search, "_repack", lambda self, one: self._offer(one, "first"))
    alone, together, warnings = solved(1, []), solved(2, warnings := []), warnings
    assert alone is not None
    assert together is not None
    assert together.claim.makespan < alone.claim.makespan
    assert warnings == []


def test_a_search_whose_neighbours_are_killed_goes_on_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(solver, "improved_hint", die)
    warnings: list[str] = []
    found, alone = solved(2, warnings), solved(1, [])
    assert found is not None
    assert alone is not None
    assert found.claim.makespan <= 1.02 * alone.claim.makespan
    assert warnings
    assert all("ended by SIGKILL" in one for one in warnings)
