"""Rule 9: DRAM tensors have their bytes to themselves, and what has a place in one lies there."""

from bisect import bisect_right
from collections.abc import Iterator

from spmilp.checker.rules.case import Case
from spmilp.checker.violation import Violation
from spmilp.machine.machine import Memory
from spmilp.units import Bytes


def at_its_place(case: Case) -> Iterator[Violation]:
    """Whatever has a place in a tensor of this DRAM lies there."""
    for residency, home in zip(case.plan.residencies, case.home, strict=True):
        if home is None or residency.slice is None:
            continue
        address, _ = case.where(residency.slice, residency.index)
        if residency.offset != address:
            who = case.residency(residency.index)
            tensor = case.problem.tensors[home]
            yield Violation(
                "at_its_place",
                (who, f"tensor {home} ({tensor.name})"),
                f"{who} lies at address {residency.offset}, expected {address}, its place in "
                f"tensor {tensor.name} at {case.plan.tensors[home]}",
            )


def dram_tensors(case: Case) -> Iterator[Violation]:
    """DRAM tensors share no bytes with each other, nor with anything that has no place in them."""
    for memory in case.machine.memories:
        ranges = sorted(
            (address, address + tensor.bytes, tensor.index)
            for tensor, address in zip(case.problem.tensors, case.plan.tensors, strict=True)
            if tensor.memory == memory.index
        )
        if ranges:
            yield from _tensors_that_overlap(case, memory, ranges)
            yield from _residencies_inside(case, memory, ranges)


def _tensors_that_overlap(
    case: Case, memory: Memory, ranges: list[tuple[Bytes, Bytes, int]]
) -> Iterator[Violation]:
    last: tuple[Bytes, Bytes, int] | None = None
    for start, end, index in ranges:
        if last is not None and start < last[1]:
            first = f"tensor {last[2]} ({case.problem.tensors[last[2]].name})"
            second = f"tensor {index} ({case.problem.tensors[index].name})"
            yield Violation(
                "dram_tensors",
                (first, second, memory.name),
                f"{second} begins at byte {start} < {last[1]} of {memory.name}, the end of {first}",
            )
        if last is None or end > last[1]:
            last = (start, end, index)


def _residencies_inside(
    case: Case, memory: Memory, ranges: list[tuple[Bytes, Bytes, int]]
) -> Iterator[Violation]:
    """Find residencies without a place whose bytes some tensor has."""
    starts = [start for start, _, _ in ranges]
    for residency in case.plan.residencies:
        if residency.memory != memory.index or case.home[residency.index] is not None:
            continue
        nearest = bisect_right(starts, residency.offset + residency.bytes - 1) - 1
        if nearest >= 0 and ranges[nearest][1] > residency.offset:
            start, end, index = ranges[nearest]
            who = case.residency(residency.index)
            tensor = f"tensor {index} ({case.problem.tensors[index].name})"
            yield Violation(
                "dram_tensors",
                (who, tensor, memory.name),
                f"{who} lies at [{residency.offset}, {residency.offset + residency.bytes}), "
                f"but {tensor} has "
                f"[{start}, {end}) of {memory.name}",
            )
