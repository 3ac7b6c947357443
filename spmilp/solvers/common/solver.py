"""The base class of all solvers."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from time import monotonic

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.common.context import SearchContext


class Solver(ABC):
    """Finds plans for problems."""

    name: str

    @abstractmethod
    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found, no worse than a valid hint where the solver takes hints.

        A ``KeyboardInterrupt`` ends the search early: with a plan, the solver returns it as it
        does at the time limit; without one, the interrupt passes on.
        """

    def solve(
        self,
        problem: Problem,
        options: SolveOptions,
        hint: Plan | None = None,
        now: Callable[[], float] = monotonic,
    ) -> SolverResult:
        """Search one problem by itself, in a context of its own.

        Parameters
        ----------
        now
            Tells the seconds of the time limit, for example of processor time.
        """
        return self.search(SearchContext(problem, options, hint, now))
