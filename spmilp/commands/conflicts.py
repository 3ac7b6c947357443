"""What must come after what: conflicts on bytes, and tasks that follow others without data."""

from typing import TypeAlias

from spmilp.commands.accesses import Accesses, Packed, Placed, Region
from spmilp.commands.activities import Activities, Activity
from spmilp.commands.boxes import Boxes
from spmilp.commands.intervals import Intervals
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.units import Box, TensorIdx

Touched: TypeAlias = tuple[Activity, tuple[Region, ...], tuple[Region, ...]]
"""An activity, what it reads, and what it writes."""


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
    touched = [
        (activity, tuple(accesses.reads(activity)), tuple(accesses.writes(activity)))
        for activity in activities.order
    ]
    intervals = [Intervals() for _ in problem.machine.memories]
    boxes = {tensor: Boxes(where) for tensor, where in _boxes_of_written_tensors(touched).items()}
    for activity, reads, writes in touched:
        own, mine = activities.list_of[activity], found[activity]
        for region in reads:
            if isinstance(region, Packed):
                known = intervals[region.memory]
                mine.update(known.read(activity, own, region.low, region.high))
            elif region.tensor in boxes:
                mine.update(boxes[region.tensor].read(activity, own, region.box))
        for region in writes:
            if isinstance(region, Packed):
                mine.update(intervals[region.memory].write(activity, region.low, region.high))
            else:
                mine.update(boxes[region.tensor].write(activity, region.box))
        mine.discard(activity)
    return tuple(map(frozenset, found))


def _boxes_of_written_tensors(touched: list[Touched]) -> dict[TensorIdx, set[Box]]:
    """Return what is touched of the tensors that somebody writes; weights and inputs are not."""
    boxes: dict[TensorIdx, set[Box]] = {
        region.tensor: set()
        for _, _, writes in touched
        for region in writes
        if isinstance(region, Placed)
    }
    for _, reads, writes in touched:
        for region in (*reads, *writes):
            if isinstance(region, Placed) and region.tensor in boxes:
                boxes[region.tensor].add(region.box)
    return boxes
