"""Steps of all kinds from one incumbent with open addresses to the next."""

import numpy as np

from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.operator_selection import ByBestRate
from spmilp.solvers.lns.options import LnsOptions, Step
from spmilp.solvers.lns.perturbation import perturbed, with_loads_advanced
from spmilp.solvers.lns.reassignment.steps import ReassignmentSteps
from spmilp.solvers.lns.window_search import WindowSearch
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
        self._windows = WindowSearch(context, settings.windows, seed, has_clock=clock.is_limited)
        self._reassignment = ReassignmentSteps(context, seed)
        self._selection = ByBestRate(
            settings.steps, self._random, has_clock=clock.is_limited, rare=Step.WINDOW
        )

    def take(self, current: TimedSchedule) -> TimedSchedule:
        """Return a incumbent that ends no later, with open addresses."""
        began, kind = self._clock.now(), self._selection.next()
        found = self._result_of(kind, current)
        self._selection.learn(kind, current.makespan - found.makespan, self._clock.now() - began)
        return found

    def _result_of(self, kind: Step, current: TimedSchedule) -> TimedSchedule:
        memories = self._fill.memories()
        if kind is Step.WINDOW:
            return self._windows.improve(current, memories, self._clock)
        if kind is Step.REASSIGN:
            return self._reassignment.improve(current, memories, self._clock)
        kick = perturbed if kind is Step.PERTURB else with_loads_advanced
        return kick(self._context, current, memories, self._clock, self._random)
