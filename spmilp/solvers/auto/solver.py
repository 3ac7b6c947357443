"""The portfolio behind ``--solver auto``."""

from dataclasses import replace

from spmilp.bounds.bound import Bound
from spmilp.solvers.auto.members import Member, members_for
from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver

LEAST_SECONDS = 0.5
"""For a member, when those before it have taken all the time."""


class Auto(Solver):
    """Lets several solvers work on one problem, each from the best plan of those before it.

    It returns the best of their plans, and the best of their bounds, so it is never worse than any
    of them, nor than a valid hint. A time limit is shared out
    (:mod:`~spmilp.solvers.auto.members`); what a member leaves of its share goes to the next ones.
    Without one each works to its own end. All share one context, so that none computes again what
    another has found out about the problem.
    """

    name = "auto"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found.

        Raises
        ------
        RuntimeError
            If the portfolio has no members.
        """
        result: SolverResult | None = None
        for member in members_for(context.problem):
            own = _context_of(member, context, result)
            if own is None:
                break
            try:
                found = member.make(own.options).search(own)
            except KeyboardInterrupt:
                if result is None:
                    raise
                result = replace(result, interrupted=True)
                break
            result = found if result is None else context.better(result, found)
            if _is_over(context, result):
                break
        if result is None:
            raise RuntimeError("a portfolio without members")
        return _or_the_hint(context, result)


def _context_of(
    member: Member, context: SearchContext, result: SolverResult | None
) -> SearchContext | None:
    """Return the context of a member, with the best plan so far as its hint.

    ``None`` when the time is over and there is a plan.
    """
    plan = None if result is None else result.plan
    limit = context.clock.seconds_left(member.until)
    if limit is not None:
        if limit < LEAST_SECONDS and plan is not None:
            return None
        limit = max(LEAST_SECONDS, limit)
    return context.member(limit, plan or context.hint)


def _is_over(context: SearchContext, result: SolverResult) -> bool:
    """Say whether nothing is left to do."""
    if result.interrupted or result.status is SolveStatus.INFEASIBLE:
        return True
    return result.plan is not None and context.is_enough(
        context.values(result.plan)[0], result.bound
    )


def _or_the_hint(context: SearchContext, result: SolverResult) -> SolverResult:
    """Return the hint where it beats all members; only then is it worth checking."""
    hint = context.hint
    if hint is None or (
        result.plan is not None and context.values(result.plan) <= context.values(hint)
    ):
        return result
    if context.valid_hint is None:
        return result
    bound = Bound(result.bound_source, context.problem.objective.first, result.bound)
    return replace(context.found(hint, bound), interrupted=result.interrupted)
