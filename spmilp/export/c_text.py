"""Pieces of C source: heads, literals, arrays."""

from collections.abc import Iterable, Iterator, Sequence

from spmilp.export.names import comment
from spmilp.export.subject import Stamp, Subject
from spmilp.export.tables import layouts
from spmilp.export.tables.table import NONE, Layout, Table, Width

NAME, VERSION = "spmilp-c", ".".join(map(str, layouts.VERSION))

LARGEST_IMAGE_IN_C = 4 << 20
"""Bytes of constants that are written as an array of C too; compilers take long over more."""

TYPES: dict[Width, str] = {"u64": "uint64_t", "u32": "uint32_t", "i32": "int32_t"}


SECTION = "SPMILP_TABLE"
SECTION_MACRO = (
    "/* What comes before each definition, for example a section. */",
    *(f"#ifndef {SECTION}", f"#define {SECTION}", "#endif"),
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
    if value >= 2**32:
        return f"UINT64_C({int(value)})"
    if width == "u32" and value == NONE:
        return "SPMILP_NONE"
    return f"{int(value)}U"


def array(declaration: str, table: Table) -> Iterator[str]:
    """Yield the definition of a table; C has no empty arrays, so an empty one gets a row of 0."""
    columns = table.layout.columns
    yield f"{declaration} = {{"
    for number, row in enumerate(table.rows or [(0,) * len(columns)]):
        values = ", ".join(
            literal(value, column.width) for value, column in zip(row, columns, strict=True)
        )
        note = f": {comment(table.notes[number])}" if table.notes else ""
        yield f"    {{{values}}}, /* {number}{note} */" if table.rows else f"    {{{values}}}"
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
    for column in layout.columns:
        yield f"    {TYPES[column.width]} {column.name}; /* {column.says} */"
    yield "};"
    yield (
        f"SPMILP_ASSERT({layout.struct}_has_no_padding, "
        f"sizeof(struct spmilp_{layout.struct}) == {layout.stride}U);"
    )


def image_is_in_c(image: bytes) -> bool:
    """Say whether the constants' bytes are written as an array of C too."""
    return len(image) <= LARGEST_IMAGE_IN_C


def image_name(prefix: str) -> str:
    """Return the name of the array of the constants' bytes."""
    return f"{prefix}_plan_image"


def image_in_program(subject: Subject, image: bytes) -> str:
    """Return what the constants' bytes are called in a program, which may link their file."""
    if image_is_in_c(image):
        return image_name(subject.prefix)
    return f"_binary_{subject.prefix}_image_bin_start"


def image_declaration(prefix: str, image: bytes) -> str:
    """Return the declaration of the constants' bytes."""
    return f"const uint8_t {image_name(prefix)}[{max(1, len(image))}U]"


def image_files(subject: Subject, image: bytes) -> dict[str, bytes]:
    """Return the files of the constants' bytes: binary, and C where they are few enough."""
    prefix = subject.prefix
    if not image_is_in_c(image):
        return {f"{prefix}_image.bin": image}
    lines = head(subject.stamp, "Bytes of the constants, as they lie in flash.", has_values=True)
    declaration = image_declaration(prefix, image)
    lines += ["", "#include <stdint.h>", "", *SECTION_MACRO, "", f"extern {declaration};"]
    lines += numbers(f"{SECTION} {declaration}", image, None)
    return {
        f"{prefix}_image.c": "\n".join([*lines, ""]).encode(),
        f"{prefix}_image.bin": image,
    }
