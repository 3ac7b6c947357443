"""What runs: tasks and transfers under one numbering, in the lists of their cores and channels."""

from dataclasses import dataclass
from typing import TypeAlias

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem

Activity: TypeAlias = int
"""A task by its index, or a transfer by its index plus the number of tasks."""

ListIdx: TypeAlias = int
"""A core by its index; then the channels, in the order of engines and of channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activities:
    """The tasks and transfers of a plan.

    Parameters
    ----------
    tasks
        How many of them are tasks; these come first.
    order
        All, by their start in the plan. In a valid plan whatever must precede an activity ends
        before it starts, so that this is one of the orders that the command lists will allow.
    lists
        For each list its activities, in that order.
    list_of, position
        For each activity its list and its place in it.
    rank
        For each activity its place in ``order``.
    """

    tasks: int
    order: tuple[Activity, ...]
    lists: tuple[tuple[Activity, ...], ...]
    list_of: tuple[ListIdx, ...]
    position: tuple[int, ...]
    rank: tuple[int, ...]


def activities_of(problem: Problem, plan: Plan) -> Activities:
    """Return the tasks and transfers of a plan in the lists that will run them."""
    first_channel = _first_list_of_each_engine(problem)
    list_of = [placement.core for placement in plan.placements]
    list_of += [first_channel[move.engine] + move.channel for move in plan.transfers]
    starts = [placement.start for placement in plan.placements]
    starts += [move.start for move in plan.transfers]
    order = sorted(range(len(starts)), key=lambda activity: (starts[activity], activity))
    lists: list[list[Activity]] = [[] for _ in range(first_channel[-1])]
    position, rank = [0] * len(order), [0] * len(order)
    for place, activity in enumerate(order):
        mine = lists[list_of[activity]]
        position[activity], rank[activity] = len(mine), place
        mine.append(activity)
    return Activities(
        tasks=len(plan.placements),
        order=tuple(order),
        lists=tuple(map(tuple, lists)),
        list_of=tuple(list_of),
        position=tuple(position),
        rank=tuple(rank),
    )


def _first_list_of_each_engine(problem: Problem) -> list[ListIdx]:
    """Return the list of each engine's channel 0, and the number of lists behind them."""
    firsts = [len(problem.machine.cores)]
    for engine in problem.machine.engines:
        firsts.append(firsts[-1] + engine.channels)
    return firsts
