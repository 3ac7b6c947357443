"""What the searchers of one problem share: the best schedule, and when to stop."""

from threading import Event, Lock

from spmilp.bounds.bound import Bound
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.local_search.candidate import Judged


class SharedIncumbent:
    """The best schedule of several threads."""

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        self._lock = Lock()
        self._stop = Event()
        self.bound = Bound("zero", context.problem.objective.first, 0)
        self.best: Judged | None = None
        self.best_to_go_on_from: Judged | None = None

    def offer(self, judged: Judged) -> None:
        """Make a schedule the best one if it is."""
        with self._lock:
            base = self.best_to_go_on_from
            if judged.exact and (base is None or judged.score < base.score):
                self.best_to_go_on_from = judged
            if self.best is not None and judged.score >= self.best.score:
                return
            self.best = judged
        self._report(judged)

    def prove(self, bound: Bound) -> None:
        """Make a bound known."""
        self.bound = bound
        if self.best is not None:
            self._report(self.best)

    def _report(self, judged: Judged) -> None:
        value, bound = judged.score[0], self.bound.value
        self._context.report(value, bound, judged.source)
        if self._context.is_enough(value, bound):
            self.stop()

    def is_over(self) -> bool:
        """Say whether to stop searching."""
        return self._context.clock.is_over() or self._stop.is_set()

    def stop(self) -> None:
        """Let everybody stop after the schedule at hand."""
        self._stop.set()
