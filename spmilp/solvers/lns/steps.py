"""Steps from one schedule with open addresses to the next, on one thread or several."""

from collections.abc import Sequence
from threading import Event, Lock, Thread

import numpy as np

from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.operator_selection import ByBestRate
from spmilp.solvers.lns.advance import with_loads_advanced
from spmilp.solvers.lns.joint.search import JointSearch
from spmilp.solvers.lns.options import LnsOptions, Step
from spmilp.solvers.lns.reassignment.steps import ReassignmentSteps
from spmilp.solvers.lns.window_search import WindowSearch
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.repacking import FillLimits
from spmilp.solvers.partial_order.schedule import TimedSchedule

PATIENCE = 1.0
"""Seconds for the steps at hand, in the end."""


STANDSTILL = 12
"""Steps in a row without any gain before joint windows are among them: as long as the others gain,
they gain more for each second."""


class Steps:
    """Takes the steps that have paid most so far; joint windows where the others stand still.

    Parameters
    ----------
    fill
        How full memories may become; it may change between steps.
    """

    def __init__(
        self,
        context: ScheduleContext,
        fill: FillLimits,
        clock: Clock,
        settings: LnsOptions,
        seed: int,
    ) -> None:
        self._context = context
        self._fill = fill
        self._clock = clock
        self._random = np.random.default_rng(seed)
        self._windows = WindowSearch(context, seed)
        self._reassignment = ReassignmentSteps(context, seed)
        self._joint = JointSearch(context, seed, has_clock=clock.is_limited)
        self._all = settings.steps
        first = [step for step in self._all if step is not Step.JOINT_WINDOW]
        self._selection = self._selection_of(first or self._all)
        self._selects_from_all = not first
        self._idle = 0

    def take(self, current: TimedSchedule) -> TimedSchedule:
        """Return a schedule that ends no later, with open addresses."""
        began, kind = self._clock.now(), self._selection.next()
        found = self._result_of(kind, current)
        gain = current.makespan - found.makespan
        self._selection.learn(kind, gain, self._clock.now() - began)
        self._idle = 0 if gain > 0 else self._idle + 1
        if self._idle == STANDSTILL and not self._selects_from_all:
            self._selects_from_all = True
            self._selection = self._selection_of(self._all)
        return found

    def _selection_of(self, steps: Sequence[Step]) -> ByBestRate[Step]:
        return ByBestRate(
            steps,
            self._random,
            has_clock=self._clock.is_limited,
            rare=(Step.WINDOW, Step.JOINT_WINDOW),
        )

    def _result_of(self, kind: Step, current: TimedSchedule) -> TimedSchedule:
        memories = self._fill.memories()
        if kind is Step.WINDOW:
            return self._windows.improve(current, memories, self._clock)
        if kind is Step.JOINT_WINDOW:
            return self._joint.improve(current, memories, self._clock)
        if kind is Step.REASSIGN:
            return self._reassignment.improve(current, memories, self._clock)
        return with_loads_advanced(self._context, current, memories, self._clock, self._random)


class Helpers:
    """Threads that improve a schedule with open addresses, from the best that any of them has.

    Compiled passes and CP-SAT run without the interpreter's lock. With no helper nothing happens.

    Parameters
    ----------
    steps
        One for each thread.
    best
        The schedule to begin with.
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
        """Offer a schedule to all; return the best that anyone has, or the same if none is better.

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
        """Let all go on from a schedule, though it may be worse than theirs."""
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
                    counts = beginning == self._beginnings
                    if counts and found.makespan < self._best.makespan:
                        self._best = found
                    is_best = counts and found.makespan == self._best.makespan
                    current = found if is_best else self._best
                    beginning = self._beginnings
        except BaseException as error:
            self._error = error
