"""The bounds on one quantity that need no search, found one after another while there is time."""

from threading import Lock

from spmilp.bounds.best import Bound, Proof, fast_bound, proofs
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock, Step

SHARE = 0.3
"""Of the time that a solver has left, for a bound."""


class KnownBounds:
    """The best bound on a quantity so far; any thread may ask for it."""

    def __init__(self, problem: Problem, quantity: Quantity) -> None:
        self._problem = problem
        self._quantity = quantity
        self._left = proofs(problem, quantity)
        self._next: Proof | None = next(self._left)
        self._reads = sum(len(task.reads) for task in problem.tasks)
        self._lock = Lock()
        self._fast: Bound | None = None
        self.best: Bound | None = None

    def within(self, clock: Clock) -> Bound:
        """Return the best bound that is known when the next one would take too long.

        That is, more than a share of what is left. Without a time limit it is the best of all.
        Where there is no time, it is one that takes next to none.
        """
        while self._has_time_for_another(clock):
            left = clock.seconds_left()
            if not self._lock.acquire(timeout=-1 if left is None else left * SHARE):
                break
            try:
                self._finds_another(clock)
            finally:
                self._lock.release()
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
                self._finds_another(Clock(None))
        return self._fast or self.best or Bound("zero", self._quantity, 0)

    def _has_time_for_another(self, clock: Clock) -> bool:
        proof = self._next
        return proof is not None and clock.has_seconds(
            clock.pace.seconds(_step(proof), self._reads) / SHARE
        )

    def _finds_another(self, clock: Clock) -> None:
        """Compute the next bound, if there is one."""
        proof = self._next
        if proof is None:
            return
        self._next = next(self._left, None)
        with clock.pace.measured(_step(proof), self._reads):
            found = proof.bound()
        if self.best is None or found.value > self.best.value:
            self.best = found


def _step(proof: Proof) -> Step:
    return Step.HEADS if proof.is_slow else Step.BOUND
