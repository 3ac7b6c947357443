"""A quick evaluation of problems that differ in their tiles, to choose between them."""

from collections.abc import Iterator, Sequence

from spmilp.bounds.bound import Bound
from spmilp.machine.machine import Machine
from spmilp.machine.routes import Routes
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.serial.run import Runner
from spmilp.solvers.list_scheduler.portfolio import Found, Portfolio
from spmilp.solvers.list_scheduler.rules import EVALUATION_RULES
from spmilp.solvers.list_scheduler.schedules import plan_from

Rule = tuple[str, str]
"""An assignment and an order."""


class TilingEvaluator:
    """Values problems on one machine by the plans of a few rules of the list scheduler."""

    def __init__(self, machine: Machine) -> None:
        self._routes = Routes(machine)

    def __call__(self, problem: Problem) -> int | None:
        """Return the least value of the first quantity; ``None`` without a schedule."""
        return min((found.score[0] for found in self.schedules(problem)), default=None)

    def schedules(
        self, problem: Problem, rules: Sequence[Rule] = EVALUATION_RULES
    ) -> Iterator[Found]:
        """Yield what some of the rules find, one after another."""
        runner = Runner(problem, self._routes)
        yield from filter(None, Portfolio(problem, runner, rules))

    def plan(self, problem: Problem, found: Found, bound: Bound) -> Plan:
        """Return a schedule as a plan."""
        return plan_from(problem, self._routes, found, bound, "list")
