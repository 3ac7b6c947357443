"""The allocation: addresses and lifetimes as CSV and for MiniMalloc."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from spmilp.export.names import comment, csv_file, field
from spmilp.export.subject import Subject
from spmilp.machine.machine import Memory
from spmilp.plan.memory import live_bytes
from spmilp.plan.plan import Residency
from spmilp.units import Bytes, Cycles, MemoryIdx, align_up

CSV = ("spmilp-allocation-csv", "1.0")
MINIMALLOC = ("minimalloc-csv", "1.0")

CSV_COLUMNS = (
    *("memory", "memory_name", "residency", "kind", "start", "end", "offset_hex", "end_hex"),
    *("size", "alloc_size", "align", "bank", "live_bytes_max", "layout", "name"),
)
"""Those of Vela's ``--verbose-allocation`` (ethos-u-vela, tensor_allocation.py) are among them."""


class AllocationRow(NamedTuple):
    """One residency.

    Parameters
    ----------
    end_offset
        The address behind the last.
    live
        Most bytes that are occupied in the memory at one cycle of the residency; ``None`` for what
        lies in a DRAM tensor, at the tensor's strides: it takes no space of its own.
    """

    residency: Residency
    name: str
    kind: str
    end_offset: Bytes
    live: Bytes | None


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
    rows: tuple[AllocationRow, ...]
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
    return tuple(
        _allocation(subject, memory, residencies[memory.index], peak)
        for memory, peak in zip(machine.memories, subject.used(), strict=True)
    )


def _allocation(
    subject: Subject, memory: Memory, residencies: Sequence[Residency], peak: Bytes
) -> Allocation:
    ordered = sorted(residencies, key=lambda each: (each.start, each.offset, each.index))
    packed = [each for each in ordered if not subject.is_at_place(each)]
    cycles, totals = live_bytes(packed)
    most = iter(_most_live(packed, cycles, totals))
    rows = []
    for each in ordered:
        buffer = subject.buffer(each)
        rows.append(
            AllocationRow(
                residency=each,
                name=subject.name(each),
                kind="scratch" if buffer is None else buffer.kind.value,
                end_offset=each.offset + subject.span(each),
                live=None if subject.is_at_place(each) else next(most),
            )
        )
    tensors = sum(t.bytes for t in subject.problem.tensors if t.memory == memory.index)
    return Allocation(
        memory=memory,
        rows=tuple(rows),
        peak=peak,
        bound=max(totals, default=0) + tensors,
    )


def _most_live(
    packed: Sequence[Residency], cycles: Sequence[Cycles], totals: Sequence[Bytes]
) -> list[Bytes]:
    """Return for each residency the most bytes that are occupied at one cycle of it."""
    if not totals:
        return [0] * len(packed)
    spans = [
        (max(0, bisect_right(cycles, each.start) - 1), bisect_left(cycles, each.end))
        for each in packed
    ]
    return [int(most) for most in np.maximum.reduceat([*totals, 0], np.ravel(spans))[::2]]


def allocation_csv(subject: Subject) -> dict[str, bytes]:
    """Return ``allocation.csv``: one row for each residency.

    Lines that begin with ``#`` are its head, and the sums of each memory.
    """
    found = allocations(subject)
    rows = (_cells(each.memory, row) for each in found for row in each.rows)
    content = csv_file(subject.head(CSV), CSV_COLUMNS, rows, map(_sums, found))
    return {"allocation.csv": content}


def _sums(allocation: Allocation) -> str:
    memory = allocation.memory
    size = "unbounded" if memory.size is None else f"{memory.size} B"
    return (
        f"memory {memory.index} ({comment(memory.name)}): peak {allocation.peak} B, lower "
        f"bound {allocation.bound} B, overhead {allocation.overhead} B, size {size}"
    )


def _cells(memory: Memory, row: AllocationRow) -> tuple[object, ...]:
    residency, bank = row.residency, None
    if memory.banks is not None and memory.size is not None:
        bank = residency.offset * memory.banks // memory.size
    allocated = residency.bytes
    if row.live is not None:
        allocated = align_up(residency.bytes, memory.alignment)
    return (
        *(memory.index, field(memory.name), residency.index, row.kind),
        *(residency.start, residency.end),
        *(f"0x{residency.offset:x}", f"0x{row.end_offset:x}"),
        *(residency.bytes, allocated, memory.alignment),
        *("" if each is None else each for each in (bank, row.live)),
        *("place" if row.live is None else "packed", field(row.name)),
    )


def minimalloc(subject: Subject) -> dict[str, bytes]:
    """Return ``minimalloc-memoryN.csv`` for each memory in which something lies packed.

    Offset allocation as MiniMalloc reads and writes it (google/minimalloc, README.md):
    ``id,lower,upper,size,offset`` and nothing else, so the head stands in ``export.json``.
    ``upper`` is exclusive. Residencies that share bytes in place are one row, for they must lie
    together; DRAM tensors and reserved ranges are rows that live as long as the plan.
    """
    files = {}
    for memory, residencies in subject.packed_residencies().items():
        rows = _minimalloc_rows(subject, memory, residencies)
        lines = ["id,lower,upper,size,offset", *(",".join(map(str, row)) for row in rows), ""]
        files[f"minimalloc-memory{memory}.csv"] = "\n".join(lines).encode()
    return files


def _minimalloc_rows(
    subject: Subject, memory: MemoryIdx, residencies: list[Residency]
) -> Iterator[tuple[object, ...]]:
    until = max(subject.plan.claim.makespan, *(residency.end for residency in residencies))
    for number, taken in enumerate(subject.problem.machine.memories[memory].reserved):
        yield f"reserved{number}", 0, until, taken.end - taken.start, taken.start
    for tensor, address in zip(subject.problem.tensors, subject.plan.tensors, strict=True):
        if tensor.memory == memory:
            yield f"t{tensor.index}", 0, until, tensor.bytes, address
    for together in _in_place(residencies):
        yield (
            "+".join(f"r{residency.index}" for residency in together),
            min(residency.start for residency in together),
            max(residency.end for residency in together),
            max(residency.bytes for residency in together),
            together[0].offset,
        )


def _in_place(residencies: list[Residency]) -> list[list[Residency]]:
    """Return chains of residencies at one offset of which each begins before the last has ended.

    In a valid plan these are the pairs that share their bytes in place.
    """
    chains: list[list[Residency]] = []
    for each in sorted(residencies, key=lambda each: (each.offset, each.start, each.index)):
        last = chains[-1] if chains else []
        ends = [other.end for other in last if last[0].offset == each.offset]
        if max(ends, default=each.start) > each.start:
            last.append(each)
        else:
            chains.append([each])
    return sorted(chains, key=lambda chain: chain[0].index)
