"""The files of the C export in the release profile."""

from collections.abc import Iterator
from importlib.resources import files

from spmilp.export.c_tables import CTables, kept_in_c, kept_sizes
from spmilp.export.c_text import (
    SECTION,
    SECTION_MACRO,
    guarded,
    head,
    image_files,
    linkage,
    numbers,
)
from spmilp.export.c_types import types_header
from spmilp.export.footprint import footprint
from spmilp.export.names import comment
from spmilp.export.packed.packed import Index, PackedPlan, packed_plan
from spmilp.export.subject import Subject


def packed_c_files(subject: Subject) -> dict[str, bytes]:
    """Return headers and sources of the packed plan, and the constants' bytes.

    Raises
    ------
    ExportError
        If a number does not fit, or an operator cannot be expressed.
    """
    plan, prefix = packed_plan(subject), subject.prefix
    packed_header = files("spmilp.export.player").joinpath("c/spmilp_packed.h").read_bytes()
    arrays = kept_in_c(subject, plan.kept, "plan")
    return {
        "spmilp_types.h": types_header(subject.stamp.tool).encode(),
        "spmilp_packed.h": packed_header,
        f"{prefix}_plan.h": _header(subject, plan, arrays).encode(),
        f"{prefix}_plan.c": _source(subject, plan, arrays).encode(),
        **image_files(subject, plan.kept.image),
    }


def _header(subject: Subject, plan: PackedPlan, arrays: CTables) -> str:
    prefix = subject.prefix
    lines = head(subject.stamp, "A plan in the release profile.")
    lines += ["", "/*", *(f" * {comment(line)}" for line in footprint(subject).lines()), " */"]
    lines += ["", "#include <stdint.h>", ""]
    lines += ['#include "spmilp_packed.h"', '#include "spmilp_types.h"', ""]
    lines += [*_sizes(subject, plan), ""]
    declared = [f"extern {each};" for each in _declarations(prefix, plan)]
    lines += [*linkage([*declared, *arrays.declarations()]), "", *arrays.initialiser()]
    return guarded(f"{prefix}_plan", lines)


def _sizes(subject: Subject, plan: PackedPlan) -> Iterator[str]:
    start, kept = f"#define {subject.prefix.upper()}_PLAN", plan.kept
    yield f"{start}_WORKSPACE_BYTES UINT64_C({kept.workspace + plan.numbers})"
    yield f"{start}_TASKS {len(subject.problem.tasks)}U"
    yield f"{start}_TRANSFERS {len(subject.plan.transfers)}U"
    yield from kept_sizes(subject, kept, "plan")


def _declarations(prefix: str, plan: PackedPlan) -> tuple[str, str]:
    return (
        f"const struct spmilp_packed {prefix}_plan_packed",
        f"const uint8_t {prefix}_plan_bits[{max(1, len(plan.bits))}U]",
    )


def _source(subject: Subject, plan: PackedPlan, arrays: CTables) -> str:
    prefix = subject.prefix
    lines = head(subject.stamp, "A plan in the release profile.")
    lines += ["", f'#include "{prefix}_plan.h"', "", *SECTION_MACRO, ""]
    packed, bits = _declarations(prefix, plan)
    lines += [*_packed(subject, plan, packed), ""]
    lines += [*numbers(f"{SECTION} {bits}", plan.bits, None), "", *arrays.definitions()]
    return "\n".join(lines)


def _packed(subject: Subject, plan: PackedPlan, declaration: str) -> Iterator[str]:
    yield f"{SECTION} {declaration} = {{"
    yield f"    .bits = {subject.prefix}_plan_bits,"
    yield f"    .lists = {plan.lists}U, .commands = {plan.commands}U,"
    yield f"    .cores = {len(subject.problem.machine.cores)}U, .numbers = {plan.kept.workspace}U,"
    yield f"    .tasks = {_index(plan.tasks)},"
    yield f"    .transfers = {_index(plan.transfers)},"
    yield f"    .operators = {_index(plan.operators)},"
    yield f"    .codes = {_index(plan.codes)}, .totals = {_index(plan.totals)},"
    yield f"    .head_bits = {{{', '.join(f'{width}U' for width in plan.widths)}}}"
    yield "};"


def _index(index: Index) -> str:
    return f"{{{index.at}U, {index.width}U}}"
