"""Each on-chip memory over time: live bytes, peak, fragmentation, double buffers."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from spmilp.analysis.subject import Subject
from spmilp.machine.machine import MemoryKind
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Residency
from spmilp.units import BufferIdx, Bytes, Cycles, MemoryIdx, ResidencyIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """How one memory is used.

    Parameters
    ----------
    residencies
        What lies in it, in order of start.
    cycles
        When the bytes in use change; from each one on, ``live`` are in use, and ``tops`` is the end
        of the highest residency. What of ``tops`` is not live is lost to fragmentation and to
        reserved ranges below.
    peak, peak_at
        The highest end of a residency, and the first cycle at which it is reached.
    live_peak
        The most live bytes: no packing of these lifetimes has a lower peak.
    """

    memory: MemoryIdx
    residencies: tuple[ResidencyIdx, ...]
    cycles: tuple[Cycles, ...]
    live: tuple[Bytes, ...]
    tops: tuple[Bytes, ...]
    peak: Bytes
    peak_at: Cycles
    live_peak: Bytes


def spaces_of(subject: Subject) -> tuple[Space, ...]:
    """Return the use of each memory but the DRAMs, in order."""
    here: defaultdict[MemoryIdx, list[Residency]] = defaultdict(list)
    for residency in subject.plan.residencies:
        here[residency.memory].append(residency)
    return tuple(
        _space(memory.index, sorted(here[memory.index], key=lambda each: (each.start, each.index)))
        for memory in subject.problem.machine.memories
        if memory.kind is not MemoryKind.DRAM
    )


def _space(memory: MemoryIdx, residencies: list[Residency]) -> Space:
    cycles, live = live_bytes(residencies)
    tops = _tops(residencies, cycles)
    peak = max(tops, default=0)
    return Space(
        memory=memory,
        residencies=tuple(each.index for each in residencies),
        cycles=tuple(cycles),
        live=tuple(live),
        tops=tuple(tops),
        peak=peak,
        peak_at=cycles[tops.index(peak)] if peak else 0,
        live_peak=max(live, default=0),
    )


def _tops(residencies: Sequence[Residency], cycles: Sequence[Cycles]) -> list[Bytes]:
    """Return the end of the highest residency from each of the cycles on."""
    alive: list[tuple[int, Cycles]] = []
    tops, following = [], 0
    for cycle in cycles:
        while following < len(residencies) and residencies[following].start <= cycle:
            each = residencies[following]
            heappush(alive, (-(each.offset + each.bytes), each.end))
            following += 1
        while alive and alive[0][1] <= cycle:
            heappop(alive)
        tops.append(-alive[0][0] if alive else 0)
    return tops


def in_place_pairs(subject: Subject) -> tuple[tuple[ResidencyIdx, ResidencyIdx], ...]:
    """Return ``(operand, result)`` where a task has written a result over an operand's bytes."""
    found = []
    residencies = subject.plan.residencies
    for placement in subject.plan.placements:
        task = subject.problem.tasks[placement.task]
        for read, written in task.in_place:
            old = residencies[placement.reads[task.reads.index(read)]]
            new = residencies[placement.writes[task.writes.index(written)]]
            if old.memory == new.memory and old.offset == new.offset and new.start < old.end:
                found.append((old.index, new.index))
    return tuple(found)


def double_buffered(subject: Subject) -> tuple[ResidencyIdx, ...]:
    """Return what arrives while a task works on another part of the same tensor in that memory."""
    reads: defaultdict[tuple[MemoryIdx, str], list[tuple[Cycles, Cycles, ResidencyIdx]]]
    reads = defaultdict(list)
    residencies = subject.plan.residencies
    for placement in subject.plan.placements:
        for read in placement.reads:
            key = residencies[read].memory, _tensor_of(subject, residencies[read])
            reads[key].append((placement.start, placement.end, read))
    most = {
        key: max((end - start for start, end, _ in runs), default=0) for key, runs in reads.items()
    }
    for runs in reads.values():
        runs.sort()
    found = []
    for move in subject.plan.transfers:
        for end in move.destinations:
            key = residencies[end].memory, _tensor_of(subject, residencies[end])
            if key not in reads:
                continue
            runs, longest = reads[key], most[key]
            if any(read != end for read in _read_during(runs, longest, move.start, move.end)):
                found.append(end)
    return tuple(found)


def _read_during(
    runs: Sequence[tuple[Cycles, Cycles, ResidencyIdx]],
    longest: Cycles,
    start: Cycles,
    end: Cycles,
) -> Iterator[ResidencyIdx]:
    """Yield what the sorted runs, none longer than ``longest``, read during ``[start, end)``."""
    first = bisect_left(runs, (start - longest,))
    for _, ended, read in runs[first : bisect_left(runs, (end,))]:
        if ended > start:
            yield read


def _tensor_of(subject: Subject, residency: Residency) -> str:
    if residency.slice is None:
        return ""
    return tensor_name(subject, subject.problem.slices[residency.slice].buffer)


def tensor_name(subject: Subject, buffer: BufferIdx) -> str:
    """Return the name of the tensor that a buffer is a part of, or its own."""
    each = subject.problem.buffers[buffer]
    if each.place is not None:
        return subject.problem.tensors[each.place.tensor].name
    return each.name if each.tile is None else each.tile.of
