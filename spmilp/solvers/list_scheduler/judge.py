"""A quick word on how good a problem's plans get, to choose between problems."""

from spmilp.machine.machine import Machine
from spmilp.machine.routes import Routes
from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.assign import ASSIGNMENTS
from spmilp.solvers.list_scheduler.board import Stop
from spmilp.solvers.list_scheduler.orders import ORDERS
from spmilp.solvers.list_scheduler.portfolio import FIRST_WEIGHTS
from spmilp.solvers.list_scheduler.run import Runner
from spmilp.solvers.list_scheduler.score import score

RULES = (("earliest", "path"), ("near", "layers"), ("near", "depth"))
"""Assignments and orders: each is often the best, where the others are not."""


class Judge:
    """Values problems on one machine by the plans of a few rules of the list scheduler."""

    def __init__(self, machine: Machine) -> None:
        self._routes = Routes(machine)

    def __call__(self, problem: Problem) -> int | None:
        """Return the least first quantity of the plans; ``None`` without any."""
        runner = Runner(problem, self._routes)
        weights = FIRST_WEIGHTS[problem.objective.first]
        values = []
        for assignment, order in RULES:
            cores, tasks = ASSIGNMENTS[assignment](problem), ORDERS[order](problem)
            stop, board = runner.run(tasks, cores, weights)
            if stop is Stop.DONE:
                values.append(score(problem, board)[0])
        return min(values, default=None)
