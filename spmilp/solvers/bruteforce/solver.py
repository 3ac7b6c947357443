"""Brute force as a solver: slow, plain, and the oracle for the others."""

from collections.abc import Sequence
from dataclasses import replace

from spmilp.bounds.bound import Bound
from spmilp.plan.measures import Measures, claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.solvers.base import SolverResult
from spmilp.solvers.bruteforce.reasons import least_peak, why_no_plan, why_too_small
from spmilp.solvers.bruteforce.reconstruct import Reconstruction
from spmilp.solvers.bruteforce.search import LimitReachedError, Limits, Search
from spmilp.solvers.bruteforce.tables import ProblemTables
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.units import Bytes

MOST_STATES = 200_000
"""States looked at before the search gives up; they take about a gigabyte."""

NAME = "bruteforce"
SOURCE = "exhaustive search"


class BruteForce(Solver):
    """Finds the best plan of a tiny problem, in all quantities of its objective, or proves none.

    See :mod:`spmilp.solvers.bruteforce` for why the search is exhaustive.

    Parameters
    ----------
    most_states
        States to look at before it gives up.
    """

    name = NAME

    def __init__(self, most_states: int = MOST_STATES) -> None:
        self._most_states = most_states

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan (a ``hint`` is of no use to it).

        The status is ``optimal`` as soon as the first quantity is proven; the option
        ``tie_breakers`` of the plan says whether the others are, too.
        """
        return _Run(context, Limits(context.clock, self._most_states)).result()


class _Run:
    def __init__(self, context: SearchContext, limits: Limits) -> None:
        self._context = context
        self._problem = problem = context.problem
        self._limits = limits
        self._least_peak = least_peak(problem)
        self._best: tuple[Plan, Measures] | None = None
        self._ceilings: dict[Quantity, int] = {}
        self._peak: Bytes | None = None
        is_peak = problem.objective.first is Quantity.PEAK_SPM
        self._bound = Bound(SOURCE, problem.objective.first, self._least_peak if is_peak else 0)

    def result(self) -> SolverResult:
        """Search, and say how it ended."""
        reason = why_too_small(ProblemTables(self._problem))
        if reason:
            return self._context.infeasible(reason, self._bound)
        is_over = False
        try:
            with self._context.until_interrupted(lambda: self._best is not None):
                self._search()
                is_over = True
        except LimitReachedError as stopped:
            if not self._ceilings:
                self._prove(stopped.bound)
        if self._best is None:
            states = self._limits.states
            if is_over:
                reason = why_no_plan(self._problem, states)
                return self._context.infeasible(reason, self._bound)
            reason = f"the limit came after {states} states, before the first plan"
            return self._context.unknown(reason, self._bound)
        plan, measures = self._best
        if is_over:
            self._prove(measures.of(self._problem.objective.first))
        options = (("tie_breakers", "proven" if is_over else "open"),)
        return self._context.found(plan, self._bound, NAME, options)

    def _prove(self, value: int) -> None:
        self._bound = replace(self._bound, value=max(value, self._bound.value))

    def _search(self) -> None:
        """Minimise one quantity after the other, and keep it at its minimum.

        Quantities that add up along a plan are taken together, but those that rank before the
        makespan come first on their own: then cycles do not count yet, and the search is short.
        """
        for stage in stages(self._problem.objective.order):
            found = (
                self._lower_the_peak()
                if Quantity.PEAK_SPM in stage
                else self._find(stage, self._peak)
            )
            if not found:
                return
            for quantity in stage:
                self._ceilings[quantity] = self._value(quantity)
            if Quantity.PEAK_SPM in stage:
                self._peak = self._value(Quantity.PEAK_SPM)
            self._report()

    def _lower_the_peak(self) -> bool:
        """Find a plan within the ceilings, then such plans in fewer bytes, until there is none."""
        if self._best is None and not self._find((), None):
            return False
        while self._value(Quantity.PEAK_SPM) > self._least_peak:
            if not self._find((), self._value(Quantity.PEAK_SPM) - 1):
                break
        return True

    def _find(self, order: Sequence[Quantity], peak: Bytes | None) -> bool:
        """Find the best plan within the ceilings; say whether there is one."""
        ceilings = dict(self._ceilings)
        ceilings.pop(Quantity.PEAK_SPM, None)
        search = Search(ProblemTables(self._problem, peak), order, ceilings, self._limits)
        path = search.best_path()
        if path is None:
            return False
        parts = Reconstruction(search, path).parts()
        measures = measure(self._problem, parts.placements, parts.residencies, parts.transfers)
        plan = Plan(
            placements=parts.placements,
            residencies=parts.residencies,
            transfers=parts.transfers,
            tensors=parts.tensors,
            claim=claim_of(measures, 0, SOURCE),
            solver=NAME,
        )
        self._best = plan, measures
        return True

    def _value(self, quantity: Quantity) -> int:
        return 0 if self._best is None else self._best[1].of(quantity)

    def _report(self) -> None:
        """Note that the first quantity is proven, once it is."""
        value = self._value(self._problem.objective.first)
        self._prove(value)
        self._context.report(value, self._bound.value, NAME)


def stages(order: Sequence[Quantity]) -> list[tuple[Quantity, ...]]:
    """Return the quantities in the groups in which they are minimised."""
    groups: list[tuple[Quantity, ...]] = []
    for quantity in order:
        is_alone = quantity in (Quantity.PEAK_SPM, Quantity.MAKESPAN)
        if not groups or is_alone or groups[-1] == (Quantity.PEAK_SPM,):
            groups.append((quantity,))
        else:
            groups[-1] += (quantity,)
    return groups
