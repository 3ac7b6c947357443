"""Steps of the neighbourhood search on schedules with open addresses.

A step makes some loads from DRAM earlier, or moves tasks to other cores.
"""

from collections.abc import Callable

import numpy as np

from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.operator_selection import OperatorSelection
from spmilp.solvers.improve.components import ReassignmentSteps
from spmilp.solvers.improve.options import LnsOptions
from spmilp.solvers.justify.early_and_late import advanced, loads_of
from spmilp.solvers.justify.passes import backward_pass, forward_pass
from spmilp.solvers.justify.repacking import Repacking
from spmilp.solvers.justify.schedule import TimedSchedule

HOPED = 0.5
"""Shorter schedules that each kind of step is first expected to find per unit of cost."""

LOADS_ADVANCED = 3
"""Loads that a step advances, on average, besides the one that it always does."""


class Steps:
    """Takes steps, more often of the kind that has paid most so far.

    Parameters
    ----------
    work
        Opens schedules. It knows how full memories may become, which may change between steps.
    """

    def __init__(self, work: Repacking, clock: Clock, settings: LnsOptions, seed: int) -> None:
        self._clock = clock
        random = np.random.default_rng(seed)
        self._steps = dict[str, Callable[[TimedSchedule], TimedSchedule]]()
        if settings.advance_loads:
            self._steps["advance loads"] = lambda now: with_loads_advanced(work, now, random)
        if settings.reassignment:
            self._steps["reassign"] = ReassignmentSteps(work, clock, seed).improve
        self._selection = OperatorSelection(dict.fromkeys(self._steps, HOPED))

    def take(self, current: TimedSchedule) -> TimedSchedule:
        """Return a schedule that ends no later, with open addresses."""
        began, kind = self._clock.now(), self._selection.in_turn()[0]
        found = self._steps[kind](current)
        # Without a limit the same steps are taken each time, whatever they cost.
        cost = self._clock.now() - began if self._clock.is_limited else 1.0
        self._selection.learn(kind, found.makespan < current.makespan, cost)
        return found


def with_loads_advanced(
    work: Repacking, current: TimedSchedule, random: np.random.Generator
) -> TimedSchedule:
    """Return a schedule with open addresses that ends no later, in which some loads go first.

    A backward pass ends a little later than the schedule does, so that the loads find capacity at
    the beginning; what that costs has to be won by what they let start earlier.
    """
    schedule, memories = current.schedule, work.memories()
    loads = loads_of(work.context, schedule)
    if not loads.size:
        return current
    count = 1 + int(random.geometric(1 / LOADS_ADVANCED))
    chosen = random.choice(loads, min(count, loads.size), replace=False)
    last = current.makespan + int(schedule.cycles[chosen].sum())
    late = backward_pass(current, memories, last)
    found = work.opened(forward_pass(advanced(late, memories, chosen), memories), rounds=1)
    return found if found.makespan <= current.makespan else current
