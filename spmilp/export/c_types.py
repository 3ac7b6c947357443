"""``spmilp_types.h``: the types of all tables in C."""

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any

from spmilp.export.c_text import NAME, VERSION, guarded, linkage, struct
from spmilp.export.tables import codes, layouts
from spmilp.export.tables.table import NONE

_ASSERT = """\
/* C99 has no static assertion; an array of negative size does as well. */
#define SPMILP_ASSERT(name, condition) typedef char spmilp_assert_##name[(condition) ? 1 : -1]"""


def types_header(tool: str) -> str:
    """Return ``spmilp_types.h``: structs and codes, the same for every plan of a version."""
    major, minor = layouts.VERSION
    lines = ["/*", " * Types of the tables of a plan. Offsets and indices only, no pointers.", " *"]
    lines += [f" * format: {NAME} {VERSION}", f" * tool: {tool}", " */"]
    lines += ["", "#include <stdint.h>", ""]
    lines += [f"#define SPMILP_FORMAT_MAJOR {major}U", f"#define SPMILP_FORMAT_MINOR {minor}U", ""]
    lines += ["/* An index that says that there is nothing. */"]
    lines += [f"#define SPMILP_NONE UINT32_C({NONE})", "", *_all_codes(), _ASSERT, ""]
    lines += ["SPMILP_ASSERT(bytes_have_8_bits, (unsigned char)255 + 1 == 256);", ""]
    for layout in layouts.LAYOUTS:
        lines += [*struct(layout), ""]
    return guarded("spmilp_types", [*lines, *linkage(_tables())])


def _tables() -> Iterator[str]:
    yield "/* All tables of a plan, for code that runs any plan. Counts are rows. */"
    yield "struct spmilp_tables {"
    for layout in layouts.LAYOUTS:
        yield f"    const struct spmilp_{layout.struct} *{layout.table};"
        yield f"    uint32_t {layout.table}_count;"
    yield "    const int32_t *words; /* signed integers, and reals as the bits of float32 */"
    yield "    uint32_t words_count;"
    yield "    const uint8_t *texts; /* UTF-8, each text with a zero behind it */"
    yield "    uint32_t texts_count;"
    yield "    const uint8_t *image; /* bytes of constants; null where it is not in the program */"
    yield "    uint64_t image_count;"
    yield "};"


def _all_codes() -> Iterator[str]:
    for prefix, what, names in (
        ("MEMORY", "Kinds of memories", _of(codes.MEMORY_KINDS)),
        ("BUFFER", "Kinds of buffers", _of(codes.BUFFER_KINDS)),
        ("SCHEME", "What a wait does", _of(codes.SCHEMES)),
        ("FILLED_BY", "What fills a residency", _members(codes.Filler)),
        ("LIST", "Who runs a command list", _members(codes.ListKind)),
        ("COMMAND", "What a command does", _members(codes.Operation)),
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


def _of(numbers: Mapping[Any, int]) -> Iterator[tuple[str, int]]:
    return ((str(name).upper(), number) for name, number in numbers.items())


def _members(numbers: Iterable[IntEnum]) -> Iterator[tuple[str, int]]:
    return ((member.name, int(member)) for member in numbers)


def _numbered(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    return ((name.upper(), number) for number, name in enumerate(names))
