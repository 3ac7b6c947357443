"""``PREFIX_plan.h`` and ``PREFIX_plan.c``: the tables of one plan as constant arrays."""

from collections.abc import Iterator

from spmilp.export.c.text import array, guarded, head, linkage, numbers
from spmilp.export.names import comment
from spmilp.export.subject import Subject
from spmilp.export.tables.table import Table, Tables


def plan_header(subject: Subject, tables: Tables, *, image_in_c: bool) -> str:
    """Return the header: sizes, assertions and declarations.

    Parameters
    ----------
    image_in_c
        Whether the constants' bytes are an array of C too.
    """
    prefix = subject.prefix
    lines = head(subject.stamp, "Tables of a plan; spmilp_types.h says what they mean.")
    lines += ["", "#include <stdint.h>", "", '#include "spmilp_types.h"', ""]
    lines += _sizes(subject, tables)
    lines += ["", *_checks(subject)]
    declared = [f"extern {_declaration(prefix, table)};" for table in tables.tables]
    declared += [f"extern {each};" for each in _pools(prefix, tables)]
    if image_in_c:
        declared.append(f"extern {image_declaration(subject, tables)};")
    lines += ["", *linkage(declared), "", *_initialiser(prefix, tables, image_in_c=image_in_c)]
    return guarded(f"{prefix}_plan", lines)


def plan_source(subject: Subject, tables: Tables) -> str:
    """Return the source: the definitions."""
    prefix = subject.prefix
    lines = head(subject.stamp, "Tables of a plan.")
    lines += ["", f'#include "{prefix}_plan.h"', ""]
    lines += ["/* What comes before each definition, for example a section. */"]
    lines += ["#ifndef SPMILP_TABLE", "#define SPMILP_TABLE", "#endif"]
    for table in tables.tables:
        columns = ", ".join(column.name for column in table.layout.columns)
        lines += ["", f"/* {columns} */"]
        lines += array(f"SPMILP_TABLE {_declaration(prefix, table)}", table)
    words, texts = _pools(prefix, tables)
    lines += ["", *numbers(f"SPMILP_TABLE {words}", tables.words, "i32")]
    lines += ["", *numbers(f"SPMILP_TABLE {texts}", tables.texts, None), ""]
    return "\n".join(lines)


def image_declaration(subject: Subject, tables: Tables) -> str:
    """Return the declaration of the constants' bytes."""
    return f"const uint8_t {subject.prefix}_plan_image[{max(1, len(tables.image))}U]"


def _declaration(prefix: str, table: Table) -> str:
    layout, rows = table.layout, max(1, len(table.rows))
    return f"const struct spmilp_{layout.struct} {prefix}_plan_{layout.table}[{rows}U]"


def _pools(prefix: str, tables: Tables) -> tuple[str, str]:
    words, texts = max(1, len(tables.words)), max(1, len(tables.texts))
    return (
        f"const int32_t {prefix}_plan_words[{words}U]",
        f"const uint8_t {prefix}_plan_texts[{texts}U]",
    )


def _sizes(subject: Subject, tables: Tables) -> Iterator[str]:
    start = f"#define {subject.prefix.upper()}_PLAN"
    yield f"{start}_HAS_MODEL {int(subject.network is not None)}U"
    for table in tables.tables:
        yield f"{start}_{table.layout.table.upper()} {len(table.rows)}U"
    yield f"{start}_WORDS {len(tables.words)}U"
    yield f"{start}_TEXTS {len(tables.texts)}U"
    yield f"{start}_IMAGE_BYTES UINT64_C({len(tables.image)})"
    yield f"{start}_WORKSPACE_BYTES UINT64_C({tables.of('summary').rows[0][1]})"
    yield f"{start}_EVENTS {tables.of('summary').rows[0][3]}U"
    used = subject.used()
    for memory in subject.problem.machine.memories:
        who = f"{start}_MEMORY{memory.index}"
        yield f"{who}_USED_BYTES UINT64_C({used[memory.index]}) /* {comment(memory.name)} */"
        if memory.size is not None:
            yield f"{who}_BYTES UINT64_C({memory.size})"


def _checks(subject: Subject) -> Iterator[str]:
    start = f"{subject.prefix.upper()}_PLAN_MEMORY"
    for memory in subject.problem.machine.memories:
        if memory.size is not None:
            who = f"{subject.prefix}_plan_fits_memory{memory.index}"
            used = f"{start}{memory.index}_USED_BYTES <= {start}{memory.index}_BYTES"
            yield f"SPMILP_ASSERT({who}, {used});"


def _initialiser(prefix: str, tables: Tables, *, image_in_c: bool) -> list[str]:
    """Return a macro that initialises a ``struct spmilp_tables``."""
    start = f"{prefix}_plan_"
    rows = [f"{start}{table.layout.table}, {len(table.rows)}U" for table in tables.tables]
    rows.append(f"{start}words, {len(tables.words)}U")
    rows.append(f"{start}texts, {len(tables.texts)}U")
    image = f"{start}image" if image_in_c else "(const uint8_t *)0"
    rows.append(f"{image}, UINT64_C({len(tables.image)})")
    body = [f"        {row}, \\" for row in rows]
    body[-1] = body[-1].replace(", \\", " \\")
    return [f"#define {prefix.upper()}_PLAN_TABLES \\", "    { \\", *body, "    }"]
