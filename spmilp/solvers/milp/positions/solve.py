"""The search over orders within a solve: its time, its bound, and the plans that it finds."""

from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.milp.messages import Limits, Outcome
from spmilp.solvers.milp.positions.model import PositionModel
from spmilp.solvers.milp.positions.search import KnownOrders, OrderSearch
from spmilp.solvers.milp.positions.tables import PositionTables
from spmilp.solvers.milp.positions.timing import decisions_of
from spmilp.solvers.milp.process import run
from spmilp.solvers.milp.search import NAME, MilpSearch
from spmilp.units import Cycles

LEAST_SECONDS = 0.5
"""Below these no further program is begun."""

NODES = 2000
"""Of a program whose time is not limited, so that it has an end, and always the same."""


class PositionSearch:
    """Improves the bound and the incumbent of a search by programs of orders.

    Parameters
    ----------
    share
        Of the time limit, by which it has ended.
    most
        Programs at most; ``None`` for all.
    """

    def __init__(self, search: MilpSearch, share: float, most: int | None) -> None:
        self._search = search
        self._context = search.context
        self._incumbent = search.incumbent
        self._share = share
        self._left = most

    def run(self) -> None:
        """Search, from where the last search of this solve has ended.

        A problem without a plan is left to others.
        """
        plan = self._incumbent.plan
        if plan is None or self._incumbent.value is None:
            return
        known = self._context.shared(_known_orders)
        search = OrderSearch(
            PositionTables(self._context.problem),
            self._incumbent.bound.value,
            self._incumbent.value,
            self._solve,
            self._offer,
            known,
        )
        runs = sorted(plan.placements, key=lambda placement: placement.start)
        search.improve(tuple(placement.task for placement in runs))
        try:
            search.run(self._prove)
            self._prove(search.bound)
        finally:
            if not self._search.is_believed:
                known.forget()

    def _prove(self, bound: Cycles) -> None:
        if self._search.is_believed:
            self._incumbent.prove(bound, f"{NAME} by positions ({self._search.backend})")

    def _solve(self, model: PositionModel) -> Outcome | None:
        clock, options = self._context.clock, self._context.options
        if self._incumbent.is_enough or self._left == 0 or not self._search.is_believed:
            return None
        if not clock.has_seconds(LEAST_SECONDS, self._share):
            return None
        if self._left is not None:
            self._left -= 1
        seconds = clock.seconds_left(self._share)
        limits = Limits(
            seconds=seconds,
            threads=options.workers,
            seed=options.seed,
            nodes=NODES if seconds is None else None,
        )
        outcome = run(model.program, self._search.backend, limits)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return outcome

    def _offer(self, model: PositionModel, values: list[float]) -> Cycles:
        decisions = decisions_of(model.variables, values)
        if decisions is not None:
            self._search.take(decisions)
        return self._incumbent.value or model.ceiling + 1


def _known_orders(context: SearchContext) -> KnownOrders:
    return KnownOrders()
