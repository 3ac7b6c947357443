"""What must leave a DRAM at least, and the bytes of each buffer that tasks read."""

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
    covered: set[tuple[int, ...]] = set()
    for box in boxes:
        sides = zip(edges, box.start, box.extent, strict=True)
        covered |= {
            *product(*(range(bisect_left(e, a), bisect_left(e, a + n)) for e, a, n in sides))
        }
    return sum(
        prod(edge[at + 1] - edge[at] for edge, at in zip(edges, cell, strict=True))
        for cell in covered
    )


class Share(Enum):
    """How transfers share the bytes of a load."""

    ONE = "one transfer moves these bytes"
    BEGUN = "one transfer moves these bytes, and maybe some of the rest with them"
    REST = "that transfer moves these bytes, or others do"


class Load(NamedTuple):
    """Bytes of one buffer that leave the DRAM in which it starts.

    Parameters
    ----------
    moved
        The slice, or the buffer as a whole.
    bytes
        Of all transfers out of that DRAM together.
    readers
        The tasks whose reads they serve: none of them ends before the bytes have left. Of a rest,
        the last of them does not.
    """

    buffer: Buffer
    moved: SliceIdx
    bytes: Bytes
    readers: tuple[TaskIdx, ...]
    share: Share


def least_loads(problem: Problem) -> Iterator[Load]:
    """Yield what must leave the memories in which buffers start, in the order of buffers.

    No core works in that memory itself. Then what a task reads is a residency of the slice or of
    its buffer in another memory; the transfer that fills it moves just that, from a residency of
    the slice or of the buffer, and so on back to one that was there at cycle 0. So of a buffer that
    fits into no other memory each slice that is read leaves on its own, even where slices overlap;
    a buffer that is read as a whole leaves as a whole; and of any other buffer there leaves what is
    less, the slices or the whole. Of these, the bytes of the largest slice have left before any
    task ends that reads as much.
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
    ) and any(
        engine.longest is None or engine.longest >= buffer.bytes for engine in machine.engines
    )
