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
                    goes_on = self._finds_another()
            finally:
                self._lock.release()
            if not goes_on:
                break
        return self.best or self.fast

    @property
    def fast(self) -> Bound:
        """The best bound that is known, at least one that takes next to no time."""
        if self.best is not None:
            return self.best
        if self._fast is None and self._quantity is self._problem.objective.first:
            self._fast = fast_bound(self._problem)
        elif self._fast is None:
            with self._lock:
                self._finds_another()
        return self._fast or self.best or Bound("zero", self._quantity, 0)

    def _finds_another(self) -> bool:
        """Compute the next bound; return whether there is one."""
        found = next(self._left, None)
        if found is not None and (self.best is None or found.value > self.best.value):
            self.best = found
        return found is not None
