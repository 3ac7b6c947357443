"""What must leave a DRAM at least: each slice that tasks read, or the buffer as a whole."""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from spmilp.machine.machine import Machine
from spmilp.problem.problem import Buffer, Problem
from spmilp.units import Bytes, SliceIdx, TaskIdx


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
