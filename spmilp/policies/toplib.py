"""TOpLib: colours of an interference graph share partitions, and what is left holds promoted data.

Li et al., "TOpLib", NPC 2020 (LNCS 12639, doi 10.1007/978-3-030-79478-1_1), IJPP 2021 (doi
10.1007/s10766-021-00701-6): memory reuse assisted by a compiler, for operators written by hand on
accelerators with scratchpads.

What is taken: live ranges, interference of values that live at one point of the program, for each
address space, greedy colouring, a partition for each colour as large as the largest value of that
colour, promotion of off-chip data into what is left.

What it leaves open, or has otherwise, and what is done here:

- The program of a scratchpad is that of the tasks on its cores, in the order of ``onsram``, in a
  loop over inferences: for each task its loads, its computation, its stores. It has no branches,
  and every round writes or loads each value anew before it reads it. So a value lives from there to
  its last use, which is what the paper's data-flow analysis finds in such a program.
- At first all data lies off chip; values of the program are the operands, results and scratch that
  each task streams. They are coloured by decreasing size.
- The order of promotion is not known. Here data comes first of which a block of place saves most
  bytes from and to DRAM; it takes the partition with room in time that has to grow least, or one of
  its own.
- A plan's addresses are packed, so that data of different colours may lie in each other's
  partitions. They always exist where the partitions fit; where those of streams alone do not, and
  tasks do, nothing is promoted.

Not taken: what ``onsram`` does not take.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from spmilp.policies.onsram import Pinning
from spmilp.policies.structures import Pins, Structure, TaskStructures
from spmilp.units import MemoryIdx

Range = Collection[Hashable]
"""The points of a program at which a value takes memory."""


@dataclass(slots=True, kw_only=True)
class Partition:
    """Place for values of which no two are live at one point: those of one colour.

    The size is that of the largest of them, in the unit of the values, which go by number; at each
    of the points one of them is live.
    """

    size: int = 0
    values: list[int] = field(default_factory=list)
    points: set[Hashable] = field(default_factory=set)

    def add(self, value: int, size: int, points: Range) -> None:
        """Put a value into it, which makes it as large as that."""
        self.size = max(self.size, size)
        self.values.append(value)
        self.points.update(points)


def coloured(ranges: Sequence[Range], sizes: Sequence[int]) -> list[Partition]:
    """Return the partitions of a greedy colouring of the interference graph.

    By decreasing size, each value gets the first colour that no value live at its points has.
    """
    partitions: list[Partition] = []
    for value in sorted(range(len(sizes)), key=lambda value: (-sizes[value], value)):
        chosen = next((one for one in partitions if one.points.isdisjoint(ranges[value])), None)
        if chosen is None:
            chosen = Partition()
            partitions.append(chosen)
        chosen.add(value, sizes[value], ranges[value])
    return partitions


def height(partitions: Iterable[Partition]) -> int:
    """Return what all partitions take beside each other."""
    return sum(one.size for one in partitions)


class Remainder:
    """What partitions or promoted values leave of an address space; size ``None`` without limit."""

    def __init__(self, size: int | None) -> None:
        self._size = size
        self.partitions: list[Partition] = []

    def takes(self, value: int, size: int, points: Range) -> bool:
        """Give a value its place, if there is room, and say whether there was."""
        able = [one for one in self.partitions if one.points.isdisjoint(points)]
        chosen = min(able, key=lambda one: (max(0, size - one.size), one.size), default=Partition())
        taken = height(self.partitions) + max(0, size - chosen.size)
        if self._size is not None and taken > self._size:
            return False
        if not chosen.values:
            self.partitions.append(chosen)
        chosen.add(value, size, points)
        return True


class TopLib(Pinning):
    """Keeps data in the part of each scratchpad that the partitions of its streams leave."""

    name = "toplib"

    def choice(
        self, structures: TaskStructures
    ) -> tuple[Sequence[int], Callable[[Sequence[int]], Pins]]:
        """Return the order of the bytes saved, in which data is promoted that finds room."""
        spaces = AddressSpaces(structures)
        return spaces.by_saving(), spaces.promoted


LOADS, COMPUTATION, STORES = range(3)
"""What a core does for a task, one after another; each is a point of its program."""


class AddressSpaces:
    """The values of each scratchpad's program, and what is left beside their partitions."""

    def __init__(self, structures: TaskStructures) -> None:
        self._structures = structures
        self._left = {memory: self._left_in(memory) for memory in structures.steps_in}
        self.ranges = [self._range(one) for one in structures.all]

    def by_saving(self) -> tuple[int, ...]:
        """Return the structures of which a block of place saves most bytes, the best first."""
        worth = {one.index: one.saved_bytes / self._size(one) for one in self._structures.all}
        return tuple(sorted(worth, key=lambda index: (-worth[index], index)))

    def promoted(self, order: Sequence[int]) -> Pins:
        """Return the structures that find room in what is left, in an order."""
        left = {memory: Remainder(size) for memory, size in self._left.items()}
        chosen = set()
        for index in order:
            one = self._structures.all[index]
            if left[one.memory].takes(index, self._size(one), self.ranges[index]):
                chosen.add(index)
        return frozenset(chosen)

    def _size(self, one: Structure) -> int:
        return self._structures.setting.tables.blocks_of(one.buffer, one.memory)

    def _range(self, one: Structure) -> Range:
        """Return where a structure lives if it is promoted."""
        first, last = one.uses[0], one.uses[-1]
        is_written = one.buffer in self._structures.writes(first)
        begin = (first, COMPUTATION if is_written else LOADS)
        end = (last, COMPUTATION)
        if is_written and one.buffer in self._structures.stored:
            end = max(end, (first, STORES))
        return {
            (step, phase)
            for step in one.extra
            for phase in (LOADS, COMPUTATION, STORES)
            if begin <= (step, phase) <= end
        }

    def _left_in(self, memory: MemoryIdx) -> int | None:
        """Return the blocks beside the partitions of all that tasks stream; never fewer than 0."""
        tables = self._structures.setting.tables
        capacity = tables.capacity[memory]
        if capacity is None:
            return None
        ranges, sizes = list[Range](), list[int]()
        for number in self._structures.steps_in[memory]:
            step = self._structures.steps[number]
            loads, computation, stores = ((number, phase) for phase in range(3))
            values = [(one, (loads, computation)) for one in dict.fromkeys(step.holders)]
            values += [(one, (computation, stores)) for one in self._structures.writes(number)]
            ranges += [points for _, points in values]
            sizes += [tables.blocks_of(one, memory) for one, _ in values]
            scratch = tables.problem.tasks[step.task].scratch
            if scratch:
                ranges.append((computation,))
                sizes.append(tables.blocks(scratch, memory))
        return max(0, capacity - height(coloured(ranges, sizes)))
