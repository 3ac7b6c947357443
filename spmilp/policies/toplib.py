"""TOpLib: colours of an interference graph share partitions, and what is left holds promoted data.

Li et al., "TOpLib", NPC 2020 (LNCS 12639, doi 10.1007/978-3-030-79478-1_1), IJPP 2021 (doi
10.1007/s10766-021-00701-6): memory reuse assisted by a compiler, for operators written by hand on
accelerators with scratchpads.

What is taken: live ranges by data-flow analysis over a control-flow graph, an interference graph
for each address space, greedy colouring, a partition for each colour as large as the largest value
of that colour, promotion of off-chip data into what is left.

What it leaves open, or has otherwise, and what is done here:

- The program of a scratchpad is that of the tasks on its cores, in the order of ``onsram``, in a
  loop over inferences: for each task its loads, its computation, its stores.
- At first all data lies off chip; values of the program are the operands, results and scratch that
  each task streams. The graph is coloured by decreasing size.
- The order of promotion is not known. Here data comes first of which a block of place saves most
  bytes from and to DRAM; it takes the partition with room in time that has to grow least, or one of
  its own.
- A plan's addresses are packed, so that data of different colours may lie in each other's
  partitions. They always exist where the partitions fit; where those of streams alone do not, and
  tasks do, nothing is promoted.

Not taken: what ``onsram`` does not take.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import combinations
from typing import Any, TypeVar

import networkx as nx

from spmilp.policies.one_after_another import NotTakenError
from spmilp.policies.onsram import PinnedPlans
from spmilp.policies.structures import Pins, Structure, TaskStructures
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.units import MemoryIdx

Point = TypeVar("Point", bound=Hashable)


def live_ranges(
    program: "nx.DiGraph[Point]",
    reads: Mapping[Point, Collection[int]],
    writes: Mapping[Point, Collection[int]],
    values: int,
) -> list[set[Point]]:
    """Return the points at which each value takes memory.

    A value is live behind a point if a path leads from there to a point that reads it, on which no
    point writes it; it takes memory where it is read, written, or live behind the point. The sets
    of live values grow from nothing until none of them changes (backward analysis; Aho et al.,
    "Compilers", chapter 9.2).

    Parameters
    ----------
    program
        An edge leads from each point to those that may come next.
    reads, writes
        Values by number; at a point all reads come before all writes.
    values
        How many there are.
    """
    read, written = ({p: _bits(of.get(p, ())) for p in program} for of in (reads, writes))
    behind = dict.fromkeys(program, 0)
    waiting = deque(reversed(list(program)))
    queued = set(program)
    while waiting:
        point = waiting.popleft()
        queued.discard(point)
        before = read[point] | (behind[point] & ~written[point])
        for earlier in program.predecessors(point):
            if before & ~behind[earlier]:
                behind[earlier] |= before
                if earlier not in queued:
                    queued.add(earlier)
                    waiting.append(earlier)
    found: list[set[Point]] = [set() for _ in range(values)]
    for point in program:
        for value in _numbers(behind[point] | read[point] | written[point]):
            found[value].add(point)
    return found


def loop_of(points: Sequence[Point]) -> "nx.DiGraph[Point]":
    """Return points one after another, over and over again."""
    program: nx.DiGraph[Point] = nx.DiGraph()
    nx.add_cycle(program, points)
    return program


def _bits(numbers: Collection[int]) -> int:
    return sum(1 << number for number in set(numbers))


def _numbers(bits: int) -> list[int]:
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found


Range = Collection[Hashable]
"""The points at which a value takes memory."""


@dataclass(slots=True, kw_only=True)
class Partition:
    """Place for values of which no two are live at one point.

    Parameters
    ----------
    size
        That of the largest of them, in the unit of the values.
    values
        By number.
    points
        At which one of them is live.
    """

    size: int = 0
    values: list[int] = field(default_factory=list)
    points: set[Hashable] = field(default_factory=set)

    def add(self, value: int, size: int, points: Range) -> None:
        """Put a value into it, which makes it as large as that."""
        self.size = max(self.size, size)
        self.values.append(value)
        self.points.update(points)


def interference_graph(ranges: Sequence[Range]) -> "nx.Graph[int]":
    """Return a graph of all values in which an edge joins two that are live at one point."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(ranges)))
    live: dict[Hashable, list[int]] = defaultdict(list)
    for value, points in enumerate(ranges):
        for point in points:
            live[point].append(value)
    for together in {tuple(some) for some in live.values()}:
        graph.add_edges_from(combinations(together, 2))
    return graph


def coloured(ranges: Sequence[Range], sizes: Sequence[int]) -> list[Partition]:
    """Return the partitions of a greedy colouring, values by decreasing size."""

    def by_size(graph: "nx.Graph[int]", colours: Any) -> Iterator[int]:
        return iter(sorted(graph, key=lambda value: (-sizes[value], value)))

    colours = nx.greedy_color(interference_graph(ranges), by_size)
    partitions = [Partition() for _ in range(1 + max(colours.values(), default=-1))]
    for value, colour in sorted(colours.items()):
        partitions[colour].add(value, sizes[value], ranges[value])
    return partitions


def height(partitions: Iterable[Partition]) -> int:
    """Return what all partitions take beside each other."""
    return sum(one.size for one in partitions)


class Remainder:
    """What is left of an address space beside its partitions; promoted values share it likewise."""

    def __init__(self, size: int | None) -> None:
        self._left = size
        self.partitions: list[Partition] = []

    def takes(self, value: int, size: int, points: Range) -> bool:
        """Give a value its place, if there is room, and say whether there was."""
        able = [one for one in self.partitions if one.points.isdisjoint(points)]
        chosen = min(able, key=lambda one: (max(0, size - one.size), one.size), default=Partition())
        growth = max(0, size - chosen.size)
        if self._left is not None and growth > self._left:
            return False
        if not chosen.values:
            self.partitions.append(chosen)
        chosen.add(value, size, points)
        if self._left is not None:
            self._left -= growth
        return True


class TopLib(Solver):
    """Keeps data in the part of each scratchpad that the partitions of its streams leave."""

    name = "toplib"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the plan of the policy; a problem that it does not take stays without one."""
        if context.misfit:
            return context.infeasible(context.misfit)
        try:
            plans = PinnedPlans(context, self.name)
            spaces = AddressSpaces(plans.structures)
            return plans.result(*plans.in_turn(spaces.by_saving, spaces.promoted))
        except NotTakenError as error:
            return context.unknown(str(error))


class Phase(IntEnum):
    """What a core does for a task, one after another; each is a point of its program."""

    LOADS = 0
    COMPUTATION = 1
    STORES = 2


class AddressSpaces:
    """The values of each scratchpad's program, and what is left beside their partitions."""

    def __init__(self, structures: TaskStructures) -> None:
        self._structures = structures
        self._of: dict[MemoryIdx, _Program] = {}
        steps: dict[MemoryIdx, list[int]] = defaultdict(list)
        for number, step in enumerate(structures.steps):
            steps[step.memory].append(number)
        for memory, numbers in steps.items():
            self._of[memory] = _Program(structures, memory, numbers)

    @cached_property
    def by_saving(self) -> tuple[int, ...]:
        """The structures of which a block of place saves most bytes, the best first."""
        return tuple(sorted((one.index for one in self._structures.all), key=self._worth))

    def promoted(self, order: Sequence[int]) -> Pins:
        """Return the structures that find room in what is left, in an order."""
        left = {memory: Remainder(program.left) for memory, program in self._of.items()}
        chosen = set()
        for index in order:
            one = self._structures.all[index]
            points = self._of[one.memory].ranges[index]
            if left[one.memory].takes(index, self._size(one), points):
                chosen.add(index)
        return frozenset(chosen)

    def _size(self, one: Structure) -> int:
        return self._structures.tables.blocks_of(one.buffer, one.memory)

    def _worth(self, index: int) -> tuple[float, int]:
        one = self._structures.all[index]
        return -one.saved_bytes / self._size(one), index


class _Program:
    """The tasks of one scratchpad's cores, over and over again.

    Attributes
    ----------
    ranges
        Of the structures of this scratchpad, by index: where they live if they are promoted.
    left
        Blocks beside the partitions of the streams, never fewer than 0; ``None`` without limit.
    """

    def __init__(
        self, structures: TaskStructures, memory: MemoryIdx, numbers: Sequence[int]
    ) -> None:
        self._structures = structures
        self._memory = memory
        self._numbers = numbers
        self.ranges = self._ranges()
        partitions = coloured(*self._streams())
        capacity = structures.tables.capacity[memory]
        self.left = None if capacity is None else max(0, capacity - height(partitions))

    def _ranges(self) -> dict[int, Range]:
        """Analyse the program in which all structures are promoted."""
        reads: dict[tuple[int, Phase], list[int]] = defaultdict(list)
        writes: dict[tuple[int, Phase], list[int]] = defaultdict(list)
        here = [one for one in self._structures.all if one.memory == self._memory]
        for value, one in enumerate(here):
            tables = self._structures.tables
            first, task = one.uses[0], tables.writers[one.buffer]
            is_written = task is not None and self._structures.steps[first].task == task
            writes[first, Phase.COMPUTATION if is_written else Phase.LOADS].append(value)
            for step in one.uses[is_written:]:
                reads[step, Phase.COMPUTATION].append(value)
            if is_written and one.buffer in self._structures.stored:
                reads[first, Phase.STORES].append(value)
        points = [(step, phase) for step in self._numbers for phase in Phase]
        found = live_ranges(loop_of(points), reads, writes, len(here))
        return {one.index: points for one, points in zip(here, found, strict=True)}

    def _streams(self) -> tuple[list[Range], list[int]]:
        """Return where all that tasks stream takes memory, and the blocks of each."""
        tables, ranges, sizes = self._structures.tables, list[Range](), list[int]()
        for number in self._numbers:
            step = self._structures.steps[number]
            task = tables.problem.tasks[step.task]
            loads, computation, stores = ((number, phase) for phase in Phase)
            values = [(one, (loads, computation)) for one in dict.fromkeys(step.holders)]
            values += [(one, (computation, stores)) for one in task.writes]
            ranges += [points for _, points in values]
            sizes += [tables.blocks_of(one, self._memory) for one, _ in values]
            if task.scratch:
                ranges.append((computation,))
                sizes.append(tables.blocks(task.scratch, self._memory))
        return ranges, sizes
