"""The base class of all solvers, and the best plan of one with the bound it is compared with."""

from abc import ABC, abstractmethod
from dataclasses import replace

from spmilp.bounds.best import Bound
from spmilp.plan.plan import Plan
from spmilp.problem.contradictions import refuse_contradictions
from spmilp.problem.pins import PinKind
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.fit import narrowed

PIN_RULES = ("pinned_core", "pinned_time", "pinned_memory", "pinned_address", "pinned_resident")

NARROWING = frozenset({PinKind.CORES, PinKind.NOT_BEFORE, PinKind.MEMORIES})
"""Kinds of pins that a narrowed problem expresses itself (:mod:`spmilp.solvers.common.fit`)."""


class Solver(ABC):
    """Finds plans for problems.

    Its plans keep to the kinds of pins that it ``keeps``. If it ``settles``,
    :mod:`spmilp.solvers.settling` changes them so that they keep to the pins that the search knows
    nothing of.
    """

    name: str
    keeps: frozenset[PinKind] = NARROWING
    settles = False

    @abstractmethod
    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found, no worse than a valid hint where the solver takes hints.

        A ``KeyboardInterrupt`` ends the search early: with a plan, the solver returns it as it
        does at the time limit; without one, the interrupt passes on.
        """

    def solve(
        self, problem: Problem, options: SolveOptions, hint: Plan | None = None
    ) -> SolverResult:
        """Search one problem by itself, in a context of its own.

        Raises a ``PinError`` if pins contradict each other.
        """
        refuse_contradictions(problem)
        within = narrowed(problem)
        context = SearchContext(within.problem, options, within.hint(hint))
        refused = " and ".join(sorted(problem.pins.kinds() - self.keeps))
        if refused:
            reason = f"solver {self.name} does not take pins of this kind: {refused}"
            return context.unknown(f"{reason}; others do (docs/pins.md)", context.fast_bound)
        result = self.search_within_pins(context)
        return replace(result, plan=within.plan(result.plan)) if result.plan else result

    def search_within_pins(self, context: SearchContext) -> SolverResult:
        """Search, and return no plan that breaks a pin."""
        if self.settles and context.problem.pins.kinds() - NARROWING:
            # It rests on packing, which takes time to load.
            from spmilp.solvers.settling import settled_search

            return settled_search(self.search, context)
        result = self.search(context)
        if result.plan is None or not context.problem.pins or context.accepts(result.plan):
            return result
        broken = [v for v in context.violations(result.plan) if v.rule in PIN_RULES]
        if not broken:
            return result
        return replace(
            result,
            status=SolveStatus.UNKNOWN,
            plan=None,
            verdict=None,
            reason=f"{self.name} found no plan that keeps to the pins: {broken[0].message}",
        )


class Incumbent:
    """The best plan so far, with its quantities in the objective's order, and the best bound.

    ``bound``, on the first quantity, is the one to begin with; ``source`` the solver's name in
    reports and bounds.
    """

    def __init__(self, context: SearchContext, bound: Bound, source: str) -> None:
        self._context = context
        self._source = source
        self.plan: Plan | None = None
        self.bound = bound
        self.values: tuple[int, ...] = ()

    @property
    def value(self) -> int | None:
        """The first quantity of the best plan; ``None`` before the first."""
        return self.values[0] if self.values else None

    @property
    def is_enough(self) -> bool:
        """Whether the best plan is as near to the bound as was asked for."""
        return self.value is not None and self._context.is_enough(self.value, self.bound.value)

    def offer(self, plan: Plan) -> bool:
        """Take a valid plan if it is better than the one there is; say whether it is."""
        values = self._context.values(plan)
        if self.plan is not None and values >= self.values:
            return False
        self.plan, self.values = plan, values
        self.report(values[0])
        return True

    def prove(self, value: int) -> None:
        """Make a bound known; it is never above the best plan."""
        if self.value is not None:
            value = min(value, self.value)
        if value > self.bound.value:
            self.bound = Bound(self._source, self.bound.quantity, value)
            self.report(self.value)

    def report(self, value: int | None) -> None:
        """Report a value of the first quantity, though its plan may not be known yet."""
        self._context.report(value, self.bound.value, self._source)
