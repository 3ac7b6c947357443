"""The bounds on one quantity that need no search, found one after another while there is time."""

from threading import Lock

from spmilp.bounds.best import Bound, bounds_in_turn, fast_bound
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock, Step

SHARE = 0.3
"""Of a solver's time, for bounds."""


class KnownBounds:
    """The best bound on a quantity so far; any thread may ask for it."""

    def __init__(self, problem: Problem, quantity: Quantity) -> None:
        self._problem = problem
        self._quantity = quantity
        self._left = bounds_in_turn(problem, quantity)
        self._reads = sum(len(task.reads) for task in problem.tasks)
        self._lock = Lock()
        self._fast: Bound | None = None
        self.best: Bound | None = None

    def within(self, clock: Clock) -> Bound:
        """Return the best bound that is known when a share of the time is used.

        Without a time limit that is the best of all. Where there is no time, it is one that takes
        next to none.
        """
        while clock.has_seconds(clock.pace.seconds(Step.BOUND, self._reads), SHARE):
            left = clock.seconds_left(SHARE)
            if not self._lock.acquire(timeout=-1 if left is None else left):
                break
            try:
                with clock.pace.measured(Step.BOUND, self._reads):
                    found = next(self._left, None)
                if found is None:
                    break
                if self.best is None or found.value > self.best.value:
                    self.best = found
            finally:
                self._lock.release()
        return self.best or self.fast

    @property
    def fast(self) -> Bound:
        """The best bound that is known, at least one that takes next to no time."""
        if self.best is not None:
            return self.best
        if self._fast is None:
            self._fast = self._quickly()
        return self._fast

    def _quickly(self) -> Bound:
        if self._quantity is self._problem.objective.first:
            return fast_bound(self._problem)
        return next(bounds_in_turn(self._problem, self._quantity))
