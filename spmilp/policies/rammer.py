"""RAMMER: tasks of all operators of a wave appended to virtual execution units, with waits.

Ma et al., "Rammer: Enabling Holistic Deep Learning Compiler Optimizations with rTasks", OSDI 2020.

What is taken: operators that depend on nothing outstanding form a wave; the tasks of a wave
(rTasks) are appended, one by one, to the virtual execution unit on which they end first, and wait
for what they read; operators of one wave so run beside each other.

What the paper leaves open, or has otherwise, and what is done here: a virtual execution unit is a
core. Times for the choice of a unit are cycles of tasks alone, as profiles of kernels would give
them; transfers, addresses and what is evicted are then found by serial schedule generation in the
order of the appends, for RAMMER knows no scratchpads. Tiles are the problem's: there is no choice
between fast and efficient kernels.
"""

from spmilp.policies.one_after_another import Policy
from spmilp.policies.scheduled import Layers, OnCore, Schedules
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.schedule.orders import by_priority, operators_of
from spmilp.units import Cycles


class Rammer(Policy):
    """Appends the tasks of each wave to the cores on which they end first."""

    name = "rammer"

    def find(self, context: SearchContext) -> SolverResult:
        """Return the one plan of the policy."""
        schedules = Schedules[list[OnCore]](context, self.name, Layers(context.problem).in_order)
        schedules.make(appended_tasks(context.problem))
        return schedules.result()


def waves_of(problem: Problem) -> list[int]:
    """Return the wave of each task: the most operators that come before it on any chain."""
    operators, before = operators_of(problem).tolist(), problem.predecessors()
    waves = [0] * len(problem.tasks)
    for task in problem.topological_order():
        waves[task] = max(
            (waves[one] + (operators[one] != operators[task]) for one in before[task]), default=0
        )
    return waves


def appended_tasks(problem: Problem) -> list[OnCore]:
    """Return the tasks with their cores, in the order in which they are appended."""
    machine, before = problem.machine, problem.predecessors()
    free: list[Cycles] = [0] * len(machine.cores)
    ends: list[Cycles] = [0] * len(problem.tasks)
    appended = []
    for task in by_priority(problem, waves_of(problem)).tolist():
        waits = max((ends[one] for one in before[task]), default=0)
        cycles = problem.tasks[task].cycles
        able = [
            (max(free[core.index], waits) + taken, core.index)
            for core in machine.cores
            if (taken := cycles[core.kind]) is not None
        ]
        ends[task], core = min(able)
        free[core] = ends[task]
        appended.append(OnCore(task, core))
    return appended
