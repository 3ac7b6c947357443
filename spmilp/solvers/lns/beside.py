"""Work in a thread of its own, so that a ``KeyboardInterrupt`` is never lost in compiled code."""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from spmilp.solvers.base import Progress


class Beside:
    """Runs a function beside the caller, who waits, and passes on what it has to tell."""

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self._on_progress = on_progress
        self._news: SimpleQueue[Progress | None] = SimpleQueue()
        self._error: BaseException | None = None
        self._thread: Thread | None = None

    def tell(self, progress: Progress) -> None:
        """Leave word for the thread that waits."""
        self._news.put(progress)

    def run(self, work: Callable[[], None]) -> None:
        """Do some work; an interrupt passes on at once, while the work goes on.

        An exception of the work is raised here.
        """
        self._thread = Thread(target=self._work, args=(work,), daemon=True)
        self._thread.start()
        while (progress := self._news.get()) is not None:
            if self._on_progress is not None:
                self._on_progress(progress)
        if self._error is not None:
            raise self._error

    def linger(self, seconds: float) -> None:
        """Wait for the end of the work, but not longer than that."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _work(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._error = error
        finally:
            self._news.put(None)
