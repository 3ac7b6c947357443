"""Pieces of C source: heads, arrays of rows, the constants' bytes, and ``spmilp_types.h``."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeAlias

from spmilp.export import codes
from spmilp.export.actions import Kept
from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.export.subject import Stamp, Subject
from spmilp.units import Bytes

NAME, VERSION = "spmilp-c", "2.0"

LARGEST_IMAGE_IN_C = 4 << 20
"""Bytes of constants that are written as an array of C too; compilers take long over more."""

SECTION = "SPMILP_TABLE"
SECTION_MACRO = (
    "/* What comes before each definition, for example a section. */",
    *(f"#ifndef {SECTION}", f"#define {SECTION}", "#endif"),
)

Width: TypeAlias = Literal["u64", "u32", "i32"]

BYTES: dict[Width, int] = {"u64": 8, "u32": 4, "i32": 4}
TYPES: dict[Width, str] = {"u64": "uint64_t", "u32": "uint32_t", "i32": "int32_t"}


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table, each with its width, name and meaning; named as in C.

    Widths are in falling order and their sum is a multiple of the first, so that no compiler puts
    padding into the struct of a row.
    """

    table: str
    struct: str
    says: str
    columns: tuple[tuple[Width, str, str], ...]

    @property
    def stride(self) -> Bytes:
        """Bytes of a row."""
        return sum(BYTES[width] for width, _, _ in self.columns)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a layout.

    Raises
    ------
    ExportError
        If a value does not fit its column.
    """

    layout: Layout
    rows: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            for value, (width, name, _) in zip(row, self.layout.columns, strict=True):
                if not 0 <= value < 1 << 8 * BYTES[width]:
                    raise ExportError(
                        f"export: row {number} of {self.layout.table}: {name} is {value}, outside "
                        f"[0, {(1 << 8 * BYTES[width]) - 1}] of its {BYTES[width]} bytes"
                    )


SUMMARY = Layout(
    "summary",
    "summary",
    "One row: the plan as a whole",
    (
        ("u64", "makespan", "cycles of the plan; waits, not cycles, order the commands"),
        ("u64", "workspace", "bytes of packed operands that the largest task needs"),
        ("u64", "frequency", "cycles per second; 0 where unknown"),
        ("u32", "events", "events of the command lists, all 0 at the start"),
        ("u32", "scheme", "what a wait does: SCHEME_COUNTERS or SCHEME_SEMAPHORES"),
    ),
)
PORTS = Layout(
    "ports",
    "port",
    "Inputs and outputs of the network, in the model's order",
    (
        ("u64", "address", "of the first byte in its memory"),
        ("u64", "bytes", "size"),
        ("u32", "memory", "a DRAM"),
        ("u32", "direction", "PORT_INPUT or PORT_OUTPUT"),
        ("u32", "type", "of its elements, TYPE_..."),
        ("u32", "rank", "axes of the model's tensor"),
        ("u32", "shape", "position of the model's lengths in words"),
        ("u32", "strides", "position of the bytes between neighbours of each of its axes in words"),
        ("u32", "reserved0", "0"),
        ("u32", "reserved1", "0"),
    ),
)
SEGMENTS = Layout(
    "segments",
    "segment",
    "Constants: what to write into the memories before the start",
    (
        ("u64", "address", "of the first byte in its memory"),
        ("u64", "bytes", "size"),
        ("u64", "image", "position of the first byte in the image"),
        ("u32", "memory", "where it lies"),
        ("u32", "reserved", "0"),
    ),
)
LAYOUTS = (SUMMARY, PORTS, SEGMENTS)


def tables_of(kept: Kept) -> tuple[Table, ...]:
    """Return what stays a table."""
    return (
        Table(SUMMARY, (kept.summary,)),
        Table(PORTS, kept.ports),
        Table(SEGMENTS, tuple((*segment, 0) for segment in kept.on_chip)),
    )


def head(
    stamp: Stamp,
    summary: str,
    *,
    has_values: bool = False,
    title: tuple[str, str] = (NAME, VERSION),
) -> list[str]:
    """Return the comment that a file begins with; of one with values it names the model's hash."""
    origin = stamp.lines if has_values else stamp.lines_of_tables
    return ["/*", f" * {summary}", " *", *(f" * {each}" for each in origin(*title)), " */"]


def guarded(name: str, lines: Iterable[str]) -> str:
    """Return the text of a header."""
    guard = f"{name.upper()}_H"
    return "\n".join([f"#ifndef {guard}", f"#define {guard}", "", *lines, "", "#endif", ""])


def linkage(lines: Iterable[str]) -> list[str]:
    """Return declarations that C++ sees as C."""
    opening = ["#ifdef __cplusplus", 'extern "C" {', "#endif"]
    return [*opening, "", *lines, "", "#ifdef __cplusplus", "}", "#endif"]


def literal(value: int, width: Width) -> str:
    """Return an integer constant of the type of its column, whatever the size of ``int``."""
    if width == "i32":
        return "(-2147483647 - 1)" if value == -(2**31) else str(int(value))
    return f"UINT64_C({int(value)})" if value >= 2**32 else f"{int(value)}U"


def array(declaration: str, table: Table) -> Iterator[str]:
    """Yield the definition of a table; C has no empty arrays, so an empty one gets a row of 0."""
    columns = table.layout.columns
    yield f"{declaration} = {{"
    for number, row in enumerate(table.rows or [(0,) * len(columns)]):
        values = ", ".join(literal(v, width) for v, (width, _, _) in zip(row, columns, strict=True))
        yield f"    {{{values}}}, /* {number} */" if table.rows else f"    {{{values}}}"
    yield "};"


def numbers(declaration: str, values: Sequence[int], width: Width | None) -> Iterator[str]:
    """Yield the definition of an array of plain integers; of bytes without a width."""
    yield f"{declaration} = {{"
    per_line = 12 if width else 20
    for first in range(0, max(1, len(values)), per_line):
        part = values[first : first + per_line] or [0]
        texts = (literal(value, width) if width else str(value) for value in part)
        yield f"    {', '.join(texts)},"
    yield "};"


def struct(layout: Layout) -> Iterator[str]:
    """Yield the definition of the struct of a row, and the assertion that it has no padding."""
    yield f"/* {layout.says}. */"
    yield f"struct spmilp_{layout.struct} {{"
    for width, name, says in layout.columns:
        yield f"    {TYPES[width]} {name}; /* {says} */"
    yield "};"
    yield (
        f"SPMILP_ASSERT({layout.struct}_has_no_padding, "
        f"sizeof(struct spmilp_{layout.struct}) == {layout.stride}U);"
    )


def image_is_in_c(image: bytes) -> bool:
    """Say whether the constants' bytes are written as an array of C too."""
    return len(image) <= LARGEST_IMAGE_IN_C


def image_in_program(subject: Subject, image: bytes) -> str:
    """Return what the constants' bytes are called in a program, which may link their file."""
    if image_is_in_c(image):
        return f"{subject.prefix}_plan_image"
    return f"_binary_{subject.prefix}_image_bin_start"


def _image_declaration(subject: Subject, image: bytes) -> str:
    return f"const uint8_t {subject.prefix}_plan_image[{max(1, len(image))}U]"


def image_files(subject: Subject, image: bytes) -> dict[str, bytes]:
    """Return the files of the constants' bytes: binary, and C where they are few enough."""
    binary = {f"{subject.prefix}_image.bin": image}
    if not image_is_in_c(image):
        return binary
    lines = head(subject.stamp, "Bytes of the constants, as they lie in flash.", has_values=True)
    declaration = _image_declaration(subject, image)
    lines += ["", "#include <stdint.h>", "", *SECTION_MACRO, "", f"extern {declaration};"]
    lines += [*numbers(f"{SECTION} {declaration}", image, None), ""]
    return {f"{subject.prefix}_image.c": "\n".join(lines).encode()} | binary


class KeptArrays:
    """What stays a table in C, and the macro that initialises a ``struct spmilp_tables`` with it.

    Names begin with prefix and ``kind``; that of the image with the prefix.
    """

    def __init__(self, subject: Subject, kept: Kept, kind: str) -> None:
        self._subject, self._kept = subject, kept
        self._start = f"{subject.prefix}_{kind}"
        self._tables = [
            (
                table,
                f"const struct spmilp_{table.layout.struct} "
                f"{self._start}_{table.layout.table}[{max(1, len(table.rows))}U]",
            )
            for table in tables_of(kept)
        ]
        self._words = f"const int32_t {self._start}_words[{max(1, len(kept.words))}U]"
        self._texts = f"const uint8_t {self._start}_texts[{len(kept.texts)}U]"

    def declarations(self) -> list[str]:
        """Return a declaration for each array, that of the image too where it is in C."""
        found = [*(declaration for _, declaration in self._tables), self._words, self._texts]
        if image_is_in_c(self._kept.image):
            found.append(_image_declaration(self._subject, self._kept.image))
        return [f"extern {each};" for each in found]

    def definitions(self) -> Iterator[str]:
        """Yield the definitions of all but the image."""
        for table, declaration in self._tables:
            yield f"/* {', '.join(name for _, name, _ in table.layout.columns)} */"
            yield from (*array(f"{SECTION} {declaration}", table), "")
        yield from (*numbers(f"{SECTION} {self._words}", self._kept.words, "i32"), "")
        yield from (*numbers(f"{SECTION} {self._texts}", self._kept.texts, None), "")

    def initialiser(self) -> Iterator[str]:
        """Yield the macro."""
        start, kept = self._start, self._kept
        image = image_in_program(self._subject, kept.image)
        if not image_is_in_c(kept.image):
            image = "(const uint8_t *)0"
        yield f"#define {start.upper()}_TABLES \\"
        yield "    { \\"
        for table, _ in self._tables:
            name, rows = table.layout.table, len(table.rows)
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


_ASSERT = """\
/* C99 has no static assertion; an array of negative size does as well. */
#define SPMILP_ASSERT(name, condition) typedef char spmilp_assert_##name[(condition) ? 1 : -1]"""


def types_header(tool: str) -> str:
    """Return ``spmilp_types.h``: structs and codes, the same for every plan of a version."""
    lines = ["/*", " * Types of what a plan keeps. Offsets and indices only, no pointers.", " *"]
    lines += [f" * format: {NAME} {VERSION}", f" * tool: {tool}", " */"]
    lines += ["", "#include <stdint.h>", "", *_all_codes(), _ASSERT, ""]
    lines += ["SPMILP_ASSERT(bytes_have_8_bits, (unsigned char)255 + 1 == 256);", ""]
    for layout in LAYOUTS:
        lines += [*struct(layout), ""]
    return guarded("spmilp_types", [*lines, *linkage(_tables())])


def _tables() -> Iterator[str]:
    yield "/* What a plan keeps besides what runs. Counts are rows. */"
    yield "struct spmilp_tables {"
    for layout in LAYOUTS:
        yield f"    const struct spmilp_{layout.struct} *{layout.table};"
        yield f"    uint32_t {layout.table}_count;"
    yield "    uint32_t lists_count; /* those of cores, then those of channels */"
    yield "    const int32_t *words; /* signed integers, and reals as the bits of float32 */"
    yield "    uint32_t words_count;"
    yield "    const uint8_t *texts; /* UTF-8, each text with a zero behind it */"
    yield "    uint32_t texts_count;"
    yield "    const uint8_t *image; /* bytes of constants; null where it is not in the program */"
    yield "    uint64_t image_count;"
    yield "};"


def _all_codes() -> Iterator[str]:
    schemes = ((scheme.name, number) for scheme, number in codes.SCHEMES.items())
    for prefix, what, names in (
        ("SCHEME", "What a wait does", schemes),
        ("PORT", "Sides of the network", _members(codes.Direction)),
        ("TYPE", "Types of elements (ONNX TensorProto.DataType)", _members(codes.Elements)),
        ("PART", "Parts of a reduction", _members(codes.Part)),
        ("LIMIT", "Limits of results: bits", _members(codes.Bound)),
        ("VALUE", "What the words of an attribute are", _members(codes.AttributeType)),
        ("OPERATOR", "ONNX operator types", _numbered(codes.OPERATORS)),
        ("ATTRIBUTE", "Attributes", _numbered(codes.ATTRIBUTES)),
    ):
        yield f"/* {what}. */"
        yield from (f"#define SPMILP_{prefix}_{name} {number}U" for name, number in names)
        yield ""


def _members(names: Iterable[IntEnum]) -> Iterator[tuple[str, int]]:
    return ((member.name, int(member)) for member in names)


def _numbered(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    return ((name.upper(), number) for number, name in enumerate(names))
