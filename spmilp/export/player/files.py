"""The files of the player: the same sources for every plan, and the program of one plan."""

from collections.abc import Iterable
from importlib.resources import files

from spmilp.export.c.files import LARGEST_IMAGE_IN_C
from spmilp.export.c.text import head
from spmilp.export.player.supported import require_kernels
from spmilp.export.stamp import Stamp
from spmilp.export.subject import Subject
from spmilp.export.tables.all_tables import all_tables
from spmilp.export.tables.table import Tables

NAME, VERSION = "spmilp-player", "1.0"

_HOST_ONLY = frozenset({"spmilp_threads.c", "spmilp_files.c", "spmilp_blob.c", "spmb_play.c"})
"""What the program for bare metal does without."""


def player(subject: Subject) -> dict[str, bytes]:
    """Return sources, a makefile and a linker script; the tables are those of the C export.

    Raises
    ------
    ExportError
        If a kernel is missing, or the tables cannot be made.
    """
    require_kernels(subject)
    tables = all_tables(subject)
    prefix = subject.prefix
    runtime = _sources()
    made = {name: _headed(subject.stamp, name, text) for name, text in runtime.items()}
    made |= {
        f"{prefix}_program.h": _stamped(subject, _template(subject, tables, "program.h")),
        f"{prefix}_program.c": _stamped(subject, "\n".join(_program(subject, tables))),
        f"{prefix}_main.c": _stamped(subject, _template(subject, tables, "main.c")),
        f"{prefix}_mps2.c": _stamped(subject, _template(subject, tables, "mps2.c")),
        "player.mk": _makefile(subject, tables, runtime),
    }
    return made


def _sources() -> dict[str, str]:
    """Return the files that are the same for every plan, in the order of their names."""
    folder = files("spmilp.export.player").joinpath("c")
    found = {item.name: item.read_text("utf-8") for item in folder.iterdir() if item.is_file()}
    return dict(sorted(found.items()))


def _template(subject: Subject, tables: Tables, name: str) -> str:
    """Return the text of a template with the plan's names in it."""
    text = files("spmilp.export.player").joinpath("templates", name).read_text("utf-8")
    sizes = [row[1] for row in tables.of("ports").rows]
    text = text.replace("@LARGEST_PORT@", str(max(sizes, default=1)))
    return text.replace("@PREFIX@", subject.prefix).replace("@UPPER@", subject.prefix.upper())


def _headed(stamp: Stamp, name: str, text: str) -> bytes:
    """Put format and tool above a file that is the same for every plan."""
    if not name.endswith((".c", ".h")):
        return text.encode()
    lines = ["/*", f" * format: {NAME} {VERSION}", f" * tool: {stamp.tool}", " */", "", text]
    return "\n".join(lines).encode()


def _stamped(subject: Subject, text: str) -> bytes:
    lines = head(subject.stamp, "A program that runs a plan; player.mk builds it.")
    return "\n".join([*lines, "", text]).encode()


def _image_in_c(tables: Tables) -> bool:
    return len(tables.image) <= LARGEST_IMAGE_IN_C


def _makefile(subject: Subject, tables: Tables, sources: Iterable[str]) -> bytes:
    runtime = [name for name in sources if name.endswith(".c") and name not in _HOST_ONLY]
    in_c = _image_in_c(tables)
    text = _template(subject, tables, "player.mk")
    text = text.replace("@RUNTIME@", " ".join(runtime))
    text = text.replace("@IMAGE_SOURCE@", "$(PREFIX)_image.c" if in_c else "")
    text = text.replace("@IMAGE_BINARY@", "" if in_c else "$(PREFIX)_image.bin")
    heading = "".join(f"# {line}\n" for line in subject.stamp.lines(NAME, VERSION))
    return f"{heading}\n{text}".encode()


def _program(subject: Subject, tables: Tables) -> list[str]:
    """Return the definitions of memories, workspaces, events and the player."""
    prefix = subject.prefix
    upper = prefix.upper()
    memories = range(len(tables.of("memories").rows))
    lists = tables.of("lists").rows
    running = [core for core, row in enumerate(tables.of("cores").rows) if lists[row[2]][4]]
    places = {core: number for number, core in enumerate(running)}
    image = f"_binary_{prefix}_image_bin_start"
    has_image = _image_in_c(tables)
    return [
        f'#include "{prefix}_plan.h"',
        f'#include "{prefix}_program.h"',
        "",
        "/* Whole words: every element is aligned where its offset is. SPMILP_MEMORY, if it is",
        "   defined, stands before each definition, for example a section. */",
        "#ifndef SPMILP_MEMORY",
        "#define SPMILP_MEMORY",
        "#endif",
        "#define WORDS(bytes) ((bytes) / 8U + 1U)",
        *(
            f"static SPMILP_MEMORY uint64_t memory{number}"
            f"[WORDS({upper}_PLAN_MEMORY{number}_USED_BYTES)];"
            for number in memories
        ),
        "",
        "static uint8_t *const memories[] = {",
        *(f"    (uint8_t *)memory{number}," for number in memories),
        "};",
        "",
        "/* As many as cores run at the same time. */",
        "#ifndef SPMILP_WORKSPACES",
        f"#define SPMILP_WORKSPACES {max(1, len(running))}U",
        "#endif",
        f"static uint64_t workspace[SPMILP_WORKSPACES][WORDS({upper}_PLAN_WORKSPACE_BYTES)];",
        "#define WORKSPACE(number) (uint8_t *)workspace[(number) % SPMILP_WORKSPACES]",
        "static uint8_t *const workspaces[] = {",
        *(f"    WORKSPACE({places.get(core, 0)})," for core in range(len(tables.of("cores").rows))),
        "};",
        "",
        f"static uint32_t events[{upper}_PLAN_EVENTS + 1U];",
        f"static uint32_t positions[{upper}_PLAN_LISTS + 1U];",
        f"static {'const ' * has_image}struct spmilp_tables tables = {upper}_PLAN_TABLES;",
        "",
        f"const struct spmilp_player {prefix}_program = {{&tables, memories, workspaces, events,",
        f"{' ' * 40}positions}};",
        *(
            []
            if has_image
            else ["", f"/* {prefix}_image.bin */", f"extern const uint8_t {image}[];"]
        ),
        "",
        f"const char *{prefix}_program_prepare(void)",
        "{",
        *([] if has_image else [f"    tables.image = {image};"]),
        f"    return spmilp_prepare(&{prefix}_program);",
        "}",
        "",
    ]
