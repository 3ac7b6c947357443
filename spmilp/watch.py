"""What goes on beside a solve: its clock, the memory in use, the log, and who hears of it."""

import math
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from time import perf_counter
from types import FrameType

from spmilp.errors import ArgumentError, NoPlanError
from spmilp.options import Options
from spmilp.problem.problem import Problem
from spmilp.quantities import size
from spmilp.report.search_log import LogEntry, SearchLog
from spmilp.solvers.base import Progress
from spmilp.solvers.common.clock import Clock
from spmilp.units import Bytes

SHARE_OF_SEARCH = 0.7
"""Share of a memory limit for the search: the rest is for checking the plan and writing it."""

BETWEEN_LOOKS, AGAIN = 0.1, 1.0
"""Seconds until memory is looked at again, and where it exceeds its limit: an interrupt may be lost
there, in what the garbage collector calls, for example."""

ATTEMPTS = 3
"""To end what exceeds the limit."""

STATM = Path("/proc/self/statm")


class Stage(StrEnum):
    """Steps of a solve, as its observers hear of them."""

    READING = "reading"
    TILING = "choosing tiles and lowering"
    SOLVING = "solving"
    CHECKING = "checking the plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """Callbacks that hear how a solve gets on.

    Parameters
    ----------
    on_stage
        Called when a stage begins.
    on_tiles
        Called with each better value that the search for tiles finds, and its number of tasks.
    on_problem
        Called with the problem before it is solved.
    on_progress
        Called with each improvement of a plan or a bound.
    on_log
        Called with what is better than all before it, be it from the search for tiles or from a
        solver.
    on_warning
        Called with what a user should know of the problem or the hint.
    """

    on_stage: Callable[[Stage], None] = lambda stage: None
    on_tiles: Callable[[int, int], None] = lambda value, tasks: None
    on_problem: Callable[[Problem], None] = lambda problem: None
    on_progress: Callable[[Progress], None] | None = None
    on_log: Callable[[LogEntry], None] = lambda entry: None
    on_warning: Callable[[str], None] = warnings.warn


SILENT = Observer()


class Watch:
    """A solve that is under way.

    As a context it interrupts the solve when the process uses most of the memory limit, and
    whatever comes after the solve when it exceeds the limit. As long as there is no plan, most of
    the limit is not enough to end it. The solve is that of the main thread.

    Attributes
    ----------
    clock
        Of the whole solve.
    log
        Everything that was better than all before it.
    memory
        The bytes in use and their limit, once that is what ends the search.

    Raises
    ------
    ArgumentError
        If there is a memory limit, and this is not the main thread.
    NoPlanError
        On leaving: if the memory limit has ended the solve without a plan.
    """

    def __init__(self, options: Options, observer: Observer = SILENT) -> None:
        limit = options.time_limit
        self.observer = observer
        self.clock = Clock(None if math.isinf(limit) else limit, perf_counter)
        self.log = SearchLog(lambda: self.clock.seconds_gone, observer.on_log)
        self.memory: tuple[Bytes, Bytes] | None = None
        self._memory_limit = options.memory_limit
        self._ended = Event()
        self._stack = ExitStack()

    def better_tiles(self, value: int, tasks: int) -> None:
        """Note what the search for tiles has found."""
        self.log.note(f"tiles: {tasks:,} tasks", value, None)
        self.observer.on_tiles(value, tasks)

    def progress(self, news: Progress) -> None:
        """Note what a solver has found."""
        self.log.note(news.source, news.incumbent, news.bound)
        if self.observer.on_progress is not None:
            self.observer.on_progress(news)

    @property
    def why_it_ends(self) -> str:
        """Why the search has ended, where it is memory: both numbers; else empty."""
        if self.memory is None:
            return ""
        in_use, limit = self.memory
        return f"the memory limit of {size(limit)} ends the search: {size(in_use)} are in use"

    def __enter__(self) -> "Watch":
        if self._memory_limit is None:
            return self
        if current_thread() is not main_thread():
            raise ArgumentError("memory_limit: only a search in the main thread can be interrupted")
        self._stack.enter_context(self._interrupts_heeded())
        watching = Thread(target=self._watch_memory, args=(self._memory_limit,), daemon=True)
        watching.start()
        self._stack.callback(watching.join)
        self._stack.callback(self._ended.set)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stack.close()
        if isinstance(error, KeyboardInterrupt) and self.memory is not None:
            raise NoPlanError(f"{self.why_it_ends}; no plan is left") from error

    @contextmanager
    def _interrupts_heeded(self) -> Iterator[None]:
        """Interrupt also a process that ignores Ctrl-C, as those do that a script begins."""

        def interrupt(number: int, frame: FrameType | None) -> None:
            if self.memory is not None:
                raise KeyboardInterrupt

        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            yield
            return
        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _watch_memory(self, limit: Bytes) -> None:
        main, left, pause = main_thread().ident or 0, ATTEMPTS, BETWEEN_LOOKS
        while left and not self._ended.wait(pause):
            used = memory_in_use()
            has_plan = any(entry.incumbent is not None for entry in self.log.entries[-1:])
            ends_search = has_plan and self.memory is None
            if used > limit or (ends_search and used > SHARE_OF_SEARCH * limit):
                self.memory = used, limit
                signal.pthread_kill(main, signal.SIGINT)
            left -= used > limit
            pause = AGAIN if used > limit else BETWEEN_LOOKS


def memory_in_use() -> Bytes:
    """Return the bytes that this process uses; where that is not told, the most it has used."""
    try:
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
