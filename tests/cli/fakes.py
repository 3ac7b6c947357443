"""Solvers that answer the worked example in every way that a solver can answer."""

import os
import signal
from collections.abc import Callable

from checker.worked_example import PLAN
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus


class FakeSolver:
    """Gives one answer; may be interrupted before or after it has a plan."""

    name = "fake"

    def __init__(self, result: SolverResult, before: Callable[[], None] = lambda: None) -> None:
        self.result = result
        self.before = before
        self.options: SolveOptions | None = None

    def solve(
        self, problem: Problem, options: SolveOptions, hint: Plan | None = None
    ) -> SolverResult:
        self.options = options
        self.before()
        return self.result


def answer(
    plan: Plan | None = PLAN,
    status: SolveStatus = SolveStatus.FEASIBLE,
    bound: int = 150,
    reason: str = "",
) -> SolverResult:
    return SolverResult(
        status=status, plan=plan, bound=bound, bound_source="by hand", reason=reason
    )


def interrupted_with_a_plan(number: signal.Signals) -> Callable[[], None]:
    """Behave as a solver that catches the interrupt."""

    def before() -> None:
        try:
            os.kill(os.getpid(), number)
            signal.sigtimedwait([], 1)
        except KeyboardInterrupt:
            return

    return before


def interrupted_without_a_plan(number: signal.Signals) -> Callable[[], None]:
    """Behave as a solver that has nothing to return yet."""

    def before() -> None:
        os.kill(os.getpid(), number)
        signal.sigtimedwait([], 1)

    return before
