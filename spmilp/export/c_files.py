"""The files of the C export: types, tables, names and constants of one plan, as C99."""

from collections.abc import Iterator

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
from spmilp.export.names import comment, numbered
from spmilp.export.packed.c_files import packed_c_files
from spmilp.export.subject import Profile, Subject
from spmilp.export.tables.all_tables import all_tables
from spmilp.export.tables.table import Table, Tables


def c_files(subject: Subject) -> dict[str, bytes]:
    """Return headers and sources, and the constants' bytes where the model is known.

    Raises
    ------
    ExportError
        If a number does not fit its field, or an operator cannot be expressed.
    """
    if subject.profile is Profile.RELEASE:
        return packed_c_files(subject)
    tables = all_tables(subject)
    prefix = subject.prefix
    has_image = subject.network is not None
    image_in_c = has_image and image_is_in_c(tables.image)
    files = {
        "spmilp_types.h": types_header(subject.stamp.tool).encode(),
        f"{prefix}_plan.h": plan_header(subject, tables, image_in_c=image_in_c).encode(),
        f"{prefix}_plan.c": plan_source(subject, tables).encode(),
        f"{prefix}_names.h": names_header(subject).encode(),
    }
    return files | (image_files(subject, tables.image) if has_image else {})


def names_header(subject: Subject) -> str:
    """Return ``PREFIX_names.h``: numbers and offsets by name, for code that is written by hand.

    A name is a letter, the object's number and what of its name can stand in an identifier: no two
    are equal, and none is a keyword.
    """
    lines = head(subject.stamp, "Numbers of buffers, tasks and residencies, and their offsets.")
    lines += ["", "#include <stdint.h>", "", *_buffers(subject), "", *_tasks(subject), ""]
    lines += _residencies(subject)
    return guarded(f"{subject.prefix}_names", lines)


def _buffers(subject: Subject) -> Iterator[str]:
    for buffer in subject.problem.buffers:
        name = numbered(f"{subject.prefix}_B", buffer.index, buffer.name).upper()
        yield f"#define {name} {buffer.index}U /* {comment(buffer.name)} */"


def _tasks(subject: Subject) -> Iterator[str]:
    for task in subject.problem.tasks:
        name = numbered(f"{subject.prefix}_T", task.index, task.name).upper()
        yield f"#define {name} {task.index}U /* {comment(task.name)} */"


def _residencies(subject: Subject) -> Iterator[str]:
    memories = subject.problem.machine.memories
    for residency in subject.plan.residencies:
        name = numbered(f"{subject.prefix}_R", residency.index, subject.name(residency)).upper()
        where = comment(memories[residency.memory].name)
        yield f"#define {name}_OFFSET UINT64_C({residency.offset}) /* in {where} */"


def plan_header(subject: Subject, tables: Tables, *, image_in_c: bool) -> str:
    """Return ``PREFIX_plan.h``: sizes, assertions and declarations.

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
        declared.append(f"extern {image_declaration(prefix, tables.image)};")
    lines += ["", *linkage(declared), "", *_initialiser(prefix, tables, image_in_c=image_in_c)]
    return guarded(f"{prefix}_plan", lines)


def plan_source(subject: Subject, tables: Tables) -> str:
    """Return ``PREFIX_plan.c``: the tables of one plan as constant arrays."""
    prefix = subject.prefix
    lines = head(subject.stamp, "Tables of a plan.")
    lines += ["", f'#include "{prefix}_plan.h"', "", *SECTION_MACRO]
    for table in tables.tables:
        columns = ", ".join(column.name for column in table.layout.columns)
        lines += ["", f"/* {columns} */"]
        lines += array(f"SPMILP_TABLE {_declaration(prefix, table)}", table)
    words, texts = _pools(prefix, tables)
    lines += ["", *numbers(f"SPMILP_TABLE {words}", tables.words, "i32")]
    lines += ["", *numbers(f"SPMILP_TABLE {texts}", tables.texts, None), ""]
    return "\n".join(lines)


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
        name = f"{start}_MEMORY{memory.index}"
        yield f"{name}_USED_BYTES UINT64_C({used[memory.index]}) /* {comment(memory.name)} */"
        if memory.size is not None:
            yield f"{name}_BYTES UINT64_C({memory.size})"


def _checks(subject: Subject) -> Iterator[str]:
    start = f"{subject.prefix.upper()}_PLAN_MEMORY"
    for memory in subject.problem.machine.memories:
        if memory.size is not None:
            name = f"{subject.prefix}_plan_fits_memory{memory.index}"
            used = f"{start}{memory.index}_USED_BYTES <= {start}{memory.index}_BYTES"
            yield f"SPMILP_ASSERT({name}, {used});"


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
