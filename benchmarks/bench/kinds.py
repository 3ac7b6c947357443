"""Kinds of problems: bounded by work or by traffic, scratchpads tight or ample."""

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum

from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import Paths
from spmilp.bounds.resources import traffic_bound, work_bound
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Cycles

BALANCED_UP_TO = 2.0
"""A problem is balanced when neither simple bound is more than this many times the other."""

TIGHT_FROM = 0.5
"""Of the bytes of all cores' memories, when intermediate results would fill so much of them."""


class Kind(StrEnum):
    """The larger one of the two simple bounds."""

    COMPUTE = "compute-bound"
    BALANCED = "balanced"
    TRAFFIC = "traffic-bound"


@dataclass(frozen=True, slots=True, kw_only=True)
class Character:
    """The figures by which rows are classified; they do not depend on any solver.

    Parameters
    ----------
    work, traffic
        Cycles that all cores together need for all tasks, and that the DRAMs' links need for what
        must leave and enter them. They are the bounds of these names of ``spmilp bound``
        without heads and tails, which would bring both near the longest path.
    pressure
        The most bytes of intermediate results that wait for their readers when tasks end one after
        another in their order, divided by the usable bytes of all memories in which cores work.
    """

    work: Cycles
    traffic: Cycles
    pressure: float

    @property
    def kind(self) -> Kind:
        """The kind of bound that is largest."""
        if self.traffic > BALANCED_UP_TO * self.work:
            return Kind.TRAFFIC
        return Kind.COMPUTE if self.work > BALANCED_UP_TO * self.traffic else Kind.BALANCED

    @property
    def tight(self) -> bool:
        """Whether memory is short: intermediate results fill half of it or more."""
        return self.pressure >= TIGHT_FROM


def character_of(problem: Problem) -> Character:
    """Return the figures of a problem."""
    cycles = tuple(min(c for c in task.cycles if c is not None) for task in problem.tasks)
    none = (0,) * len(cycles)
    return Character(
        work=work_bound(problem, Paths(head=none, cycles=cycles, tail=cycles)),
        traffic=traffic_bound(problem, Movement(problem), Paths(none, none, none)),
        pressure=_pressure(problem),
    )


def _pressure(problem: Problem) -> float:
    homes = {core.memory for core in problem.machine.cores}
    sizes = [problem.machine.memories[home].usable for home in homes]
    capacity = sum(size for size in sizes if size is not None)
    # With a memory without limit nothing is short.
    if capacity == 0 or None in sizes:
        return 0.0
    return most_waiting(problem) / capacity


def most_waiting(problem: Problem) -> Bytes:
    """Return the most bytes that are written and not yet read for the last time."""
    order = tuple(problem.topological_order())
    last = {
        problem.slices[read].buffer: task for task in order for read in problem.tasks[task].reads
    }
    ending: dict[int, Bytes] = defaultdict(int)
    waiting = most = 0
    for task in order:
        for buffer in problem.tasks[task].writes:
            if buffer in last:
                size = problem.buffers[buffer].bytes
                waiting += size
                ending[last[buffer]] += size
        most = max(most, waiting)
        waiting -= ending.pop(task, 0)
    return most
