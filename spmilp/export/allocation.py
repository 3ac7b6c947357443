"""The allocation as rows: address and lifetime of each residency, and the memory's occupancy."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from spmilp.export.subject import Subject
from spmilp.machine.machine import Memory
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Residency
from spmilp.units import Bytes, Cycles, ResidencyIdx, align_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One residency.

    Parameters
    ----------
    offset, end_offset
        First address and the one behind the last.
    size, allocated
        Bytes, and bytes with the padding up to the memory's alignment.
    bank
        Of the first byte; ``None`` where the memory states no banks.
    live
        Most bytes that are occupied in the memory at one cycle of the residency; ``None`` for what
        lies in a DRAM tensor, which takes no space of its own.
    at_place
        Whether it lies in a DRAM tensor, at the tensor's strides.
    """

    residency: ResidencyIdx
    name: str
    kind: str
    start: Cycles
    end: Cycles
    offset: Bytes
    end_offset: Bytes
    size: Bytes
    allocated: Bytes
    bank: int | None
    live: Bytes | None
    at_place: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Contents of one memory, in order of start, then of address.

    Parameters
    ----------
    peak
        End of the highest residency (and DRAM tensor).
    bound
        Most bytes that are occupied at one cycle: no other addresses give a lower peak.
    """

    memory: Memory
    cores: tuple[str, ...]
    rows: tuple[Row, ...]
    peak: Bytes
    bound: Bytes

    @property
    def overhead(self) -> Bytes:
        """Bytes of the peak that are more than the bound, reserved bytes included."""
        return max(0, self.peak - self.bound)


@lru_cache(maxsize=1)
def allocations(subject: Subject) -> tuple[Allocation, ...]:
    """Return the allocation of each memory of the machine, in order."""
    machine = subject.problem.machine
    residencies: list[list[Residency]] = [[] for _ in machine.memories]
    for residency in subject.plan.residencies:
        residencies[residency.memory].append(residency)
    used = subject.used()
    return tuple(
        _allocation(subject, memory, residencies[memory.index], used[memory.index])
        for memory in machine.memories
    )


def _allocation(
    subject: Subject, memory: Memory, residencies: Sequence[Residency], peak: Bytes
) -> Allocation:
    cycles, totals = live_bytes(
        residency for residency in residencies if not subject.is_at_place(residency)
    )
    highest = _Highest(totals)
    tensors = sum(t.bytes for t in subject.problem.tensors if t.memory == memory.index)
    rows = []
    for residency in sorted(
        residencies, key=lambda residency: (residency.start, residency.offset, residency.index)
    ):
        at_place = subject.is_at_place(residency)
        first = max(0, bisect_right(cycles, residency.start) - 1)
        rows.append(
            Row(
                residency=residency.index,
                name=subject.name(residency),
                kind=subject.kind(residency),
                start=residency.start,
                end=residency.end,
                offset=residency.offset,
                end_offset=residency.offset + subject.span(residency),
                size=residency.bytes,
                allocated=residency.bytes
                if at_place
                else align_up(residency.bytes, memory.alignment),
                bank=_bank(memory, residency.offset),
                live=None if at_place else highest.of(first, bisect_left(cycles, residency.end)),
                at_place=at_place,
            )
        )
    return Allocation(
        memory=memory,
        cores=tuple(
            core.name for core in subject.problem.machine.cores if core.memory == memory.index
        ),
        rows=tuple(rows),
        peak=peak,
        bound=max(totals, default=0) + tensors,
    )


def _bank(memory: Memory, offset: Bytes) -> int | None:
    if memory.banks is None or memory.size is None:
        return None
    return offset * memory.banks // memory.size


class _Highest:
    """Answers for the greatest of a range of numbers, from the greatest of 1, 2, 4, ... of them."""

    def __init__(self, values: Sequence[int]) -> None:
        self._of_runs = [list(values)]
        width = 1
        while 2 * width <= len(values):
            last = self._of_runs[-1]
            self._of_runs.append([max(a, b) for a, b in zip(last, last[width:], strict=False)])
            width *= 2

    def of(self, first: int, end: int) -> int:
        """Return the greatest of the values ``[first, end)``, which is not empty."""
        level = (end - first).bit_length() - 1
        runs = self._of_runs[level]
        return max(runs[first], runs[end - (1 << level)])
