"""What a model leaves open: the turns that each task may take."""

from dataclasses import dataclass
from typing import NamedTuple

from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.residency.course import Course
from spmilp.units import TaskIdx

MOST_POOLS = 4
"""Up to so many pools of cores, a task in a window may go to any of them."""


class Turn(NamedTuple):
    """A task's step and the pool of cores in which it runs."""

    step: int
    pool: int


@dataclass(frozen=True, slots=True)
class Scope:
    """The turns of each task, by index; at each step one of them runs."""

    turns: tuple[tuple[Turn, ...], ...]


def fixed(course: Course) -> Scope:
    """Return the scope of one course: each task has one turn."""
    turns = zip(course.steps, course.pools, strict=True)
    return Scope(tuple((Turn(step, pool),) for step, pool in turns))


def window(tables: ProblemTables, course: Course, first: int, last: int) -> Scope:
    """Return a scope in which the tasks at steps ``[first, last)`` may change places.

    None comes before what it follows: so many steps behind the first as tasks before it are in the
    window, and as many before the last as tasks after it are. Where pools are few, they may change
    these, too.
    """
    free = course.order[first:last]
    before = _ancestors(tables, free)
    after = {task: sum(task in some for some in before.values()) for task in free}
    turns = list(fixed(course).turns)
    has_few = len(tables.pools) <= MOST_POOLS
    for task in free:
        allowed = tables.pools_of(task) if has_few else (course.pools[task],)
        steps = range(first + len(before[task]), last - after[task])
        turns[task] = tuple(Turn(step, pool) for step in steps for pool in allowed)
    return Scope(tuple(turns))


def _ancestors(tables: ProblemTables, free: tuple[TaskIdx, ...]) -> dict[TaskIdx, set[TaskIdx]]:
    """Return what comes before each of some tasks, among themselves, in any order.

    Parameters
    ----------
    free
        Successive tasks of a course: what leads from one to another is among them.
    """
    found: dict[TaskIdx, set[TaskIdx]] = {}
    for task in free:
        direct = [earlier for earlier in tables.predecessors[task] if earlier in found]
        found[task] = {one for earlier in direct for one in (earlier, *found[earlier])}
    return found
