"""The files of the C export in the release profile."""

from collections.abc import Iterator
from importlib.resources import files

from spmilp.export.c_text import (
    SECTION_MACRO,
    array,
    guarded,
    head,
    image_declaration,
    image_files,
    image_is_in_c,
    linkage,
    numbers,
)
from spmilp.export.c_types import types_header
from spmilp.export.footprint import footprint
from spmilp.export.names import comment
from spmilp.export.packed.packed import Index, PackedPlan, packed_plan
from spmilp.export.subject import Subject
from spmilp.export.tables.all_tables import all_tables


def packed_c_files(subject: Subject) -> dict[str, bytes]:
    """Return headers and sources of the packed plan, and the constants' bytes.

    Raises
    ------
    ExportError
        If a number does not fit, or an operator cannot be expressed.
    """
    plan, prefix = packed_plan(subject), subject.prefix
    packed_header = files("spmilp.export.player").joinpath("c/spmilp_packed.h").read_bytes()
    image = all_tables(subject).image
    return {
        "spmilp_types.h": types_header(subject.stamp.tool).encode(),
        "spmilp_packed.h": packed_header,
        f"{prefix}_plan.h": _header(subject, plan, image).encode(),
        f"{prefix}_plan.c": _source(subject, plan).encode(),
        **image_files(subject, image),
    }


def _header(subject: Subject, plan: PackedPlan, image: bytes) -> str:
    prefix = subject.prefix
    lines = head(subject.stamp, "A plan in the release profile.")
    lines += ["", "/*", *(f" * {comment(line)}" for line in footprint(subject).lines()), " */"]
    lines += ["", "#include <stdint.h>", ""]
    lines += ['#include "spmilp_packed.h"', '#include "spmilp_types.h"', ""]
    lines += [*_sizes(subject, plan, image), ""]
    declared = [f"extern {each};" for each in _declarations(prefix, plan)]
    if image_is_in_c(image):
        declared.append(f"extern {image_declaration(prefix, image)};")
    lines += [*linkage(declared), "", *_initialiser(subject, plan, image)]
    return guarded(f"{prefix}_plan", lines)


def _sizes(subject: Subject, plan: PackedPlan, image: bytes) -> Iterator[str]:
    start = f"#define {subject.prefix.upper()}_PLAN"
    yield f"{start}_IMAGE_BYTES UINT64_C({len(image)})"
    yield f"{start}_WORKSPACE_BYTES UINT64_C({plan.workspace + plan.numbers})"
    yield f"{start}_EVENTS {subject.lists.events}U"
    yield f"{start}_LISTS {len(subject.lists.lists)}U"
    yield f"{start}_TASKS {len(subject.problem.tasks)}U"
    yield f"{start}_TRANSFERS {len(subject.plan.transfers)}U"
    for memory, used in zip(subject.problem.machine.memories, plan.used, strict=True):
        name = f"{start}_MEMORY{memory.index}_USED_BYTES"
        yield f"{name} UINT64_C({used}) /* {comment(memory.name)} */"


def _declarations(prefix: str, plan: PackedPlan) -> tuple[str, ...]:
    return (
        f"const struct spmilp_packed {prefix}_plan_packed",
        f"const uint8_t {prefix}_plan_bits[{max(1, len(plan.bits))}U]",
        f"const int32_t {prefix}_plan_words[{max(1, len(plan.words))}U]",
        f"const uint8_t {prefix}_plan_texts[{max(1, len(plan.texts))}U]",
        *(
            f"const struct spmilp_{table.layout.struct} {prefix}_plan_{table.layout.table}"
            f"[{max(1, len(table.rows))}U]"
            for table in plan.tables()
        ),
    )


def _initialiser(subject: Subject, plan: PackedPlan, image: bytes) -> Iterator[str]:
    """Yield a macro that initialises the few tables that are left of ``struct spmilp_tables``."""
    prefix = subject.prefix
    start = f"{prefix}_plan_"
    where = f"{start}image" if image_is_in_c(image) else "(const uint8_t *)0"
    yield f"#define {prefix.upper()}_PLAN_TABLES \\"
    yield "    { \\"
    for table in plan.tables():
        name, rows = table.layout.table, len(table.rows)
        yield f"        .{name} = {start}{name}, .{name}_count = {rows}U, \\"
    yield f"        .lists_count = {len(subject.lists.lists)}U, \\"
    for pool, size in (("words", len(plan.words)), ("texts", len(plan.texts))):
        yield f"        .{pool} = {start}{pool}, .{pool}_count = {size}U, \\"
    yield f"        .image = {where}, .image_count = UINT64_C({len(image)}) \\"
    yield "    }"


def _source(subject: Subject, plan: PackedPlan) -> str:
    prefix = subject.prefix
    lines = head(subject.stamp, "A plan in the release profile.")
    lines += ["", f'#include "{prefix}_plan.h"', "", *SECTION_MACRO, ""]
    packed, bits, words, texts, *tables = _declarations(prefix, plan)
    lines += [*_packed(subject, plan, packed), ""]
    lines += [*numbers(f"SPMILP_TABLE {bits}", plan.bits, None), ""]
    lines += [*numbers(f"SPMILP_TABLE {words}", plan.words, "i32"), ""]
    lines += [*numbers(f"SPMILP_TABLE {texts}", plan.texts, None), ""]
    for declaration, table in zip(tables, plan.tables(), strict=True):
        lines += [*array(f"SPMILP_TABLE {declaration}", table), ""]
    return "\n".join(lines)


def _packed(subject: Subject, plan: PackedPlan, declaration: str) -> Iterator[str]:
    widths = plan.widths
    yield f"SPMILP_TABLE {declaration} = {{"
    yield f"    .bits = {subject.prefix}_plan_bits,"
    yield f"    .lists = {plan.lists}U, .commands = {plan.commands}U,"
    yield f"    .cores = {len(subject.problem.machine.cores)}U, .numbers = {plan.workspace}U,"
    yield f"    .tasks = {_index(plan.tasks)},"
    yield f"    .transfers = {_index(plan.transfers)},"
    yield f"    .operators = {_index(plan.operators)},"
    yield f"    .own_bits = {widths.own}U, .event_bits = {widths.event}U,"
    yield f"    .count_bits = {widths.count}U, .length_bits = {widths.length}U,"
    yield f"    .start_bits = {widths.start}U"
    yield "};"


def _index(index: Index) -> str:
    return f"{{{index.at}U, {index.width}U, {index.row_bits}U}}"
