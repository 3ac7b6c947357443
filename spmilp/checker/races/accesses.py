"""What the tasks and transfers of a plan touch, for the proof that the lists order it."""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import add

from spmilp.checker.rules.case import Case
from spmilp.problem.strides import Layout, footprint
from spmilp.units import Box, Bytes, MemoryIdx, ResidencyIdx, SliceIdx, TensorIdx


@dataclass(frozen=True, slots=True)
class Access:
    """A read or a write of bytes, or of a box of a tensor where ``box`` is set.

    Bytes are ``[low, high)`` of the memory; for a box, from its first to its last.
    """

    residency: ResidencyIdx
    memory: MemoryIdx
    low: Bytes
    high: Bytes
    tensor: TensorIdx | None
    box: Box
    writes: bool


def accesses_of_task(case: Case, task: int) -> Iterator[Access]:
    """Yield what a task reads, then what it writes, scratch included."""
    placement, given = case.plan.placements[task], case.problem.tasks[task]
    for slice_, index in zip(given.reads, placement.reads, strict=True):
        yield _access(case, slice_, index, writes=False)
    for buffer, index in zip(given.writes, placement.writes, strict=True):
        yield _access(case, buffer, index, writes=True)
    if placement.scratch is not None:
        residency = case.plan.residencies[placement.scratch]
        end = residency.offset + residency.bytes
        yield Access(
            residency.index, residency.memory, residency.offset, end, None, (), writes=True
        )


def accesses_of_transfer(case: Case, transfer: int) -> Iterator[Access]:
    """Yield what a transfer reads, then what it writes."""
    move = case.plan.transfers[transfer]
    yield _access(case, move.slice, move.source, writes=False)
    for residency in move.destinations:
        yield _access(case, move.slice, residency, writes=True)


def boxes_touched(case: Case) -> dict[TensorIdx, list[Box]]:
    """Return the different boxes that anybody touches of each tensor that somebody writes."""
    written = {
        home
        for residency, home in zip(case.plan.residencies, case.home, strict=True)
        if home is not None
        and (residency.filled_by_task is not None or residency.filled_by_transfer is not None)
    }
    found: dict[TensorIdx, dict[Box, None]] = {tensor: {} for tensor in sorted(written)}
    pairs = [(move.slice, end) for move in case.plan.transfers for end in move.destinations]
    pairs += [(use.slice, use.residency) for use in (*case.task_uses, *case.transfer_uses)]
    for placement in case.plan.placements:
        pairs += zip(case.problem.tasks[placement.task].writes, placement.writes, strict=True)
    for slice_, index in pairs:
        home = case.home[index]
        if home in found:
            found[home][_access(case, slice_, index, writes=True).box] = None
    return {tensor: list(boxes) for tensor, boxes in found.items()}


def _access(case: Case, slice_: SliceIdx, residency: ResidencyIdx, *, writes: bool) -> Access:
    part, home = case.problem.slices[slice_], case.home[residency]
    memory = case.plan.residencies[residency].memory
    low, strides = case.where(slice_, residency)
    buffer = case.problem.buffers[part.buffer]
    high = low + footprint(part.extent, buffer.item, Layout(0, strides))
    box: Box = ()
    if home is not None and buffer.place is not None:
        first = map(add, buffer.place.start, part.start)
        box = tuple((start, start + n) for start, n in zip(first, part.extent, strict=True))
    return Access(residency, memory, low, high, home, box, writes)
