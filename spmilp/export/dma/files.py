"""The files of the DMA export: the generic table, and a pair of C files for each controller."""

import csv
from collections.abc import Iterator, Mapping
from io import StringIO

from spmilp.export.c_text import array, guarded, linkage, struct
from spmilp.export.dma import aie_bd, axi_dma_sg, edma_tcd, epiphany, mchan
from spmilp.export.dma.chains import INFO, Copy, Encoding, chains, controllers_of, copies_of
from spmilp.export.names import field
from spmilp.export.subject import Subject
from spmilp.export.tables.table import Table
from spmilp.machine.controllers import CONTROLLERS, Block, Controller, blocks_of

NAME, VERSION = "spmilp-dma", "1.0"

ENCODINGS: Mapping[str, Encoding] = {
    "axi_dma_sg": axi_dma_sg.ENCODING,
    "edma_tcd": edma_tcd.ENCODING,
    "mchan": mchan.encoding("mchan"),
    "mchan_v6": mchan.encoding("mchan_v6"),
    "epiphany": epiphany.ENCODING,
    "aie_bd": aie_bd.ENCODING,
}

COLUMNS = (
    *("descriptor", "transfer", "engine", "channel", "dir"),
    *("src_memory", "src_addr", "dst_memory", "dst_addr", "bytes", "row_bytes"),
    *("rows", "src_stride", "dst_stride", "planes", "src_pstride", "dst_pstride"),
    *("start_cycle", "cycles", "last", "next", "name"),
)

_UNLIMITED = 2**63

GENERIC = Controller(
    name="generic",
    run=_UNLIMITED,
    total=_UNLIMITED,
    turns=(_UNLIMITED, _UNLIMITED),
    source="any controller",
)
"""Loops of up to three dimensions, the run of bytes included, and nothing else limits it."""


def dma_files(subject: Subject) -> dict[str, bytes]:
    """Return ``dma.csv``, and C files for each controller that an engine has.

    Raises
    ------
    ExportError
        If a controller cannot express a copy.
    """
    files = {"dma.csv": generic(subject, subject.stamp.lines(NAME, VERSION))}
    found = controllers_of(subject)
    for name in sorted({controller.name for controller in found.values()}):
        own = {index: each for index, each in found.items() if each.name == name}
        tables = ENCODINGS[name].encode(chains(subject, own))
        files |= _pair(subject, CONTROLLERS[name], tables)
    return files


def _pair(subject: Subject, controller: Controller, tables: list[Table]) -> dict[str, bytes]:
    start = f"{subject.prefix}_dma_{controller.name}"
    declarations = [_declaration(subject.prefix, start, table) for table in tables]
    head = ["/*", f" * DMA descriptors for {controller.name} ({controller.source})."]
    head += [" *", *(f" * {note}" for note in ENCODINGS[controller.name].notes), " *"]
    head += [*(f" * {line}" for line in subject.stamp.lines(NAME, VERSION)), " */"]
    lines = [*head, "", "#include <stdint.h>", "", '#include "spmilp_types.h"', ""]
    for table in tables:
        lines += _struct(table)
    lines += [f"#define {start.upper()}_COUNT {len(tables[0].rows)}U", ""]
    lines += linkage(f"extern {each};" for each in declarations)
    source = [*head, "", f'#include "{start}.h"', ""]
    source += ["#ifndef SPMILP_TABLE", "#define SPMILP_TABLE", "#endif"]
    for declaration, table in zip(declarations, tables, strict=True):
        source += ["", *array(f"SPMILP_TABLE {declaration}", table)]
    return {
        f"{start}.h": guarded(start, lines).encode(),
        f"{start}.c": "\n".join([*source, ""]).encode(),
    }


def _struct(table: Table) -> list[str]:
    """Return the struct of a table; that of :data:`INFO` is the same for all controllers."""
    lines = list(struct(table.layout))
    if table.layout is INFO:
        lines = ["#ifndef SPMILP_DMA_INFO", "#define SPMILP_DMA_INFO", *lines, "#endif"]
    return [*lines, ""]


def _declaration(prefix: str, start: str, table: Table) -> str:
    layout, rows = table.layout, max(1, len(table.rows))
    name = f"{start}_{layout.table}" if layout is INFO else f"{prefix}_{layout.struct}"
    return f"const struct spmilp_{layout.struct} {name}[{rows}U]"


def generic(subject: Subject, head: tuple[str, ...]) -> bytes:
    """Return ``dma.csv``: descriptors of up to three dimensions for any controller.

    A row moves ``planes`` times ``rows`` times ``row_bytes``; copies with more loops become several
    rows. The rows of a channel stand in the order in which it works; ``next`` is the row that
    follows in the channel, and ``last`` marks the end of a transfer (when it may be signalled).

    Parameters
    ----------
    head
        Lines of the stamp.
    """
    rows = [
        (copy, block) for copy in copies_of(subject) for block in blocks_of(copy.block, GENERIC)
    ]
    followers = [*(copy for copy, _ in rows[1:]), None]
    out = StringIO()
    out.writelines(f"# {line}\n" for line in head)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, ((copy, block), follower) in enumerate(zip(rows, followers, strict=True)):
        cells = (*_cells(subject, copy, block), *_links(copy, follower, number))
        name = field(subject.name(subject.plan.residencies[copy.transfer.source]))
        writer.writerow((number, *cells, name))
    return out.getvalue().encode()


def _cells(subject: Subject, copy: Copy, block: Block) -> Iterator[object]:
    machine, move = subject.problem.machine, copy.transfer
    engine = machine.engines[move.engine]
    planes, rows = [(1, 0, 0)] * (2 - len(block.loops)) + list(block.loops)
    yield from (move.index, field(engine.name), move.channel)
    yield "move" if engine.owner is None else "load" if block.loads else "store"
    for memory, address in ((copy.source, block.source), (copy.destination, block.destination)):
        yield from (field(machine.memories[memory].name), f"0x{address:x}")
    yield from (block.bytes, block.run, *rows, *planes, move.start, move.end - move.start)


def _links(copy: Copy, follower: Copy | None, number: int) -> tuple[int, int]:
    """Return whether a transfer ends with a row, and the next row of the channel."""
    if follower is None:
        return 1, -1
    move, after = copy.transfer, follower.transfer
    same_channel = (move.engine, move.channel) == (after.engine, after.channel)
    return int(move.index != after.index), number + 1 if same_channel else -1
