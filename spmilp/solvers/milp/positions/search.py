"""Best-first search over the orders of the tasks, with a program for each beginning of an order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeAlias

from spmilp.solvers.milp.messages import Outcome
from spmilp.solvers.milp.positions.model import PositionModel
from spmilp.solvers.milp.positions.tables import PositionTables
from spmilp.units import Cycles, TaskIdx

Order: TypeAlias = tuple[TaskIdx, ...]

Solve: TypeAlias = Callable[[PositionModel], Outcome | None]
"""Solves a program; ``None`` when there is no time for it."""

Offer: TypeAlias = Callable[[PositionModel, list[float]], Cycles]
"""Takes the solution of a whole order, and returns the makespan of the best plan."""


@dataclass(slots=True)
class KnownOrders:
    """What programs have proven of the orders of one problem, for a search that goes on later.

    Parameters
    ----------
    open
        Orders begun, least bound first: a bound, minus the number of tasks, the order. Every order
        of all tasks begins with one of them, or no better plan has it.
    improved
        Whole orders in which a better plan has been looked for.
    """

    open: list[tuple[Cycles, int, Order]] = field(default_factory=lambda: [(0, 0, ())])
    improved: set[Order] = field(default_factory=set)

    def forget(self) -> None:
        """Believe nothing of it any more."""
        self.open[:] = [(0, 0, ())]
        self.improved.clear()


class OrderSearch:
    """Finds the least makespan of the programs of all orders, or as high a bound as it can.

    The order begun with the least bound is continued by each task that may come next. What a
    program proves holds for all orders that begin in its way; an order that no better plan has is
    never continued.

    Parameters
    ----------
    floor
        No plan is below.
    best
        The makespan of a known plan; only better ones are looked for.
    known
        What searches before have proven; goes on from there, and adds to it.
    """

    def __init__(
        self,
        tables: PositionTables,
        floor: Cycles,
        best: Cycles,
        solve: Solve,
        offer: Offer,
        known: KnownOrders,
    ) -> None:
        self._tables = tables
        self._floor = floor
        self._best = best
        self._solve = solve
        self._offer = offer
        self._known = known
        self._open = known.open
        self._whole: set[Order] = set()

    @property
    def bound(self) -> Cycles:
        """What no plan is below."""
        least = self._open[0][0] if self._open else self._best
        return min(self._best, max(self._floor, least))

    def improve(self, order: Order) -> None:
        """Look for a better plan with a whole order, so that there is less to look for in others.

        It is not known to be of use to the bound: others may have better plans. Not done again.
        """
        if order in self._known.improved:
            return
        model = PositionModel(self._tables, order, self.bound, self._best - 1)
        outcome = self._solve(model)
        if outcome is not None and outcome.values is not None:
            self._best = min(self._best, self._offer(model, outcome.values))
        if outcome is not None:
            self._known.improved.add(order)

    def run(self, on_bound: Callable[[Cycles], None]) -> None:
        """Search until nothing is open, time is over, or the least bound belongs to a whole order.

        Such an order has been given all the time there was, if not by a search before this one.

        Parameters
        ----------
        on_bound
            Called with the bound after each order that was continued.
        """
        while self._open and self._open[0][0] < self._best:
            _, _, order = self._open[0]
            if order in self._whole or not self._continue(order):
                return
            on_bound(self.bound)

    def _continue(self, order: Order) -> bool:
        """Replace an order begun by those that go on from it; say whether there was time."""
        floor = max(self._floor, self._open[0][0])
        found = []
        for longer in self._longer(order):
            model = PositionModel(self._tables, longer, floor, self._best - 1)
            outcome = self._solve(model)
            if outcome is None:
                return False
            if len(longer) == len(self._tables.before):
                self._whole.add(longer)
            found.append((self._concluded(model, outcome, floor), -len(longer), longer))
        heappop(self._open)
        for one in found:
            heappush(self._open, one)
        return True

    def _concluded(self, model: PositionModel, outcome: Outcome, floor: Cycles) -> Cycles:
        if outcome.infeasible:
            return model.ceiling + 1
        if outcome.values is not None and not model.variables.rest:
            self._best = min(self._best, self._offer(model, outcome.values))
        return max(floor, outcome.bound or 0)

    def _longer(self, order: Order) -> Iterator[Order]:
        """Yield orders that go on from one, up to where there is a choice; a whole one again."""
        if len(order) == len(self._tables.before):
            yield order
        for task in self._next(order):
            longer = (*order, task)
            able = self._next(longer)
            while len(able) == 1:
                longer = (*longer, able[0])
                able = self._next(longer)
            yield longer

    def _next(self, order: Order) -> list[TaskIdx]:
        """Return the tasks that may come next."""
        done = set(order)
        return [
            task
            for task, before in enumerate(self._tables.before)
            if task not in done and done.issuperset(before)
        ]
