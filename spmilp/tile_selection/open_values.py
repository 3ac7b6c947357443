"""What schedules are worth once they are justified with open addresses; and their plans."""

from dataclasses import replace

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


def shares_of(problem: Problem) -> Shares | None:
    """Return the part of each memory that may be filled; ``None`` with addresses."""
    if problem.objective.first is not Quantity.MAKESPAN or not can_be_open(problem):
        return None
    return whole_memories(problem)


def rows_of_a_plan(problem: Problem) -> int:
    """Return about how many rows a plan of a problem has."""
    return len(problem.tasks) + ROWS_OF_A_READ * reads_of(problem)


class OpenValues:
    """Justifies schedules, and makes their plans.

    Parameters
    ----------
    clock
        Of the whole solve.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scheduled: Cycles = NEVER
        self._opened: Cycles = NEVER

    def opens_soon(self, problem: Problem) -> bool:
        """Return whether a schedule is soon justified, as far as there is a limit of time."""
        return not self._clock.is_limited or self.seconds_to_open(problem) < SECONDS_TO_OPEN

    def seconds_to_open(self, problem: Problem) -> float:
        """Return how long it will take to justify a schedule."""
        return self._clock.pace.seconds(Step.OPEN, rows_of_a_plan(problem))

    def seconds_to_have_plan(self, problem: Problem) -> float:
        """Return how long it will take to make the plan of a schedule."""
        return self._clock.pace.seconds(Step.PACK, rows_of_a_plan(problem))

    def is_worth_opening(self, tiled: TiledProblem) -> bool:
        """Return whether a schedule may become the shortest once it is justified."""
        most = WORTH_OPENING if self.opens_soon(tiled.problem) else 1.0
        return (tiled.value or 0) <= most * self._scheduled

    def expected(self, tiled: TiledProblem) -> Worth | None:
        """Return what a schedule is worth if justification gains as much as with the best."""
        if tiled.worth is None or self._scheduled == NEVER:
            return tiled.worth
        cycles, *others = tiled.worth
        return (cycles * self._opened // self._scheduled, *others)

    def once_opened(self, tiled: TiledProblem, share: float) -> TiledProblem:
        """Return it with its schedule at justified times, by which tilings are compared."""
        with self._clock.pace.measured(Step.OPEN, rows_of_a_plan(tiled.problem)):
            return tiled.once_opened(self._until(share))

    def with_plan(self, opened: TiledProblem, share: float) -> TiledProblem:
        """Return it with the plan of its schedule, or of another by the same rule.

        Nearly always addresses are found for all of memory, and it takes no longer than before.
        """
        with self._clock.pace.measured(Step.PACK, rows_of_a_plan(opened.problem)):
            clock = self._until(share)
            planned = opened.once_packed(clock)
            if planned.has_plan:
                return planned
            if opened.is_open:
                return opened.with_another_schedule(clock)
            return replace(opened, opened=None).once_justified()

    def note(self, opened: TiledProblem) -> None:
        """Note what the schedule of the best tilings takes, and what it does once justified."""
        if opened.schedule is not None and opened.value is not None:
            self._scheduled, self._opened = opened.schedule.score[0], opened.value

    def _until(self, share: float) -> Clock:
        """Return a clock that is over when a share of the limit is used."""
        return Clock(self._clock.seconds_left(share), self._clock.now)
