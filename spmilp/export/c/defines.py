"""``PREFIX_names.h``: numbers and offsets by name, for code that is written by hand."""

from collections.abc import Iterator

from spmilp.export.c.text import guarded, head
from spmilp.export.names import comment, numbered
from spmilp.export.subject import Subject


def names_header(subject: Subject) -> str:
    """Return the header.

    A name is a letter, the object's number and what of its name can stand in an identifier: no two
    are equal, and none is a keyword.
    """
    lines = head(subject.stamp, "Numbers of buffers, tasks and residencies, and their offsets.")
    lines += ["", "#include <stdint.h>", "", *_buffers(subject), "", *_tasks(subject), ""]
    lines += _stays(subject)
    return guarded(f"{subject.prefix}_names", lines)


def _buffers(subject: Subject) -> Iterator[str]:
    for buffer in subject.problem.buffers:
        name = numbered(f"{subject.prefix}_B", buffer.index, buffer.name).upper()
        yield f"#define {name} {buffer.index}U /* {comment(buffer.name)} */"


def _tasks(subject: Subject) -> Iterator[str]:
    for task in subject.problem.tasks:
        name = numbered(f"{subject.prefix}_T", task.index, task.name).upper()
        yield f"#define {name} {task.index}U /* {comment(task.name)} */"


def _stays(subject: Subject) -> Iterator[str]:
    memories = subject.problem.machine.memories
    for residency in subject.plan.residencies:
        name = numbered(f"{subject.prefix}_R", residency.index, subject.name(residency)).upper()
        where = comment(memories[residency.memory].name)
        yield f"#define {name}_OFFSET UINT64_C({residency.offset}) /* in {where} */"
