"""Steps from one schedule with open addresses to the next."""

import numpy as np

from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.operator_selection import ByBestRate
from spmilp.solvers.lns.advance import with_loads_advanced
from spmilp.solvers.lns.options import LnsOptions, Step
from spmilp.solvers.lns.reassignment.steps import ReassignmentSteps
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.repacking import FillLimits
from spmilp.solvers.partial_order.schedule import TimedSchedule


class Steps:
    """Takes the steps that have paid most so far.

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
        self._reassignment = ReassignmentSteps(context, seed)
        self._selection = ByBestRate(settings.steps, self._random, has_clock=clock.is_limited)

    def take(self, current: TimedSchedule) -> TimedSchedule:
        """Return a schedule that ends no later, with open addresses."""
        began, kind = self._clock.now(), self._selection.next()
        memories = self._fill.memories()
        if kind is Step.REASSIGN:
            found = self._reassignment.improve(current, memories, self._clock)
        else:
            found = with_loads_advanced(self._context, current, memories, self._clock, self._random)
        gain = current.makespan - found.makespan
        self._selection.learn(kind, gain, self._clock.now() - began)
        return found
