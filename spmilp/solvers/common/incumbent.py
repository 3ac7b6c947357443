"""The best plan of a solver, and the bound that it is compared with."""

from spmilp.bounds.bound import Bound
from spmilp.plan.plan import Plan
from spmilp.solvers.common.context import SearchContext


class Incumbent:
    """The best plan so far, with its quantities in the objective's order, and the best bound.

    Parameters
    ----------
    bound
        What is proven of the first quantity at first.
    source
        What reports and bounds call the solver.
    """

    def __init__(self, context: SearchContext, bound: Bound, source: str) -> None:
        self._context = context
        self._source = source
        self._plan: Plan | None = None
        self.bound = bound
        self.values: tuple[int, ...] = ()

    @property
    def plan(self) -> Plan | None:
        """The best plan; ``None`` before the first."""
        return self._plan

    @property
    def value(self) -> int | None:
        """The first quantity of the best plan; ``None`` before the first."""
        return self.values[0] if self.values else None

    @property
    def is_enough(self) -> bool:
        """Whether the best plan is as near to the bound as was asked for."""
        return self.value is not None and self._context.is_enough(self.value, self.bound.value)

    def offer(self, plan: Plan) -> bool:
        """Take a valid plan if it is better than the one there is; say whether it is."""
        values = self._context.values(plan)
        if self._plan is not None and values >= self.values:
            return False
        self._plan, self.values = plan, values
        self.report(values[0])
        return True

    def prove(self, value: int, source: str = "") -> None:
        """Make a bound known, by this source; it is never above the best plan."""
        if self.value is not None:
            value = min(value, self.value)
        if value > self.bound.value:
            self.bound = Bound(source or self._source, self.bound.quantity, value)
            self.report(self.value)

    def report(self, value: int | None) -> None:
        """Report a value of the first quantity, though its plan may not be known yet."""
        self._context.report(value, self.bound.value, self._source)
