"""The files of the DMA export: the generic table, and a pair of C files for each controller."""

from collections.abc import Mapping

from spmilp.export.c.text import array, guarded, linkage, struct
from spmilp.export.dma import aie_bd, axi_dma_sg, edma_tcd, epiphany, mchan
from spmilp.export.dma.chains import chains, controllers_of
from spmilp.export.dma.encoding import INFO, Encoding
from spmilp.export.dma.generic import generic
from spmilp.export.subject import Subject
from spmilp.export.tables.table import Table
from spmilp.machine.controllers import CONTROLLERS, Controller

NAME, VERSION = "spmilp-dma", "1.0"

ENCODINGS: Mapping[str, Encoding] = {
    "axi_dma_sg": axi_dma_sg.ENCODING,
    "edma_tcd": edma_tcd.ENCODING,
    "mchan": mchan.encoding("mchan"),
    "mchan_v6": mchan.encoding("mchan_v6"),
    "epiphany": epiphany.ENCODING,
    "aie_bd": aie_bd.ENCODING,
}


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
