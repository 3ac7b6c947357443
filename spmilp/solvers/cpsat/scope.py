"""What a model may decide: where tasks may run, and which residencies there may be."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from operator import add
from typing import NamedTuple

from spmilp.solvers.cpsat.candidates import Candidates
from spmilp.solvers.cpsat.tables import Tables
from spmilp.units import Box, EngineIdx, MemoryIdx, SliceIdx, TaskIdx


class Stay(NamedTuple):
    """A possible residency; those of a slice in a memory are numbered by time of filling."""

    slice: SliceIdx
    memory: MemoryIdx
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The decisions of one model.

    Parameters
    ----------
    pools
        For each task the pools of cores that it may run in.
    stays
        The possible residencies; the numbers of a slice in a memory count from 0.
    lasting
        Slices in memories where nothing is gained by ever giving them up: their one residency
        lasts from its filling to the end.
    conflicts
        Pairs of stays whose elements of a DRAM tensor overlap: never both at one time.
    relaxed
        Whether the last stay of a slice in a memory stands for all further ones too, which makes
        the model a relaxation of the problem; see :class:`~spmilp.solvers.cpsat.structure.Shape`.
    fills, servers
        When given, the only source of a stay's transfer with its engine, and the only stay that
        serves a read.
    """

    pools: tuple[tuple[int, ...], ...]
    stays: tuple[Stay, ...]
    lasting: frozenset[tuple[SliceIdx, MemoryIdx]]
    conflicts: tuple[tuple[Stay, Stay], ...] = ()
    relaxed: bool = False
    fills: Mapping[Stay, tuple[Stay, EngineIdx] | None] | None = None
    servers: Mapping[tuple[TaskIdx, int], Stay] | None = None


def whole_scope(
    tables: Tables,
    candidates: Candidates,
    counts: Mapping[tuple[SliceIdx, MemoryIdx], int],
    *,
    relaxed: bool,
    ample: bool = True,
) -> Scope:
    """Return the scope of the whole problem.

    Parameters
    ----------
    counts
        Stays of a slice in a memory that is short of room; 1 where nothing is said.
    ample
        Whether slices may last in memories that have room for everything at once.

    Notes
    -----
    Where there is room for all that could ever lie in a memory, and in a DRAM without limit, one
    lasting stay is enough: replace the residencies of a slice in such a memory by one, filled by
    whichever of the fills ends first; nothing else has to give way. The same holds at a place in a
    DRAM tensor whose elements no other buffer uses. Parts of a buffer at the place of a buffer that
    a task writes exist in the relaxation only.
    """
    rooms = _roomy(tables, candidates) if ample else set[MemoryIdx]()
    stays: list[Stay] = []
    lasting: set[tuple[SliceIdx, MemoryIdx]] = set()
    contested = {} if relaxed else _contested(tables, candidates)
    for slice_ in candidates.slices():
        whole = tables.problem.slices[slice_].buffer == slice_
        for memory in candidates.of(slice_):
            placed = tables.ways.at_place(slice_, memory)
            if placed and not whole and not _is_used_at_place(tables, slice_, memory, relaxed):
                continue
            limited = tables.capacity[memory] is not None and memory not in rooms
            stays_for_ever = slice_ not in contested if placed else not limited
            count = 1 if stays_for_ever else counts.get((slice_, memory), 1)
            if stays_for_ever:
                lasting.add((slice_, memory))
            stays.extend(Stay(slice_, memory, number) for number in range(count))
    return Scope(
        pools=tuple(tables.pools_of(task.index) for task in tables.problem.tasks),
        stays=tuple(stays),
        lasting=frozenset(lasting),
        conflicts=tuple(_conflicts(tables, stays, contested)),
        relaxed=relaxed,
    )


def _is_used_at_place(tables: Tables, slice_: SliceIdx, memory: MemoryIdx, relaxed: bool) -> bool:
    """Say whether a part may lie by itself at its buffer's place.

    Never where the whole buffer lies from the start, which serves as well.
    """
    buffer = tables.problem.buffers[tables.problem.slices[slice_].buffer]
    return relaxed and buffer.starts_in != memory


def _roomy(tables: Tables, candidates: Candidates) -> set[MemoryIdx]:
    """Return the bounded memories that have room for everything that could lie there."""
    needed = [0] * len(tables.machine.memories)
    for slice_ in candidates.slices():
        size = tables.problem.slices[slice_].bytes
        for memory in candidates.of(slice_):
            if not tables.ways.at_place(slice_, memory):
                needed[memory] += tables.blocks(size, memory)
    for pool in tables.pools:
        able = (t for t in tables.problem.tasks if t.cycles[pool.kind] is not None)
        largest = max((task.scratch for task in able), default=0)
        needed[pool.memory] += len(pool.cores) * tables.blocks(largest, pool.memory)
    return {
        memory
        for memory, capacity in enumerate(tables.capacity)
        if capacity is not None and needed[memory] <= capacity
    }


def _contested(tables: Tables, candidates: Candidates) -> dict[SliceIdx, set[SliceIdx]]:
    """Return the buffers that share elements of a DRAM tensor with others, and which."""
    boxes: dict[tuple[int, MemoryIdx], list[tuple[SliceIdx, Box]]] = {}
    for buffer in tables.problem.buffers:
        if buffer.place is None:
            continue
        memory = tables.problem.tensors[buffer.place.tensor].memory
        if memory in candidates.of(buffer.index):
            box = tuple(
                (a, b)
                for a, b in zip(
                    buffer.place.start, map(add, buffer.place.start, buffer.shape), strict=True
                )
            )
            boxes.setdefault((buffer.place.tensor, memory), []).append((buffer.index, box))
    found: dict[SliceIdx, set[SliceIdx]] = {}
    for some in boxes.values():
        for position, (one, box) in enumerate(some):
            for other, second in some[position + 1 :]:
                if _share(box, second) and not _both_initial(tables, one, other):
                    found.setdefault(one, set()).add(other)
                    found.setdefault(other, set()).add(one)
    return found


def _share(one: Box, other: Box) -> bool:
    overlaps = (min(b, d) - max(a, c) for (a, b), (c, d) in zip(one, other, strict=True))
    return prod(max(0, length) for length in overlaps) > 0


def _both_initial(tables: Tables, one: SliceIdx, other: SliceIdx) -> bool:
    buffers = tables.problem.buffers
    return buffers[one].starts_in is not None and buffers[other].starts_in is not None


def _conflicts(
    tables: Tables, stays: list[Stay], contested: Mapping[SliceIdx, set[SliceIdx]]
) -> list[tuple[Stay, Stay]]:
    placed: dict[SliceIdx, list[Stay]] = {}
    for stay in stays:
        if stay.slice in contested and tables.ways.at_place(stay.slice, stay.memory):
            placed.setdefault(stay.slice, []).append(stay)
    return [
        (one, other)
        for first, others in sorted(contested.items())
        for second in sorted(others)
        if first < second
        for one in placed.get(first, ())
        for other in placed.get(second, ())
    ]
