"""A rule of one's own: a function that says on which core each task runs."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from spmilp.errors import SpmilpError
from spmilp.policies.one_after_another import Policy
from spmilp.policies.scheduled import Schedules
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.schedule.kernels.records import Ints
from spmilp.solvers.schedule.portfolio import ORDERS
from spmilp.units import CoreIdx

CoreRule: TypeAlias = Callable[[Problem], Sequence[CoreIdx]]
"""Returns the core of each task of a problem, in the order of the tasks."""


class ByRule(Policy):
    """Schedules the tasks on the cores that a rule says, in each order of the list scheduler."""

    def __init__(self, name: str, rule: CoreRule) -> None:
        self.name = name
        self._rule = rule

    def find(self, context: SearchContext) -> SolverResult:
        """Return the best plan; a ``SpmilpError`` if a task cannot run on the core that is said."""
        problem, cores = context.problem, self._cores(context.problem)
        schedules = Schedules[str](
            context, self.name, lambda order: (ORDERS[order](problem, cores), cores)
        )
        for order in ORDERS:
            if not schedules.is_over:
                schedules.make(order)
        return schedules.result((("order", schedules.choice or ""),))

    def _cores(self, problem: Problem) -> Ints:
        said = self._rule(problem)
        try:
            found = np.array([int(core) for core in said], np.int64)
        except (TypeError, ValueError) as error:
            raise SpmilpError(
                f"rule {self.name}: it returned {said!r:.60}; return the core of each task"
            ) from error
        cores, tasks = problem.machine.cores, problem.tasks
        if found.size != len(tasks):
            raise SpmilpError(
                f"rule {self.name}: {found.size:,} cores for {len(tasks):,} tasks; return one each"
            )
        for task, core in zip(tasks, found.tolist(), strict=True):
            if not 0 <= core < len(cores):
                raise SpmilpError(
                    f"rule {self.name}: task {task.name} on core {core}, but there are "
                    f"{len(cores)}; return 0 to {len(cores) - 1}"
                )
            if task.cycles[cores[core].kind] is None:
                raise SpmilpError(
                    f"rule {self.name}: task {task.name} on core {cores[core].name}, whose kind "
                    "cannot run it; choose a core of a kind that has cycles for it"
                )
        return found
