"""Threads that take steps beside the search, from the best incumbent that any of them has found."""

from collections.abc import Sequence
from threading import Event, Lock, Thread

from spmilp.solvers.lns.steps import Steps
from spmilp.solvers.partial_order.schedule import TimedSchedule

PATIENCE = 1.0
"""Seconds for the steps at hand, in the end."""


class Helpers:
    """Improves a incumbent with open addresses on as many threads as there are ``steps``.

    Compiled passes and CP-SAT run without the interpreter's lock. With no helper nothing happens.

    Parameters
    ----------
    best
        To begin with.
    """

    def __init__(self, steps: Sequence[Steps], best: TimedSchedule) -> None:
        self._best = best
        self._beginnings = 0
        self._lock = Lock()
        self._is_over = Event()
        self._error: BaseException | None = None
        self._threads = [Thread(target=self._work, args=(some,), daemon=True) for some in steps]

    def __enter__(self) -> "Helpers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def exchanged(self, current: TimedSchedule) -> TimedSchedule:
        """Offer a incumbent to all; return the best that anyone has, or the same if none is better.

        An error of a helper is raised here.
        """
        if self._error is not None:
            raise self._error
        if not self._threads:
            return current
        with self._lock:
            if current.makespan < self._best.makespan:
                self._best = current
            return self._best if self._best.makespan < current.makespan else current

    def begin_again(self, current: TimedSchedule) -> None:
        """Let all go on from a incumbent, though it may be worse than theirs."""
        with self._lock:
            self._best = current
            self._beginnings += 1

    def _work(self, steps: Steps) -> None:
        try:
            current, beginning = self._best, self._beginnings
            while not self._is_over.is_set():
                found = steps.take(current)
                with self._lock:
                    # What was found from before all began again does not count.
                    if beginning == self._beginnings and found.makespan < self._best.makespan:
                        self._best = found
                    is_best = (
                        beginning == self._beginnings and found.makespan == self._best.makespan
                    )
                    current = found if is_best else self._best
                    beginning = self._beginnings
        except BaseException as error:
            self._error = error
