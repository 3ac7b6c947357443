"""What every solver takes and returns."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from spmilp.checker.check import Verdict
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Pace


class SolveStatus(StrEnum):
    """How a solver stopped.

    ``optimal``
        The plan's objective equals a proven bound.
    ``feasible``
        There is a plan, and it may not be the best.
    ``infeasible``
        Proven: no valid plan exists. ``SolverResult.reason`` says why in words.
    ``unknown``
        A limit was reached without a plan and without a proof.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Something a solver has to say while it works."""

    incumbent: int | None
    bound: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions:
    """Limits and settings that all solvers understand.

    Parameters
    ----------
    time_limit
        Wall seconds, with those to make, check and write the plan; ``None`` for the solver's own
        end. A solver that can find a plan at once does so however short it is.
    gap
        Stop when ``(objective - bound) / objective`` is at most this.
    seed
        The same seed, options and input give the same plan when ``workers`` is 1 and no time limit
        strikes.
    on_progress
        Called with each improvement.
    on_warning
        Called with what has gone wrong where there is an answer all the same.
    pace
        How quick this machine is, from what was done before.
    verdicts
        The checker's on plans that are known before, so that they need not be checked again.
    """

    time_limit: float | None = None
    gap: float = 0.0
    seed: int = 0
    workers: int = 1
    on_progress: Callable[[Progress], None] | None = None
    on_warning: Callable[[str], None] = warnings.warn
    pace: Pace = field(default_factory=Pace, compare=False, repr=False)
    verdicts: tuple[Verdict, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverResult:
    """A solver's answer; what it does not have is ``None``, never 0.

    ``bound`` is proven for the problem's first quantity. ``reason`` says why there is no plan, with
    the object and both numbers. ``interrupted`` says whether a ``KeyboardInterrupt`` has cut the
    search short; ``verdict`` is the checker's on this very plan, ``None`` where it was not asked.
    """

    status: SolveStatus
    plan: Plan | None
    bound: int
    bound_source: str
    reason: str = ""
    interrupted: bool = False
    verdict: Verdict | None = field(default=None, compare=False, repr=False)

    def violations(self, problem: Problem) -> tuple[Violation, ...]:
        """Return what the checker finds wrong with the plan; it is asked unless it was before."""
        verdict = self.verdict_on(problem)
        return () if verdict is None else verdict.violations

    def verdict_on(self, problem: Problem) -> Verdict | None:
        """Return the checker's verdict on the plan, if there is one."""
        if self.plan is None:
            return None
        if self.verdict is not None and self.verdict.is_on(problem, self.plan):
            return self.verdict
        return Verdict.on(problem, self.plan)
