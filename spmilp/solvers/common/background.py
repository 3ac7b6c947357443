"""Work in another thread, so that an interrupt never waits for compiled code."""

from collections.abc import Callable
from threading import Thread

from spmilp.solvers.common.context import SearchContext

HEARTBEAT = 0.1
"""Seconds after which the thread that waits looks whether it should go on."""


class Background:
    """Runs a function in another thread; the caller waits and passes on what is reported.

    A ``KeyboardInterrupt`` reaches the caller at once, while the work goes on.
    """

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        self._error: BaseException | None = None
        self._thread: Thread | None = None
        self._has_ended = False

    def run(self, work: Callable[[], None], leaves: Callable[[], bool] = lambda: False) -> None:
        """Wait until some work is done; an exception of the work is raised here.

        Parameters
        ----------
        leaves
            Whether not to wait any longer; asked after each report and now and then.
        """
        self._start(work)
        while not self._has_ended and not leaves():
            self._context.pass_on_reports(HEARTBEAT)
        self._end()

    def finish(self, work: Callable[[], None], stop: Callable[[], None]) -> bool:
        """Wait until some work is done; an interrupt only asks it to stop. Say if one came.

        An exception of the work is raised here.

        Parameters
        ----------
        stop
            Called more than once, for work that has not begun yet cannot stop.
        """
        interrupted = False
        self._start(work)
        while not self._has_ended:
            try:
                if interrupted:
                    stop()
                self._context.pass_on_reports(HEARTBEAT)
            except KeyboardInterrupt:
                interrupted = True
        self._end()
        return interrupted

    def join(self, seconds: float) -> None:
        """Wait for the end of the work, but not longer than that."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _start(self, work: Callable[[], None]) -> None:
        self._thread = Thread(target=self._work, args=(work,), daemon=True)
        self._thread.start()

    def _end(self) -> None:
        self._context.pass_on_reports()
        if self._error is not None:
            raise self._error

    def _work(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._error = error
        finally:
            self._has_ended = True
            self._context.wake()
