"""Task sequences: in which order tasks run, and where."""

from dataclasses import dataclass
from functools import cached_property

from spmilp.plan.plan import Plan
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx, TaskIdx


@dataclass(frozen=True)
class TaskSequence:
    """Tasks one after another, each in a pool of cores.

    Parameters
    ----------
    order
        Every task, after all that it follows; the *step* of a task is its position.
    pools
        For each task, by index.
    """

    order: tuple[TaskIdx, ...]
    pools: tuple[int, ...]

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The step of each task, by index."""
        found = [0] * len(self.order)
        for step, task in enumerate(self.order):
            found[task] = step
        return tuple(found)

    def memories(self, tables: ProblemTables) -> tuple[MemoryIdx, ...]:
        """Return the memory in which each task works, by index."""
        return tuple(tables.pools[pool].memory for pool in self.pools)


def sequence_of(tables: ProblemTables, plan: Plan) -> TaskSequence:
    """Return the order in which a plan's tasks start, and their pools."""
    order = sorted(plan.placements, key=lambda placement: (placement.start, placement.task))
    return TaskSequence(tuple(one.task for one in order), tables.pools_of_plan(plan))


def quickest_pools(tables: ProblemTables) -> tuple[int, ...] | None:
    """Return for each task the pool in which it is quickest; ``None`` if some task has none."""
    found = []
    for task in tables.problem.tasks:
        pools = tables.pools_of(task.index)
        if not pools:
            return None
        found.append(min(pools, key=lambda pool: (tables.cycles_on(task.index, pool), pool)))
    return tuple(found)
