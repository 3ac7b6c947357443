"""Milestones cut the time of every plan into stages; each task has a window of them."""

from dataclasses import dataclass

from spmilp.bounds.critical_path import Paths
from spmilp.problem.problem import Problem
from spmilp.units import Cycles, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The stages between tasks of which each follows the one before.

    Stage ``s`` lasts from the end of milestone ``s - 1`` (cycle 0 for the first) to the end of
    milestone ``s`` (the makespan for the last).

    Parameters
    ----------
    shortest
        Cycles below which no plan has each stage: heads, chains and tails.
    first, last
        For each task the first stage in which it can start, and the last in which it can end: it
        starts after the milestones that it follows, and ends before those that follow it.
    """

    milestones: tuple[TaskIdx, ...]
    shortest: tuple[Cycles, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of stages, one more than milestones."""
        return len(self.shortest)


def stages_along(problem: Problem, paths: Paths, most: int) -> Stages:
    """Cut along the tasks of a longest path, with ``most`` milestones at the most."""
    before = problem.predecessors()
    order = tuple(problem.topological_order())
    path = _longest_path(paths, before)
    every = -(-len(path) // most)
    milestones = tuple(path[every - 1 :: every])
    return Stages(
        milestones=milestones,
        shortest=_shortest(path, every, paths),
        first=_first_stages(milestones, before, order),
        last=_last_stages(milestones, before, order),
    )


def _longest_path(paths: Paths, before: tuple[tuple[TaskIdx, ...], ...]) -> list[TaskIdx]:
    """Return tasks of which each precedes the next: back from the one that ends last at best."""
    task = max(range(len(before)), key=lambda t: (paths.head[t] + paths.cycles[t], -t))
    found = [task]
    while before[task]:
        task = max(before[task], key=lambda t: (paths.head[t] + paths.cycles[t], -t))
        found.append(task)
    found.reverse()
    return found


def _shortest(path: list[TaskIdx], every: int, paths: Paths) -> tuple[Cycles, ...]:
    """Return for each stage the cycles of its part of the path, with the head and the tail."""
    found = []
    for begin in range(0, len(path), every):
        part = path[begin : begin + every]
        cycles = sum(paths.cycles[task] for task in part)
        if begin == 0:
            cycles += paths.head[part[0]]
        if len(part) < every:
            cycles += paths.tail[part[-1]] - paths.cycles[part[-1]]
        found.append(cycles)
    if len(path) % every == 0:
        found.append(paths.tail[path[-1]] - paths.cycles[path[-1]])
    return tuple(found)


def _first_stages(
    milestones: tuple[TaskIdx, ...],
    before: tuple[tuple[TaskIdx, ...], ...],
    order: tuple[TaskIdx, ...],
) -> tuple[int, ...]:
    opens = {task: stage + 1 for stage, task in enumerate(milestones)}
    first = [0] * len(before)
    for task in order:
        for earlier in before[task]:
            first[task] = max(first[task], first[earlier], opens.get(earlier, 0))
    return tuple(first)


def _last_stages(
    milestones: tuple[TaskIdx, ...],
    before: tuple[tuple[TaskIdx, ...], ...],
    order: tuple[TaskIdx, ...],
) -> tuple[int, ...]:
    last = [len(milestones)] * len(before)
    for stage, task in enumerate(milestones):
        last[task] = stage
    for task in reversed(order):
        for earlier in before[task]:
            last[earlier] = min(last[earlier], last[task])
    return tuple(last)
