"""Initial solutions: what the list scheduler finds by its several rules."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.list_scheduler.schedules import Schedules

SHARE = 0.2
"""Of the time, at most, for the list scheduler."""


class InitialSolutions:
    """The best schedule of each of the list scheduler's rules.

    The makespan of a schedule does not say how short it becomes in the end: on networks with tight
    memory, one that is a tenth longer than the best at first may be a tenth shorter then.
    """

    def __init__(self, context: SearchContext) -> None:
        self._bound = context.bound
        self._clock = context.clock
        self._schedules = Schedules.of(context)

    @property
    def reason(self) -> str:
        """Why there is no schedule, where there is none."""
        return self._schedules.reason

    def makespans(self) -> Iterator[int]:
        """Try the rules one after another; yield the makespan of each schedule."""
        for found in self._schedules:
            if found is not None:
                yield found.score[0]
            if self._schedules.kept and self._clock.is_over(SHARE):
                return

    def plans(self) -> Iterator[Plan]:
        """Yield the plans that were kept: the shortest of each assignment, then the next ones."""
        rank: Counter[str] = Counter()
        order: list[tuple[int, int]] = []
        kept = self._schedules.kept
        for position, found in enumerate(kept):
            family = found.trial.assignment.split()[0]
            order.append((rank[family], position))
            rank[family] += 1
        for _, position in sorted(order):
            with suppress(DoesNotFitError):
                yield self._schedules.plan(kept[position], self._bound)
