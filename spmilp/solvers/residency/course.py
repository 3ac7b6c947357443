"""In which order tasks run, and where: what the search for stays is given."""

from dataclasses import dataclass
from functools import cached_property

from spmilp.plan.plan import Plan
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import MemoryIdx, TaskIdx


@dataclass(frozen=True)
class Course:
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


def course_of(tables: ProblemTables, plan: Plan) -> Course:
    """Return the order in which a plan's tasks start, and their pools."""
    pool_of = {core: pool.index for pool in tables.pools for core in pool.cores}
    order = sorted(plan.placements, key=lambda placement: (placement.start, placement.task))
    return Course(
        order=tuple(placement.task for placement in order),
        pools=tuple(pool_of[placement.core] for placement in plan.placements),
    )


def quickest_pools(tables: ProblemTables) -> tuple[int, ...] | None:
    """Return for each task the pool in which it is quickest; ``None`` if some task has none."""
    found = []
    for task in tables.problem.tasks:
        pools = tables.pools_of(task.index)
        if not pools:
            return None
        found.append(min(pools, key=lambda pool: (tables.cycles_on(task.index, pool), pool)))
    return tuple(found)
