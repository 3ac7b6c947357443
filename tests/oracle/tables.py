"""Tables of the problem that do not change during the search."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, lcm

from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import routes_of
from spmilp.problem.contradictions import may_lie
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Cycles, Femtojoules, MemoryIdx, SliceIdx, TaskIdx, TensorIdx


@dataclass(frozen=True, slots=True)
class CoreGroup:
    """Interchangeable cores: of one kind, in one memory.

    Parameters
    ----------
    readable
        Memories in which they read operands: their own first, then remote scratchpads.
    links
        Of the route from each of ``readable``.
    """

    cores: tuple[int, ...]
    kind: int
    memory: MemoryIdx
    readable: tuple[MemoryIdx, ...]
    links: tuple[int, ...]


class ProblemTables:
    """A problem's tables, and how the machine's memories and links are counted.

    Parameters
    ----------
    peak
        Bytes from address 0 that may be used in each scratchpad; ``None`` for all of them.
    """

    def __init__(self, problem: Problem, peak: Bytes | None = None) -> None:
        machine = problem.machine
        self.problem = problem
        self.machine = machine
        self.routes = routes_of(machine)
        self.capacity = tuple(
            memory.size
            if peak is None or memory.kind is not MemoryKind.SPM or memory.size is None
            else min(memory.size, peak)
            for memory in machine.memories
        )
        self.is_dram = tuple(memory.kind is MemoryKind.DRAM for memory in machine.memories)
        self.groups = self._core_groups()
        self.able = tuple(
            tuple(
                (index, group, cycles)
                for index, group in enumerate(self.groups)
                if (cycles := task.cycles[group.kind]) is not None
            )
            for task in problem.tasks
        )
        """Each task's groups of cores, by index too, with its cycles there without remote reads."""
        self.worked_in = frozenset(group.memory for group in self.groups)
        self.whole = tuple(part.buffer for part in problem.slices)
        self.writer = problem.writers()
        self.predecessors = problem.predecessors()
        self.order = tuple(problem.topological_order())
        self.readers = self._readers()
        self.overwriters = self._overwriters()
        self.modulus = lcm(*(engine.congruence for engine in machine.engines))
        self.residues = tuple(self._residues(memory.alignment) for memory in machine.memories)
        rates = [engine.rate for engine in machine.engines] + [link.rate for link in machine.links]
        self._unit = lcm(*(rate.denominator for rate in rates))
        self.link_rates = tuple(self.in_units(link.rate) for link in machine.links)
        self.clashes = self._clashes()
        self.not_after = {
            pin.task: pin.not_after for pin in problem.pins.tasks if pin.not_after is not None
        }
        self._pins = {pin.buffer: pin for pin in problem.pins.buffers}

    def in_units(self, rate: Fraction) -> int:
        """Return a rate as a whole number of the unit of which all rates are multiples."""
        return int(rate * self._unit)

    def home(self, slice_: SliceIdx, memory: MemoryIdx) -> TensorIdx | None:
        """Return the tensor at whose place a slice lies in a memory; ``None`` if it is packed."""
        place = self.problem.buffers[self.whole[slice_]].place
        if place is None or self.problem.tensors[place.tensor].memory != memory:
            return None
        return place.tensor

    def may_lie(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether pins let a slice lie in a memory."""
        pin = self._pins.get(self.whole[slice_])
        if pin is not None and pin.whole and memory in pin.memories:
            return slice_ == self.whole[slice_]
        return may_lie(self.machine, pin, memory)

    def address(self, slice_: SliceIdx, memory: MemoryIdx) -> Bytes | None:
        """Return the address to which a slice is pinned in a memory; of scratch, none."""
        pin = self._pins.get(slice_)
        return None if pin is None or memory not in pin.memories else pin.address

    def addresses(self, memory: MemoryIdx) -> list[Bytes]:
        """Return the addresses to which anything is pinned in a memory."""
        found = (self.address(buffer, memory) for buffer in self._pins)
        return sorted({address for address in found if address is not None})

    def energy(self, task: TaskIdx, group: CoreGroup) -> Femtojoules:
        """Return the energy of a task on a core of the group; 0 where unknown."""
        known = self.problem.tasks[task].energy
        return (known[group.kind] or 0) if known else 0

    def remote_cycles(self, slice_: SliceIdx, links: int) -> Cycles:
        """Return the cycles that a task takes longer for reading a slice over so many links."""
        remote = self.machine.remote
        if remote is None or links == 0:
            return 0
        return ceil(self.problem.slices[slice_].bytes * links * remote.cycles_per_byte_hop)

    def _core_groups(self) -> tuple[CoreGroup, ...]:
        alike: dict[tuple[int, int], list[int]] = {}
        for core in self.machine.cores:
            alike.setdefault((core.kind, core.memory), []).append(core.index)
        groups = []
        for (kind, memory), cores in alike.items():
            near = [(memory, 0), *self._remote_memories(memory)]
            readable, links = zip(*near, strict=True)
            groups.append(CoreGroup(tuple(cores), kind, memory, readable, links))
        return tuple(groups)

    def _remote_memories(self, local: MemoryIdx) -> list[tuple[MemoryIdx, int]]:
        remote = self.machine.remote
        if remote is None:
            return []
        found = []
        for memory in self.machine.memories:
            route = self.routes.between(memory.index, local)
            if memory.index == local or memory.kind is not MemoryKind.SPM or route is None:
                continue
            if remote.longest_route is None or len(route.links) <= remote.longest_route:
                found.append((memory.index, len(route.links)))
        return found

    def _readers(self) -> tuple[frozenset[TaskIdx], ...]:
        """For each slice, the tasks that read it; for a whole buffer, those that read any part."""
        found: list[set[TaskIdx]] = [set() for _ in self.problem.slices]
        for task in self.problem.tasks:
            for read in task.reads:
                found[read].add(task.index)
                found[self.whole[read]].add(task.index)
        return tuple(map(frozenset, found))

    def _overwriters(self) -> tuple[frozenset[TaskIdx], ...]:
        """For each slice, the tasks that may write in its place."""
        found: list[set[TaskIdx]] = [set() for _ in self.problem.slices]
        for task in self.problem.tasks:
            for read, _ in task.in_place:
                found[read].add(task.index)
        return tuple(map(frozenset, found))

    def _residues(self, alignment: Bytes) -> tuple[int, ...]:
        """Return the possible addresses in a memory modulo the engines' congruences."""
        multiples = range(0, lcm(alignment, self.modulus), alignment)
        return tuple(sorted({address % self.modulus for address in multiples}))

    def _clashes(self) -> tuple[frozenset[SliceIdx], ...]:
        """For each slice, those that share elements of a tensor with it, itself included."""
        found = []
        for one in self.problem.slices:
            place = self.problem.buffers[one.buffer].place
            same = [
                other.index
                for other in self.problem.slices
                if place is not None and self._share_elements(one.index, other.index)
            ]
            found.append(frozenset(same))
        return tuple(found)

    def _share_elements(self, one: SliceIdx, other: SliceIdx) -> bool:
        a, b = self._box_in_tensor(one), self._box_in_tensor(other)
        if a is None or b is None or a[0] != b[0]:
            return False
        return all(p < s and r < q for (p, q), (r, s) in zip(a[1], b[1], strict=True))

    def _box_in_tensor(
        self, slice_: SliceIdx
    ) -> tuple[TensorIdx, tuple[tuple[int, int], ...]] | None:
        part = self.problem.slices[slice_]
        place = self.problem.buffers[part.buffer].place
        if place is None:
            return None
        starts = [a + b for a, b in zip(place.start, part.start, strict=True)]
        box = tuple((a, a + n) for a, n in zip(starts, part.extent, strict=True))
        return place.tensor, box


def free_ranges(tables: ProblemTables, memory: MemoryIdx) -> list[tuple[Bytes, Bytes | None]]:
    """Return the ranges of a memory's addresses that are not reserved, up to its capacity."""
    reserved = tables.machine.memories[memory].reserved
    ends = [0, *(taken.end for taken in reserved)]
    starts: list[Bytes | None] = [*(taken.start for taken in reserved), tables.capacity[memory]]
    limit = tables.capacity[memory]
    found: list[tuple[Bytes, Bytes | None]] = []
    for start, end in zip(ends, starts, strict=True):
        stop = end if limit is None else min(limit, limit if end is None else end)
        if stop is None or start < stop:
            found.append((start, stop))
    return found
