"""What must come after what: conflicts on bytes, and tasks that follow others without data."""

from spmilp.commands.accesses import Accesses, Placed, Region
from spmilp.commands.activities import Activities, Activity
from spmilp.commands.boxes import Boxes
from spmilp.commands.intervals import Intervals
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.units import Box


def predecessors(
    problem: Problem, plan: Plan, activities: Activities
) -> tuple[frozenset[Activity], ...]:
    """For each activity, others that must have ended before it starts.

    Two activities conflict when they touch the same bytes and at least one writes them. The pairs
    returned, together with the order inside each list, imply the order of every conflicting pair;
    they need not be the least.
    """
    found: list[set[Activity]] = [set() for _ in activities.order]
    for task, placement in zip(problem.tasks, plan.placements, strict=True):
        found[placement.task].update(task.after)
    accesses = Accesses(problem, plan)
    intervals = [Intervals() for _ in problem.machine.memories]
    boxes = {
        tensor: Boxes(touched)
        for tensor, touched in _boxes_of_written_tensors(accesses, activities).items()
    }
    for activity in activities.order:
        own, mine = activities.list_of[activity], found[activity]
        for region in accesses.reads(activity):
            if not isinstance(region, Placed):
                where = intervals[region.memory]
                mine.update(where.read(activity, own, region.low, region.high))
            elif region.tensor in boxes:
                mine.update(boxes[region.tensor].read(activity, own, region.box))
        for region in accesses.writes(activity):
            if isinstance(region, Placed):
                mine.update(boxes[region.tensor].write(activity, region.box))
            else:
                mine.update(intervals[region.memory].write(activity, region.low, region.high))
        mine.discard(activity)
    return tuple(map(frozenset, found))


def _boxes_of_written_tensors(accesses: Accesses, activities: Activities) -> dict[int, list[Box]]:
    """Return what is touched of the tensors that somebody writes; weights and inputs are not."""
    written = {
        region.tensor
        for activity in activities.order
        for region in accesses.writes(activity)
        if isinstance(region, Placed)
    }
    touched: dict[int, list[Box]] = {tensor: [] for tensor in sorted(written)}
    if not touched:
        return touched
    for activity in activities.order:
        regions: list[Region] = [*accesses.reads(activity), *accesses.writes(activity)]
        for region in regions:
            if isinstance(region, Placed) and region.tensor in touched:
                touched[region.tensor].append(region.box)
    return touched
