"""What goes on beside a solve: its clock, the log, and who hears of it."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter
from typing import Any

from spmilp.options import Options
from spmilp.problem.problem import Problem
from spmilp.report.search_log import LogEntry, SearchLog
from spmilp.solvers.base import Progress
from spmilp.solvers.common.clock import Clock, Work


class Stage(StrEnum):
    """Steps of a solve, as its observers hear of them."""

    READING = "reading"
    TILING = "choosing tiles and lowering"
    SOLVING = "solving"
    OVERLAPPING = "overlapping inferences"
    CHECKING = "checking the plan"
    EXPLAINING = "explaining the plan"
    TRYING = "trying what helps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    """Callbacks that hear how a solve gets on.

    ``on_stage`` is called when a stage begins, ``on_problem`` with the problem before it is solved,
    ``on_log`` with what is better than all before it, be it from the search for tiles or from a
    solver, and ``on_warning`` with what a user should know of the problem, of the hint, or of a
    part of the search that has failed.
    """

    on_stage: Callable[[Stage], None] = lambda stage: None
    on_problem: Callable[[Problem], None] = lambda problem: None
    on_log: Callable[[LogEntry], None] = lambda entry: None
    on_warning: Callable[[str], None] = warnings.warn


SILENT = Observer()


class Watch:
    """A solve that is under way: its clock, its work if that is counted, and its log."""

    def __init__(self, options: Options, observer: Observer = SILENT) -> None:
        limit = None if math.isinf(options.time_limit) else options.time_limit
        self.observer = observer
        self.work = None if options.effort is None else Work(limit)
        self.clock = Clock(options.effort or limit, self.work)
        # Work that is counted elsewhere would end the search at another moment on each computer.
        self.workers = options.workers if self.work is None else 1
        self._began, self._bounds_hold = perf_counter(), True
        self.log = SearchLog(lambda: self.seconds_gone, observer.on_log)

    @property
    def seconds_gone(self) -> float:
        """Wall seconds since it began."""
        return perf_counter() - self._began

    def seen(self) -> dict[str, Any]:
        """Return what a result says of the solve: ``seconds``, ``log`` and ``ended_by``."""
        ended_by = None
        if self.work is not None:
            ended_by = "time limit" if self.work.was_late else "effort"
        return {"seconds": self.seconds_gone, "log": self.log.entries, "ended_by": ended_by}

    def begin_with_one_inference(self, share: float) -> None:
        """Take a share of the time that is left for one inference of a stream, before they overlap.

        What bounds that one's makespan does not bound a period.
        """
        self._bounds_hold, clock = False, self.clock
        self.clock.reserve((1.0 - share) * max(0.0, (clock.limit or 0.0) - clock.seconds_gone))

    @property
    def overlaps(self) -> bool:
        """Whether inferences are yet to be overlapped."""
        return not self._bounds_hold

    def go_on_with_streams(self) -> None:
        """Begin to overlap inferences, in all the time that is left."""
        self._bounds_hold = True
        self.clock.reserve(0.0)
        self.observer.on_stage(Stage.OVERLAPPING)

    def better_tiles(self, value: int, tasks: int) -> None:
        """Note what the search for tiles has found."""
        self.log.note(f"tiles: {tasks:,} tasks", value, None)

    def progress(self, news: Progress) -> None:
        """Note what a solver has found."""
        self.log.note(news.source, news.incumbent, news.bound if self._bounds_hold else None)
