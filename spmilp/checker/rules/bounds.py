"""Rules 6 and 9: residencies and DRAM tensors have their size and lie inside their memory."""

from collections.abc import Iterator

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.machine.machine import Memory
from spmilp.units import Bytes


def inside_memory(case: Case) -> Iterator[Violation]:
    """Bytes lie below the memory's size, outside reserved ranges, at aligned offsets.

    A residency inside a DRAM tensor is bound by its place instead; its tensor is checked.
    """
    for residency in case.plan.residencies:
        if case.home[residency.index] is None:
            memory = case.machine.memories[residency.memory]
            who = case.residency(residency.index)
            for defect in _defects(memory, residency.offset, residency.bytes):
                message = f"{who}: {defect} at cycle {residency.start}"
                yield Violation("inside_memory", (who, memory.name), message)
    for tensor, address in zip(case.problem.tensors, case.plan.tensors, strict=True):
        memory = case.machine.memories[tensor.memory]
        who = f"tensor {tensor.index} ({tensor.name})"
        for defect in _defects(memory, address, tensor.bytes):
            yield Violation("inside_memory", (who, memory.name), f"{who}: {defect}")


def exact_size(case: Case) -> Iterator[Violation]:
    """A residency has the bytes of its slice."""
    for residency in case.plan.residencies:
        if residency.slice is None:
            continue
        size = case.problem.slices[residency.slice].bytes
        if residency.bytes != size:
            who, what = case.residency(residency.index), case.slice(residency.slice)
            message = f"{who} has {residency.bytes} B, expected {size} B of {what}"
            yield Violation("exact_size", (who, what), message)


def _defects(memory: Memory, offset: Bytes, size: Bytes) -> Iterator[str]:
    end = offset + size
    if memory.size is not None and end > memory.size:
        yield f"{end} B > {memory.size} B of {memory.name}"
    if offset % memory.alignment:
        yield f"offset {offset} B is no multiple of {memory.alignment} B in {memory.name}"
    for taken in memory.reserved:
        if offset < taken.end and taken.start < end:
            yield (
                f"bytes [{offset}, {end}) meet the reserved [{taken.start}, {taken.end}) of "
                f"{memory.name}"
            )
