"""The least bytes that must leave the memory where a buffer starts, and the bytes that are read."""

from bisect import bisect_left
from collections.abc import Iterator
from enum import Enum
from itertools import product
from math import prod
from typing import NamedTuple

from spmilp.machine.machine import Machine
from spmilp.problem.problem import Buffer, Problem, Slice
from spmilp.units import BufferIdx, Bytes, SliceIdx, TaskIdx


def _readers(problem: Problem) -> dict[BufferIdx, dict[SliceIdx, list[TaskIdx]]]:
    """Return the slices of each buffer that tasks read, and the tasks."""
    readers: dict[BufferIdx, dict[SliceIdx, list[TaskIdx]]] = {}
    for task in problem.tasks:
        for read in task.reads:
            found = readers.setdefault(problem.slices[read].buffer, {})
            found.setdefault(read, []).append(task.index)
    return readers


def bytes_read_of_buffers(problem: Problem) -> tuple[Bytes, ...]:
    """For each buffer, the bytes that at least one task reads; each byte counts once."""
    found = [0] * len(problem.buffers)
    for index, slices in _readers(problem).items():
        whole = [problem.slices[index]] if index in slices else None
        boxes = whole or [problem.slices[each] for each in slices]
        item = problem.buffers[index].item
        found[index] = boxes[0].bytes if len(boxes) == 1 else _elements(boxes) * item
    return tuple(found)


def _elements(boxes: list[Slice]) -> int:
    """Count the elements of a union of boxes, on the grid of all their edges."""
    edges = []
    for axis in range(len(boxes[0].start)):
        ends = ((box.start[axis], box.start[axis] + box.extent[axis]) for box in boxes)
        edges.append(sorted({edge for both in ends for edge in both}))
    found: set[tuple[int, ...]] = set()
    for box in boxes:
        sides = zip(edges, box.start, box.extent, strict=True)
        found |= {*product(*(range(bisect_left(e, a), bisect_left(e, a + n)) for e, a, n in sides))}
    return sum(
        prod(edge[at + 1] - edge[at] for edge, at in zip(edges, cell, strict=True))
        for cell in found
    )


class Share(Enum):
    """How transfers share the bytes of a load.

    ``ONE``: one transfer moves exactly these bytes. ``BEGUN`` and ``REST`` come as a pair for one
    buffer: one transfer moves the bytes of ``BEGUN``, and those of ``REST`` move with it or with
    other transfers.
    """

    ONE = "one transfer moves these bytes"
    BEGUN = "one transfer moves these bytes, and maybe some of the rest with them"
    REST = "that transfer moves these bytes, or others do"


class Load(NamedTuple):
    """Bytes of one buffer that leave the DRAM in which it starts, of all transfers together.

    What is ``moved`` is a slice, or the buffer as a whole. None of the tasks whose reads the bytes
    serve starts before they have arrived in another memory; for ``Share.REST`` that is certain only
    of the one that starts last.
    """

    buffer: Buffer
    moved: SliceIdx
    bytes: Bytes
    readers: tuple[TaskIdx, ...]
    share: Share


def least_loads(problem: Problem) -> Iterator[Load]:
    """Yield what must leave the memories in which buffers start, in the order of buffers.

    This holds where no core works in that memory itself. A task then reads a residency of the slice
    or of its buffer in another memory. The transfer that fills this residency moves exactly its
    contents, out of a residency of the slice or of the buffer, and so on back to the residency that
    is there at cycle 0. Three cases follow:

    - A buffer that some task reads as a whole leaves as a whole.
    - Of a buffer that no other memory or no transfer can take as a whole, and of one with a single
      slice, each slice that is read leaves on its own, even where slices overlap.
    - Of any other buffer, at least the smaller of two amounts leaves: the sum of its slices, or the
      whole. The bytes of the largest slice (``Share.BEGUN``) have arrived before any task starts
      that reads a slice of this size; the remaining bytes are ``Share.REST``.
    """
    for index, readers in sorted(_readers(problem).items()):
        buffer = problem.buffers[index]
        if buffer.starts_in is None:
            continue
        size = {read: problem.slices[read].bytes for read in sorted(readers)}
        if index in size:
            yield Load(buffer, index, buffer.bytes, tuple(readers[index]), Share.ONE)
        elif len(size) == 1 or not _may_move_whole(problem.machine, buffer):
            for read, own in size.items():
                yield Load(buffer, read, own, tuple(readers[read]), Share.ONE)
        else:
            most = max(size.values())
            rest = min(buffer.bytes, sum(size.values())) - most
            first = {task for read, own in size.items() if own == most for task in readers[read]}
            every = {task for some in readers.values() for task in some}
            yield Load(buffer, index, most, tuple(sorted(first)), Share.BEGUN)
            yield Load(buffer, index, rest, tuple(sorted(every)), Share.REST)


def _may_move_whole(machine: Machine, buffer: Buffer) -> bool:
    """Return whether some other memory, and some transfer, takes a whole buffer."""
    return any(
        memory.usable is None or memory.usable >= buffer.bytes
        for memory in machine.memories
        if memory.index != buffer.starts_in
    ) and any(one.longest is None or one.longest >= buffer.bytes for one in machine.engines)
