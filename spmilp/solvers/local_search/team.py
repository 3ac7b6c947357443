"""What the searchers of one problem share: the best schedule, and when to stop."""

from queue import Empty, SimpleQueue
from threading import Event, Lock
from time import monotonic

from spmilp.bounds.bound import Bound
from spmilp.solvers.base import Progress, SolveOptions
from spmilp.solvers.local_search.candidate import Judged

HEARTBEAT = 0.1
"""Seconds after which whoever waits looks around."""


class Team:
    """The best schedule of several threads.

    The thread that asked for the search waits and tells of improvements; so an interrupt ends the
    search at once, however long a single schedule takes.

    Parameters
    ----------
    bound
        What is known at first; :meth:`prove` makes it better.
    deadline
        Of ``time.monotonic``; ``None`` without.
    """

    def __init__(self, options: SolveOptions, bound: Bound, deadline: float | None) -> None:
        self._options = options
        self.bound = bound
        self._deadline = deadline
        self._lock = Lock()
        self._stop = Event()
        self._news: SimpleQueue[Progress] = SimpleQueue()
        self._failure: BaseException | None = None
        self.best: Judged | None = None
        self.best_to_go_on_from: Judged | None = None

    def offer(self, judged: Judged) -> bool:
        """Make a schedule the best one if it is; return whether it is."""
        with self._lock:
            base = self.best_to_go_on_from
            if judged.exact and (base is None or judged.score < base.score):
                self.best_to_go_on_from = judged
            if self.best is not None and judged.score >= self.best.score:
                return False
            old = None if self.best is None else self.best.score[0]
            self.best = judged
        if judged.score[0] != old:
            self._announce(judged)
        return True

    def prove(self, bound: Bound) -> None:
        """Make a bound known."""
        self.bound = bound
        if self.best is not None:
            self._announce(self.best)

    def _announce(self, judged: Judged) -> None:
        value, bound = judged.score[0], self.bound.value
        self._news.put(Progress(incumbent=value, bound=bound, source=judged.source))
        if value - bound <= self._options.gap * value:
            self.stop()

    def is_over(self) -> bool:
        """Say whether to stop searching."""
        late = self._deadline is not None and monotonic() > self._deadline
        return late or self._stop.is_set()

    def stop(self) -> None:
        """Let everybody stop after the schedule at hand."""
        self._stop.set()

    def fail(self, error: BaseException) -> None:
        """Let everybody stop because of an error, which :meth:`tell` raises."""
        self._failure = error
        self.stop()

    def wait(self, done: Event) -> None:
        """Tell of improvements until the search is done or its time is over.

        Raises
        ------
        BaseException
            What ended a searcher.
        """
        while not done.wait(HEARTBEAT):
            self._tell()
            if self.is_over() and self.best is not None:
                break
        self._tell()
        if self._failure is not None:
            raise self._failure

    def _tell(self) -> None:
        while True:
            try:
                news = self._news.get_nowait()
            except Empty:
                return
            if self._options.on_progress is not None:
                self._options.on_progress(news)
