"""Several processes try moves: the plan is that of one alone, whatever becomes of the others."""

import os
import signal

import pytest

from spmilp.plan.plan import Plan
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.improve import solver
from spmilp.solvers.improve.crew import Crew
from spmilp.solvers.improve.solver import LnsSolver
from tests.solvers.chains import chain, star
from tests.solvers.schedules import listed

pytestmark = pytest.mark.full

PROBLEM = chain(star(4, 4096), layers=4, strips=12)


def solved(workers: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Plan | None, list[str]]:
    monkeypatch.setattr(solver, "TASKS_WORTH_CREW", 0)
    warnings: list[str] = []
    options = SolveOptions(workers=workers, on_warning=warnings.append)
    return LnsSolver().solve(PROBLEM, options, listed(PROBLEM)).plan, warnings


def dead_but_here(parent: int, thing: object, question: str) -> str | None:
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return None if question == "nothing" else question


def even(thing: str, other: str, question: int) -> str | None:
    return None if question % 2 else f"{thing} {other} {question}"


def test_more_workers_find_the_same_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    first = Crew.first

    def noted(self: Crew, *given: object) -> object:
        asked.append(len(given[2]))  # type: ignore[arg-type]
        return first(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Crew, "first", noted)
    assert solved(3, monkeypatch) == solved(1, monkeypatch)
    assert 3 in asked


def test_the_first_answer_counts_and_news_are_told() -> None:
    with Crew(2, pytest.fail) as crew:
        assert crew.first(even, ("a", "b"), (1, 3, 5)) is None
        assert crew.first(even, ("a", "b"), (1, 4, 6)) == (1, "a b 4")
        assert crew.first(even, ("a", "c"), (1, 3, 6)) == (2, "a c 6")


def test_a_killed_child_is_left_out_with_a_warning() -> None:
    warnings: list[str] = []
    with Crew(1, warnings.append) as crew:
        here = os.getpid()
        assert crew.first(dead_but_here, (here, ""), ("nothing", "found")) is None
        assert crew.size == 1
        assert crew.first(dead_but_here, (here, ""), ("found",)) == (0, "found")
    (warning,) = warnings
    assert "ended by SIGKILL" in warning
