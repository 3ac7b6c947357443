"""``allocation.csv``: one row for each residency."""

import csv
from io import StringIO

from spmilp.export.allocation import Allocation, Row, allocations
from spmilp.export.names import comment, field
from spmilp.export.subject import Subject

NAME, VERSION = "spmilp-allocation-csv", "1.0"

COLUMNS = (
    *("memory", "memory_name", "residency", "kind", "start", "end", "offset_hex", "end_hex"),
    *("size", "alloc_size", "align", "bank", "live_bytes_max", "layout", "name"),
)


def allocation_csv(subject: Subject) -> dict[str, bytes]:
    """Return the file. Lines that begin with ``#`` are its head, and the sums of each memory."""
    found = allocations(subject)
    out = StringIO()
    out.writelines(f"# {line}\n" for line in subject.stamp.lines(NAME, VERSION))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for allocation in found:
        writer.writerows(_cells(allocation, row) for row in allocation.rows)
    out.writelines(f"# {_sums(allocation)}\n" for allocation in found)
    return {"allocation.csv": out.getvalue().encode()}


def _cells(allocation: Allocation, row: Row) -> tuple[object, ...]:
    memory = allocation.memory
    return (
        memory.index,
        field(memory.name),
        row.residency,
        row.kind,
        row.start,
        row.end,
        f"0x{row.offset:x}",
        f"0x{row.end_offset:x}",
        row.size,
        row.allocated,
        memory.alignment,
        "" if row.bank is None else row.bank,
        "" if row.live is None else row.live,
        "place" if row.at_place else "packed",
        field(row.name),
    )


def _sums(allocation: Allocation) -> str:
    memory = allocation.memory
    size = "unbounded" if memory.size is None else f"{memory.size} B"
    return (
        f"memory {memory.index} ({comment(memory.name)}): peak {allocation.peak} B, lower bound "
        f"{allocation.bound} B, overhead {allocation.overhead} B, size {size}"
    )
