"""Pieces of C source: heads, arrays, the constants' bytes, and what both kinds of program keep."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from spmilp.export.actions import Kept
from spmilp.export.codes import PORTS, SEGMENTS, SUMMARY, TITLE, Layout
from spmilp.export.names import comment
from spmilp.export.subject import TOOL, Subject, Title

PLAYER: Title = ("spmilp-player", "2.0")
"""Format of the sources that are the same for every plan."""

LARGEST_IMAGE_IN_C = 4 << 20
"""Bytes of constants that are written as an array of C too; compilers take long over more."""

SECTION = "SPMILP_TABLE"
SECTION_MACRO = (
    "/* What comes before each definition, for example a section. */",
    *(f"#ifndef {SECTION}", f"#define {SECTION}", "#endif"),
)


def head(
    subject: Subject, summary: str, *, has_values: bool = False, title: Title = TITLE
) -> list[str]:
    """Return the comment that a file begins with; of one with values it names the model's hash."""
    origin = subject.head(title, has_values=has_values)
    return ["/*", f" * {summary}", " *", *(f" * {line}" for line in origin), " */"]


def source_of_all_plans(name: str) -> bytes:
    """Return a source that is the same for every plan, with format and tool above it."""
    text = files("spmilp.export").joinpath("c", name).read_text("utf-8")
    if name.endswith((".c", ".h")):
        lines = ["/*", f" * format: {' '.join(PLAYER)}", f" * tool: {TOOL}", " */", "", text]
        text = "\n".join(lines)
    return text.encode()


def guarded(name: str, lines: Iterable[str]) -> str:
    """Return the text of a header."""
    guard = f"{name.upper()}_H"
    return "\n".join([f"#ifndef {guard}", f"#define {guard}", "", *lines, "", "#endif", ""])


def linkage(lines: Iterable[str]) -> list[str]:
    """Return declarations that C++ sees as C."""
    opening = ["#ifdef __cplusplus", 'extern "C" {', "#endif"]
    return [*opening, "", *lines, "", "#ifdef __cplusplus", "}", "#endif"]


@dataclass(frozen=True, slots=True)
class Array:
    """An array of C: its declaration, what stands between its braces, and a comment on its rows."""

    declaration: str
    lines: Sequence[str]
    says: str = ""

    @property
    def extern(self) -> str:
        """The declaration of a header."""
        return f"extern {self.declaration};"

    def definition(self) -> Iterator[str]:
        """Yield the definition."""
        if self.says:
            yield f"/* {self.says} */"
        yield f"{SECTION} {self.declaration} = {{"
        yield from self.lines
        yield "};"


def table(name: str, layout: Layout, rows: Sequence[Sequence[int]]) -> Array:
    """Return the rows of a layout; C has no empty arrays, so an empty one gets a row of 0.

    Raises
    ------
    ExportError
        If a value does not fit its column.
    """
    layout.require_fit(rows)
    lines = [
        f"    {{{', '.join(map(_literal, row))}}}, /* {number} */"
        for number, row in enumerate(rows)
    ]
    return Array(
        f"const struct spmilp_{layout.struct} {name}[{max(1, len(rows))}U]",
        lines or [f"    {{{', '.join(['0U'] * len(layout.columns))}}}"],
        ", ".join(column for _, column, _ in layout.columns),
    )


def _literal(value: int) -> str:
    """Return an unsigned constant, whatever the size of ``int``."""
    return f"UINT64_C({value})" if value >= 2**32 else f"{value}U"


def integers(name: str, values: Sequence[int], type_: str = "uint8_t") -> Array:
    """Return an array of bytes, or of signed words."""
    per_line = 20 if type_ == "uint8_t" else 12
    texts = ["(-2147483647 - 1)" if value == -(2**31) else str(value) for value in values or [0]]
    lines = [
        f"    {', '.join(texts[first : first + per_line])},"
        for first in range(0, len(texts), per_line)
    ]
    return Array(f"const {type_} {name}[{len(texts)}U]", lines)


def image_is_in_c(image: bytes) -> bool:
    """Say whether the constants' bytes are written as an array of C too."""
    return len(image) <= LARGEST_IMAGE_IN_C


def image_in_program(subject: Subject, image: bytes) -> str:
    """Return what the constants' bytes are called in a program, which may link their file."""
    if image_is_in_c(image):
        return f"{subject.prefix}_plan_image"
    return f"_binary_{subject.prefix}_image_bin_start"


def image_files(subject: Subject, image: bytes) -> dict[str, bytes]:
    """Return the files of the constants' bytes: binary, and C where they are few enough."""
    binary = {f"{subject.prefix}_image.bin": image}
    if not image_is_in_c(image):
        return binary
    made = integers(f"{subject.prefix}_plan_image", image)
    lines = head(subject, "Bytes of the constants, as they lie in flash.", has_values=True)
    lines += ["", "#include <stdint.h>", "", *SECTION_MACRO, "", made.extern]
    lines += [*made.definition(), ""]
    return {f"{subject.prefix}_image.c": "\n".join(lines).encode()} | binary


class KeptArrays:
    """What a program keeps, as arrays of C whose names begin with prefix and kind."""

    def __init__(self, subject: Subject, kept: Kept, kind: str) -> None:
        self._subject, self._kept = subject, kept
        self._start = f"{subject.prefix}_{kind}"
        self._tables = (
            (SUMMARY, [kept.summary]),
            (PORTS, kept.ports),
            (SEGMENTS, [(*segment, 0) for segment in kept.on_chip]),
        )
        self.all = [
            *(table(f"{self._start}_{each.table}", each, rows) for each, rows in self._tables),
            integers(f"{self._start}_words", kept.words, "int32_t"),
            integers(f"{self._start}_texts", kept.texts),
        ]

    def declarations(self) -> list[str]:
        """Return a declaration for each array, that of the image too where it is in C."""
        image = self._kept.image
        found = [each.extern for each in self.all]
        if image_is_in_c(image):
            name = image_in_program(self._subject, image)
            found.append(f"extern const uint8_t {name}[{max(1, len(image))}U];")
        return found

    def initialiser(self) -> Iterator[str]:
        """Yield the macro that initialises a ``struct spmilp_tables``."""
        start, kept = self._start, self._kept
        image = "(const uint8_t *)0"
        if image_is_in_c(kept.image):
            image = image_in_program(self._subject, kept.image)
        yield f"#define {start.upper()}_TABLES \\"
        yield "    { \\"
        sizes = [(layout.table, len(rows)) for layout, rows in self._tables]
        for name, rows in sizes:
            yield f"        .{name} = {start}_{name}, .{name}_count = {rows}U, \\"
        yield f"        .lists_count = {len(self._subject.lists.lists)}U, \\"
        for pool, size in (("words", len(kept.words)), ("texts", len(kept.texts))):
            yield f"        .{pool} = {start}_{pool}, .{pool}_count = {size}U, \\"
        yield f"        .image = {image}, .image_count = UINT64_C({len(kept.image)}) \\"
        yield "    }"

    def sizes(self) -> Iterator[str]:
        """Yield macros of the sizes of a program."""
        line, lists = f"#define {self._start.upper()}", self._subject.lists
        yield f"{line}_IMAGE_BYTES UINT64_C({len(self._kept.image)})"
        yield f"{line}_EVENTS {lists.events}U"
        yield f"{line}_LISTS {len(lists.lists)}U"
        memories = self._subject.problem.machine.memories
        for memory, used in zip(memories, self._kept.used, strict=True):
            name = f"{line}_MEMORY{memory.index}_USED_BYTES"
            yield f"{name} UINT64_C({used}) /* {comment(memory.name)} */"
