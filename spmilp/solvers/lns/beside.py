"""Work in a thread of its own, so that a ``KeyboardInterrupt`` is never lost in compiled code."""

from collections.abc import Callable
from threading import Event, Thread


class Beside:
    """Runs a function beside the caller, who waits.

    An exception of the function is raised where it is waited for.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._done = Event()
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end; an interrupt passes on at once, and the work goes on."""
        self._done.wait()
        if self._error is not None:
            raise self._error

    def linger(self, seconds: float) -> None:
        """Wait for the end, but not longer than that."""
        self._done.wait(seconds)

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()
