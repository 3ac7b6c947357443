"""What the runs of one search share: the best schedule, and when to stop."""

from threading import Event, Lock

from spmilp.bounds.bound import Bound
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.local_search.candidate import Evaluated


class SharedIncumbent:
    """The best schedule of several threads."""

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        self._lock = Lock()
        self._stop = Event()
        self.bound = Bound("zero", context.problem.objective.first, 0)
        self.best: Evaluated | None = None
        self.best_exact: Evaluated | None = None

    def offer(self, evaluated: Evaluated) -> None:
        """Make a schedule the best one if it is."""
        with self._lock:
            base = self.best_exact
            if evaluated.exact and (base is None or evaluated.score < base.score):
                self.best_exact = evaluated
            if self.best is not None and evaluated.score >= self.best.score:
                return
            self.best = evaluated
        self._report(evaluated)

    def prove(self, bound: Bound) -> None:
        """Make a bound known."""
        self.bound = bound
        if self.best is not None:
            self._report(self.best)

    def _report(self, evaluated: Evaluated) -> None:
        value, bound = evaluated.score[0], self.bound.value
        self._context.report(value, bound, evaluated.source)
        if self._context.is_enough(value, bound):
            self.stop()

    def is_over(self) -> bool:
        """Say whether to stop searching."""
        return self._context.clock.is_over() or self._stop.is_set()

    def stop(self) -> None:
        """Let everybody stop after the schedule at hand."""
        self._stop.set()
