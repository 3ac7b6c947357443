"""The quantities of a plan, and the DRAM traffic that no plan of a problem can avoid."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Placement, Residency, Transfer
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Buffer, Problem
from spmilp.units import Box, Bytes, Cycles, Femtojoules, MemoryIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What a plan costs; see :class:`~spmilp.problem.objective.Quantity`."""

    makespan: Cycles
    dram_traffic: Bytes
    energy: Femtojoules
    peak_spm: Bytes

    def of(self, quantity: Quantity) -> int:
        """Return one of the quantities, in its unit."""
        return {
            Quantity.MAKESPAN: self.makespan,
            Quantity.DRAM_TRAFFIC: self.dram_traffic,
            Quantity.ENERGY: self.energy,
            Quantity.PEAK_SPM: self.peak_spm,
        }[quantity]


def measure(
    problem: Problem,
    placements: Sequence[Placement],
    residencies: Sequence[Residency],
    transfers: Sequence[Transfer],
) -> Measures:
    """Return the quantities of a plan that has these parts, for a solver to state.

    Energies that the problem or the machine leave open count nothing. A multicast reads its source
    once and writes each of its destinations.
    """
    machine = problem.machine
    makespan = traffic = energy = peak = 0
    for placement in placements:
        makespan = max(makespan, placement.end)
        of_kinds = problem.tasks[placement.task].energy
        if of_kinds:
            energy += of_kinds[machine.cores[placement.core].kind] or 0
    for move in transfers:
        makespan = max(makespan, move.end)
        size = problem.slices[move.slice].bytes
        per_byte = sum(machine.links[link].energy_per_byte or 0 for link in move.route)
        for end in (move.source, *move.destinations):
            memory = machine.memories[residencies[end].memory]
            per_byte += memory.energy_per_byte or 0
            if memory.kind is MemoryKind.DRAM:
                traffic += size
        energy += size * per_byte
    for stay in residencies:
        if machine.memories[stay.memory].kind is MemoryKind.SPM:
            peak = max(peak, stay.offset + stay.bytes)
    return Measures(makespan=makespan, dram_traffic=traffic, energy=energy, peak_spm=peak)


def compulsory_dram_traffic(problem: Problem) -> Bytes:
    """Return bytes that every valid plan moves to and from DRAM.

    A residency serves reads of its own buffer only. So of each buffer that starts in DRAM, every
    byte that some task reads leaves it at least once, as part of a slice of this buffer; and each
    buffer that ends in DRAM and does not start there arrives as a whole. Both presume that no core
    works in that DRAM itself; a buffer in one where some core does counts nothing.
    """
    machine = problem.machine
    worked_in = {core.memory for core in machine.cores}
    drams = {memory.index for memory in machine.drams} - worked_in
    boxes = _boxes_read(problem)
    total = 0
    for buffer in problem.buffers:
        if buffer.starts_in in drams:
            total += _bytes_that_leave(buffer, boxes[buffer.index])
        if buffer.ends_in in drams and buffer.starts_in != buffer.ends_in:
            total += buffer.bytes
    return total


def _boxes_read(problem: Problem) -> list[set[Box]]:
    """Return the boxes of each buffer that some task reads."""
    found: list[set[Box]] = [set() for _ in problem.buffers]
    read = sorted({slice_ for task in problem.tasks for slice_ in task.reads})
    for part in map(problem.slices.__getitem__, read):
        ends = zip(part.start, part.extent, strict=True)
        found[part.buffer].add(tuple((first, first + count) for first, count in ends))
    return found


def _bytes_that_leave(buffer: Buffer, boxes: set[Box]) -> Bytes:
    goes_elsewhere: MemoryIdx | None = buffer.ends_in
    if goes_elsewhere is not None and goes_elsewhere != buffer.starts_in:
        return buffer.bytes
    return elements_in_union(boxes) * buffer.item


def elements_in_union(boxes: set[Box]) -> int:
    """Return how many elements lie in at least one of some boxes of the same number of axes.

    Cuts along the first axis where any box begins or ends; between two cuts, the boxes that span
    the slab are counted along the other axes.
    """
    if not boxes:
        return 0
    if len(boxes) == 1 or not next(iter(boxes)):
        return _elements(next(iter(boxes)))
    cuts = sorted({edge for box in boxes for edge in box[0]})
    known: dict[frozenset[Box], int] = {}
    total = 0
    for first, last in pairwise(cuts):
        inside = frozenset(box[1:] for box in boxes if box[0][0] <= first and last <= box[0][1])
        if inside not in known:
            known[inside] = elements_in_union(set(inside))
        total += (last - first) * known[inside]
    return total


def _elements(box: Box) -> int:
    count = 1
    for first, last in box:
        count *= last - first
    return count
