"""Rounds in which all stretches of a plan are improved apart from each other, and then joined."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.lns.options import LnsOptions
from spmilp.solvers.lns.steps import Steps
from spmilp.solvers.lns.stretch import Stretch, borders_of, joined, stretches_of
from spmilp.solvers.partial_order.context import ScheduleContext, context_of
from spmilp.solvers.partial_order.repacking import (
    TRIES_AT_ONCE,
    FillLimits,
    justified,
    justified_by_capacity,
    with_addresses,
)
from spmilp.solvers.partial_order.schedule import TimedSchedule
from spmilp.solvers.partial_order.to_plan import plan_of
from spmilp.units import Cycles

FIRST_ROUNDS = 2
"""Double justifications before the first round."""

STEPS_WITHOUT_LIMIT = 12
"""For each stretch and round, where no time limit ends it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StretchTurn:
    """What one process is asked: to improve a stretch for so many seconds.

    Parameters
    ----------
    share
        Of each memory that may be filled.
    """

    timed: TimedSchedule
    share: NDArray[np.float64]
    seconds: float | None
    seed: int


def improved(context: ScheduleContext, turn: StretchTurn) -> TimedSchedule:
    """Return the schedule of a stretch that ends no later."""
    clock, current = Clock(turn.seconds), turn.timed
    fill = FillLimits(context)
    fill.share = turn.share
    steps = Steps(context, fill, clock, LnsOptions(), turn.seed)
    left = STEPS_WITHOUT_LIMIT
    while not clock.is_over() and (clock.is_limited or left > 0):
        current = steps.take(current)
        left -= 1
    return current


class Rounds:
    """A plan on its way: cut into stretches, joined from what became of them, packed.

    Parameters
    ----------
    plan
        A valid one.

    Attributes
    ----------
    fixed
        What all schedules made from the plan have in common.
    seconds
        What it took to join the stretches of the last round and to pack them.
    """

    def __init__(self, context: SearchContext, plan: Plan) -> None:
        began = monotonic()
        self._context = context
        self._clock = context.clock
        self.fixed, first = context_of(context.problem, plan)
        self._fill = FillLimits(self.fixed)
        self._best = justified(self.fixed, first)
        self._current = self._best
        self._open(FIRST_ROUNDS)
        self._stretches: tuple[Stretch, ...] = ()
        self._round = 0
        self.seconds = monotonic() - began

    @property
    def makespan(self) -> Cycles:
        """Of the best schedule with addresses."""
        return self._best.makespan

    def turns(self, count: int, seconds: float | None, seed: int) -> list[StretchTurn]:
        """Cut the schedule into up to so many stretches, elsewhere than the last time."""
        plan = self.fixed.plan
        borders = borders_of(self._current, count, self._round)
        slots = len(plan.placements) + len(plan.transfers)
        self._stretches = tuple(stretches_of(self._current, borders, slots))
        self._round += 1
        share = self._fill.share.copy()
        return [
            StretchTurn(timed=one.timed, share=share, seconds=seconds, seed=seed + number)
            for number, one in enumerate(self._stretches)
        ]

    def join(self, found: Sequence[TimedSchedule | None]) -> bool:
        """Join what the stretches have become, and pack it; say whether the schedule is shorter.

        Where no addresses are found for all of it, only the stretch that has saved most changes.

        Parameters
        ----------
        found
            Of each stretch, in order; ``None`` for one that nobody has answered for.
        """
        began, before = monotonic(), self._best.makespan
        parts = [
            (stretch, stretch.timed if new is None else new)
            for stretch, new in zip(self._stretches, found, strict=True)
        ]
        whole = self._current
        if not self._take(joined(whole, parts)):
            best = max(parts, key=lambda part: part[0].end - part[1].makespan)
            alone = [part if part is best else (part[0], part[0].timed) for part in parts]
            if not self._take(joined(whole, alone)):
                self._current = self._best
        self._open()
        self.seconds = monotonic() - began
        return self._best.makespan < before

    def plan(self) -> Plan | None:
        """Return the plan of the best schedule, if it is valid."""
        try:
            plan = plan_of(self.fixed, self._best)
        except DoesNotFitError:
            return None
        return plan if self._context.accepts(plan) else None

    def _open(self, rounds: int = 1) -> None:
        """Go on without addresses."""
        self._current = justified_by_capacity(
            self.fixed, self._current, self._fill.memories(), self._clock, rounds
        )

    def _take(self, joint: TimedSchedule) -> bool:
        """Look for addresses; say whether there are any, or none are needed yet."""
        self._current = joint
        for _ in range(TRIES_AT_ONCE):
            self._open()
            if self._current.makespan >= self._best.makespan:
                return True
            found = with_addresses(self.fixed, self._current, self._fill, self._clock)
            if found is not None and found.makespan < self._best.makespan:
                self._best = self._current = found
                return True
        return False
