"""What solvers report while they work, told to the user by the thread that began the solve."""

from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import TypeVar

from spmilp.interruptible import Background, stoppably
from spmilp.solvers.base import Progress

HEARTBEAT = 0.1
"""Seconds after which the thread that waits looks whether it should go on."""

R = TypeVar("R")


class Reports:
    """Passes on what is better than all that was reported before, with the best of the other.

    What other threads report waits until the thread that began the solve attends to it.
    """

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self._on_progress = on_progress
        self._incumbent: int | None = None
        self._bound = -1
        self._thread = get_ident()
        self._waiting: SimpleQueue[tuple[int | None, int, str] | None] = SimpleQueue()

    def report(self, value: int | None, bound: int, source: str) -> None:
        """Tell the user of a better value of the first quantity, or of a better bound."""
        if get_ident() == self._thread:
            self._tell(value, bound, source)
        else:
            self._waiting.put((value, bound, source))

    def begin(self, work: Callable[[], None]) -> Background[None]:
        """Begin some work in another thread."""
        return Background(work, self._wake)

    def attend(
        self, background: Background[None], leaves: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait until what was begun is done, and pass on its reports; its exception is raised here.

        A ``KeyboardInterrupt`` passes on at once, while the work goes on.

        Parameters
        ----------
        leaves
            Whether not to wait any longer; asked after each report and now and then.
        """
        while not background.ended.is_set() and not leaves():
            self._pass_on(HEARTBEAT)
        self._pass_on(0.0)
        if background.ended.is_set():
            background.answer()

    def finish(self, work: Callable[[], R], stop: Callable[[], None]) -> tuple[R, bool]:
        """Do some work in another thread and pass on its reports; an interrupt asks it to stop.

        Returns
        -------
        tuple[R, bool]
            What the work returns, and whether an interrupt came.
        """
        found = stoppably(work, stop, lambda: self._pass_on(HEARTBEAT), self._wake)
        self._pass_on(0.0)
        return found

    def _wake(self) -> None:
        self._waiting.put(None)

    def _pass_on(self, seconds: float) -> None:
        """Tell of what waits; where nothing does, wait for so many seconds."""
        with suppress(Empty):
            while True:
                report = self._waiting.get(block=seconds > 0, timeout=seconds)
                seconds = 0.0
                if report is not None:
                    self._tell(*report)

    def _tell(self, value: int | None, bound: int, source: str) -> None:
        is_better = value is not None and (self._incumbent is None or value < self._incumbent)
        if is_better:
            self._incumbent = value
        is_news = is_better or bound > self._bound
        self._bound = max(self._bound, bound)
        if is_news and self._on_progress is not None:
            self._on_progress(Progress(incumbent=self._incumbent, bound=self._bound, source=source))
