"""``allocation.md``: the allocation for people, one table for each memory.

The columns are those of Vela's ``--verbose-allocation`` (ethos-u-vela, tensor_allocation.py).
"""

from collections.abc import Iterator

from spmilp.export.allocation import Allocation, Row, allocations
from spmilp.export.names import cell
from spmilp.export.subject import Subject

NAME, VERSION = "spmilp-allocation-md", "1.0"

_HEAD = (
    "| start - end | first - end address | size | most live | kind | name |",
    "|---:|---|---:|---:|---|---|",
)


def allocation_md(subject: Subject) -> dict[str, bytes]:
    """Return the file: the head, a table of the memories, and a table of residencies for each."""
    found = allocations(subject)
    lines = [f"# Allocation: {cell(subject.problem.name)}", ""]
    lines += [f"- {line}" for line in subject.stamp.lines(NAME, VERSION)]
    lines += ["", "Cycles and bytes; intervals are half-open.", "", *_overview(found)]
    for allocation in found:
        if allocation.rows:
            lines += ["", *_table(allocation)]
    return {"allocation.md": ("\n".join(lines) + "\n").encode()}


def _overview(found: tuple[Allocation, ...]) -> Iterator[str]:
    yield "| memory | cores | residencies | peak | lower bound | overhead | reserved | size |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for allocation in found:
        memory = allocation.memory
        cores = allocation.cores
        shown = ", ".join(map(cell, cores[:4])) + (f", ... ({len(cores)})" if cores[4:] else "")
        reserved = sum(taken.end - taken.start for taken in memory.reserved)
        size = "unbounded" if memory.size is None else f"{memory.size:,}"
        yield (
            f"| {cell(memory.name)} | {shown} | {len(allocation.rows):,} | {allocation.peak:,} | "
            f"{allocation.bound:,} | {_overhead(allocation)} | {reserved:,} | {size} |"
        )


def _table(allocation: Allocation) -> Iterator[str]:
    yield f"## {cell(allocation.memory.name)}"
    yield ""
    yield from _HEAD
    yield from (_line(row) for row in allocation.rows)
    yield ""
    yield (
        f"Peak {allocation.peak:,} B; lower bound (most live bytes) {allocation.bound:,} B; "
        f"overhead {_overhead(allocation)}."
    )


def _line(row: Row) -> str:
    live = "in tensor" if row.live is None else f"{row.live:,}"
    return (
        f"| {row.start:,} - {row.end:,} | {row.offset:#010x} - {row.end_offset:#010x} | "
        f"{row.size:,} | {live} | {row.kind} | {cell(row.name)} |"
    )


def _overhead(allocation: Allocation) -> str:
    share = allocation.overhead / allocation.bound if allocation.bound else 0.0
    return f"{allocation.overhead:,} ({share:.2%})"
