"""What schedules with open addresses are worth: once they are justified, and have addresses."""

from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import ROWS_OF_A_READ, Clock, Step
from spmilp.solvers.common.context import reads_of
from spmilp.solvers.kernels.records import NEVER, Shares
from spmilp.solvers.kernels.serial.run import can_be_open, whole_memories
from spmilp.tile_selection.tiled_problem import TiledProblem, Worth
from spmilp.units import Cycles

SECONDS_TO_OPEN = 2.0
"""A justification that takes less is *soon* made."""

WORTH_OPENING = 1.1
"""Schedules that take at most so many times as long as that of the best plan are justified; where
that takes long, only those that are shorter."""

OVERFULL = 1.25
"""Part of each memory that schedules fill which are compared in place of plans: with small working
sets addresses may be found for such in the end."""


def shares_of(problem: Problem) -> Shares | None:
    """Return the part of each memory that may be filled; ``None`` with addresses."""
    if problem.objective.first is not Quantity.MAKESPAN or not can_be_open(problem):
        return None
    return whole_memories(problem)


def rows_of_a_plan(problem: Problem) -> int:
    """Return about how many rows a plan of a problem has."""
    return len(problem.tasks) + ROWS_OF_A_READ * reads_of(problem)


class OpenValues:
    """Justifies schedules, and finds addresses for those that are shorter than all before.

    Parameters
    ----------
    clock
        Of the whole solve.

    Attributes
    ----------
    scheduled, opened
        What the schedule of the best plan takes, as it was made and once justified, before it had
        addresses.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.scheduled: Cycles = NEVER
        self.opened: Cycles = NEVER

    def opens_soon(self, problem: Problem) -> bool:
        """Return whether a schedule is soon justified, as far as there is a limit of time."""
        return not self._clock.is_limited or self.seconds_to_open(problem) < SECONDS_TO_OPEN

    def seconds_to_open(self, problem: Problem) -> float:
        """Return how long it will take to justify a schedule."""
        return self._clock.pace.seconds(Step.OPEN, rows_of_a_plan(problem))

    def seconds_to_have_plan(self, problem: Problem) -> float:
        """Return how long it will take to justify a schedule and to find addresses for it."""
        packing = self._clock.pace.seconds(Step.PACK, rows_of_a_plan(problem))
        return self.seconds_to_open(problem) + packing

    def is_worth_opening(self, tiled: TiledProblem) -> bool:
        """Return whether a schedule may become the shortest once it is justified."""
        most = WORTH_OPENING if self.opens_soon(tiled.problem) else 1.0
        return (tiled.value or 0) <= most * self.scheduled

    def expected(self, tiled: TiledProblem) -> Worth | None:
        """Return what a schedule is worth if justification gains as much as with the best."""
        if tiled.worth is None or self.scheduled == NEVER:
            return tiled.worth
        cycles, *others = tiled.worth
        return (cycles * self.opened // self.scheduled, *others)

    def once_opened(self, tiled: TiledProblem, share: float) -> TiledProblem:
        """Return it with its schedule at justified times."""
        with self._clock.pace.measured(Step.OPEN, rows_of_a_plan(tiled.problem)):
            return tiled.once_opened(self._until(share))

    def once_packed(self, opened: TiledProblem, share: float, *, has_plan: bool) -> TiledProblem:
        """Return it with addresses; without if there are none, and there is a plan already."""
        with self._clock.pace.measured(Step.PACK, rows_of_a_plan(opened.problem)):
            packed = opened.once_packed()
            if packed.has_plan or has_plan:
                return packed
            return opened.with_another_schedule(self._until(share))

    def once_overfull(self, tiled: TiledProblem, share: float) -> TiledProblem:
        """Return it at times for which addresses may be found in the end."""
        return tiled.once_opened(self._until(share), OVERFULL)

    def note(self, packed: TiledProblem, scheduled: Cycles, opened: Cycles) -> None:
        """Note that a plan is the best, and what its schedule took before."""
        if packed.value is not None:
            self.scheduled, self.opened = scheduled, opened

    def _until(self, share: float) -> Clock:
        """Return a clock that is over when a share of the limit is used."""
        return Clock(self._clock.seconds_left(share), self._clock.now)
