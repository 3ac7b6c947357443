"""The portfolio behind ``--solver auto``."""

from dataclasses import dataclass, replace
from time import monotonic

from spmilp.checker.check import check
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.auto.members import members_for
from spmilp.solvers.base import Progress, SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver

LEAST_SECONDS = 0.5
"""For a member, when those before it have taken all the time."""


class Auto(Solver):
    """Lets several solvers work on one problem, each from the best plan of those before it.

    It returns the best of their plans, and the best of their bounds, so it is never worse than any
    of them, nor than a valid hint. A time limit is shared out
    (:mod:`~spmilp.solvers.auto.members`); what a member leaves of its share goes to the next ones.
    Without one each works to its own end.
    """

    name = "auto"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found."""
        problem, options, hint = context.problem, context.options, context.hint
        course = _Course(problem, options, hint)
        for member in members_for(problem):
            own = course.options_until(member.until)
            if own is None:
                break
            try:
                course.take(member.make(own).solve(problem, own, course.plan))
            except KeyboardInterrupt:
                if course.result is None:
                    raise
                course.interrupt()
            if course.is_over():
                break
        return course.answer()


@dataclass(slots=True)
class _Known:
    """What the members have found so far."""

    incumbent: int | None = None
    bound: int = 0


class _Course:
    def __init__(self, problem: Problem, options: SolveOptions, hint: Plan | None) -> None:
        self._problem = problem
        self._options = options
        self._began = monotonic()
        self._known = _Known()
        self._hint = hint
        self.plan = hint
        self.result: SolverResult | None = None

    def options_until(self, share: float) -> SolveOptions | None:
        """Return the options of the member that may work until a share of the time has passed.

        ``None`` when the time is over and there is a plan.
        """
        limit = self._options.time_limit
        if limit is not None:
            limit = share * limit - (monotonic() - self._began)
            if limit < LEAST_SECONDS and self.result is not None and self.result.plan is not None:
                return None
            limit = max(LEAST_SECONDS, limit)
        return replace(self._options, time_limit=limit, on_progress=self._tell)

    def take(self, result: SolverResult) -> None:
        """Keep the better plan, and the better bound."""
        if self.result is None:
            self.result = result
        else:
            self.result = self._better(self.result, result)
        if self.result.plan is not None:
            self.plan = self.result.plan

    def interrupt(self) -> None:
        """Note that the user wants what there is."""
        if self.result is not None:
            self.result = replace(self.result, interrupted=True)

    def is_over(self) -> bool:
        """Say whether nothing is left to do."""
        result = self.result
        if result is None:
            return False
        if result.interrupted or result.status is SolveStatus.INFEASIBLE:
            return True
        if result.plan is None:
            return False
        value = self._values(result.plan)[0]
        return value - result.bound <= self._options.gap * value

    def answer(self) -> SolverResult:
        """Return the best plan with the best bound.

        Raises
        ------
        RuntimeError
            If no member has answered.
        """
        result = self.result
        if result is None:
            raise RuntimeError("a portfolio without members")
        if self._hint_is_better():
            result = replace(result, plan=self._hint, reason="")
        if result.plan is None:
            return result
        claim = replace(result.plan.claim, bound=result.bound, bound_source=result.bound_source)
        optimal = self._values(result.plan)[0] == result.bound
        return replace(
            result,
            plan=replace(result.plan, claim=claim),
            status=SolveStatus.OPTIMAL if optimal else SolveStatus.FEASIBLE,
        )

    def _hint_is_better(self) -> bool:
        """Say whether the hint beats all members; only then is it worth checking."""
        if self._hint is None or self.result is None:
            return False
        found = self.result.plan
        if found is not None and self._values(found) <= self._values(self._hint):
            return False
        return not check(self._problem, self._hint)

    def _better(self, one: SolverResult, other: SolverResult) -> SolverResult:
        """Return the result with the better plan (the first, if equal), and the better bound."""
        best = one
        proves = other.status is SolveStatus.INFEASIBLE
        if other.plan is not None:
            if one.plan is None or self._values(other.plan) < self._values(one.plan):
                best = other
        elif one.plan is None and proves:
            best = other
        high = other if other.bound > one.bound else one
        return replace(
            best,
            bound=high.bound,
            bound_source=high.bound_source,
            interrupted=one.interrupted or other.interrupted,
        )

    def _values(self, plan: Plan) -> tuple[int, ...]:
        measures = claimed(plan.claim)
        return tuple(measures.of(quantity) for quantity in self._problem.objective.order)

    def _tell(self, progress: Progress) -> None:
        """Pass on what is better than all before, with the best of the other."""
        known, found = self._known, progress.incumbent
        is_better = found is not None and (known.incumbent is None or found < known.incumbent)
        if is_better:
            known.incumbent = found
        is_news = is_better or progress.bound > known.bound
        known.bound = max(known.bound, progress.bound)
        if is_news and self._options.on_progress is not None:
            self._options.on_progress(
                Progress(incumbent=known.incumbent, bound=known.bound, source=progress.source)
            )
