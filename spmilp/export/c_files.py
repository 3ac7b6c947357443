"""The files of the C export: types, tables, names and constants of one plan, as C99."""

from collections.abc import Iterator

from spmilp.export.c_tables import CTables
from spmilp.export.c_text import (
    SECTION_MACRO,
    guarded,
    head,
    image_files,
    linkage,
)
from spmilp.export.c_types import types_header
from spmilp.export.names import comment, numbered
from spmilp.export.packed.c_files import packed_c_files
from spmilp.export.subject import Profile, Subject
from spmilp.export.tables.all_tables import all_tables
from spmilp.export.tables.table import Tables


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
    arrays = CTables(
        prefix=prefix,
        tables=tables.tables,
        words=tables.words,
        texts=tables.texts,
        image=None if subject.network is None else tables.image,
    )
    files = {
        "spmilp_types.h": types_header(subject.stamp.tool).encode(),
        f"{prefix}_plan.h": plan_header(subject, tables, arrays).encode(),
        f"{prefix}_plan.c": plan_source(subject, arrays).encode(),
        f"{prefix}_names.h": names_header(subject).encode(),
    }
    return files | (image_files(subject, tables.image) if subject.network is not None else {})


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


def plan_header(subject: Subject, tables: Tables, arrays: CTables) -> str:
    """Return ``PREFIX_plan.h``: sizes, assertions and declarations."""
    lines = head(subject.stamp, "Tables of a plan; spmilp_types.h says what they mean.")
    lines += ["", "#include <stdint.h>", "", '#include "spmilp_types.h"', ""]
    lines += [*_sizes(subject, tables), "", *_checks(subject), ""]
    lines += [*linkage(arrays.declarations()), "", *arrays.initialiser()]
    return guarded(f"{subject.prefix}_plan", lines)


def plan_source(subject: Subject, arrays: CTables) -> str:
    """Return ``PREFIX_plan.c``: the tables of one plan as constant arrays."""
    lines = head(subject.stamp, "Tables of a plan.")
    lines += ["", f'#include "{subject.prefix}_plan.h"', "", *SECTION_MACRO, ""]
    return "\n".join([*lines, *arrays.definitions()])


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
