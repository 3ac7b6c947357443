"""What must leave a DRAM at least, and the bytes of each buffer that tasks read."""

from bisect import bisect_left
from collections.abc import Iterator
from enum import Enum
from itertools import product
from typing import NamedTuple

from spmilp.machine.machine import Machine
from spmilp.problem.problem import Buffer, Problem, Slice
from spmilp.units import Bytes, SliceIdx, TaskIdx


def bytes_read_of_buffers(problem: Problem) -> tuple[Bytes, ...]:
    """For each buffer, the bytes that at least one task reads; each byte counts once."""
    read: dict[int, set[int]] = {}
    for task in problem.tasks:
        for index in task.reads:
            read.setdefault(problem.slices[index].buffer, set()).add(index)
    return tuple(
        _union(problem, buffer.index, sorted(read.get(buffer.index, ())))
        for buffer in problem.buffers
    )


def _union(problem: Problem, buffer: int, slices: list[int]) -> Bytes:
    if buffer in slices:
        return problem.buffers[buffer].bytes
    if len(slices) < 2:
        return sum(problem.slices[index].bytes for index in slices)
    return _elements([problem.slices[index] for index in slices]) * problem.buffers[buffer].item


def _elements(boxes: list[Slice]) -> int:
    """Count the elements of a union of boxes, on the grid of all their edges."""
    axes = range(len(boxes[0].start))
    edges = [
        sorted({e for box in boxes for e in (box.start[a], box.start[a] + box.extent[a])})
        for a in axes
    ]
    covered: set[tuple[int, ...]] = set()
    for box in boxes:
        covered.update(
            product(
                *(
                    range(
                        bisect_left(edges[a], box.start[a]),
                        bisect_left(edges[a], box.start[a] + box.extent[a]),
                    )
                    for a in axes
                )
            )
        )
    total = 0
    for cell in covered:
        volume = 1
        for axis, position in enumerate(cell):
            volume *= edges[axis][position + 1] - edges[axis][position]
        total += volume
    return total


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
    readers: dict[int, dict[SliceIdx, list[TaskIdx]]] = {}
    for task in problem.tasks:
        for read in task.reads:
            found = readers.setdefault(problem.slices[read].buffer, {})
            found.setdefault(read, []).append(task.index)
    for index, some in sorted(readers.items()):
        buffer = problem.buffers[index]
        if buffer.starts_in is not None:
            yield from _of_buffer(problem, buffer, some)


def _of_buffer(
    problem: Problem, buffer: Buffer, readers: dict[SliceIdx, list[TaskIdx]]
) -> Iterator[Load]:
    size = {read: problem.slices[read].bytes for read in sorted(readers)}
    if buffer.index in size:
        yield Load(buffer, buffer.index, buffer.bytes, tuple(readers[buffer.index]), Share.ONE)
    elif len(size) == 1 or not _may_move_whole(problem.machine, buffer):
        for read, own in size.items():
            yield Load(buffer, read, own, tuple(readers[read]), Share.ONE)
    else:
        most = max(size.values())
        every = tuple(sorted({task for some in readers.values() for task in some}))
        most_readers = {task for read, own in size.items() if own == most for task in readers[read]}
        yield Load(buffer, buffer.index, most, tuple(sorted(most_readers)), Share.BEGUN)
        rest = min(buffer.bytes, sum(size.values())) - most
        yield Load(buffer, buffer.index, rest, every, Share.REST)


def _may_move_whole(machine: Machine, buffer: Buffer) -> bool:
    """Return whether some other memory, and some transfer, takes a whole buffer."""
    return any(
        memory.usable is None or memory.usable >= buffer.bytes
        for memory in machine.memories
        if memory.index != buffer.starts_in
    ) and any(
        engine.longest is None or engine.longest >= buffer.bytes for engine in machine.engines
    )
