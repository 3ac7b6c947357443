"""Sources in C: templates with marks, rows of numbers, and what both kinds of program keep."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from importlib.resources import files

from spmilp.export import codes
from spmilp.export.actions import Kept
from spmilp.export.names import comment
from spmilp.export.subject import TOOL, Subject, Title

TITLE: Title = ("spmilp-c", "2.0")

PLAYER: Title = ("spmilp-player", "2.0")
"""Format of the sources that are the same for every plan."""

LARGEST_IMAGE_IN_C = 4 << 20
"""Bytes of constants that are written as an array of C too; compilers take long over more."""

SECTION = "SPMILP_TABLE"


def filled(name: str, marks: Mapping[str, object]) -> str:
    """Return a template with what stands for its marks; that is not searched for marks again."""
    text = files("spmilp.export").joinpath("templates", name).read_text("utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda mark: str(marks[mark[1]]), text)


def sources_of_all_plans(*folders: str) -> dict[str, bytes]:
    """Return sources that are the same for every plan, by name, with format and tool above them."""
    above = f"/*\n * format: {' '.join(PLAYER)}\n * tool: {TOOL}\n */\n\n"
    found = {}
    for folder in folders:
        for file in files("spmilp.export").joinpath("c", folder).iterdir():
            if file.is_file():
                is_c = file.name.endswith((".c", ".h"))
                found[file.name] = (above if is_c else "").encode() + file.read_bytes()
    return dict(sorted(found.items()))


def types_header() -> bytes:
    """Return ``spmilp_types.h``: codes and tables, the same for every plan of a version."""
    marks = {"FORMAT": " ".join(TITLE), "TOOL": TOOL, "CODES": "\n".join(_codes())}
    return filled("types.h", marks).encode()


def _codes() -> Iterator[str]:
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
        yield from (f"#define SPMILP_{prefix}_{name.upper()} {number}U" for name, number in names)
        yield ""


def _members(names: Iterable[IntEnum]) -> Iterator[tuple[str, int]]:
    return ((member.name, int(member)) for member in names)


def _numbered(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    return ((name, number) for number, name in enumerate(names))


def stamp(subject: Subject, title: Title, *, has_values: bool = False) -> str:
    """Return the origin as lines of a comment; of a file with values it names the model's hash."""
    return "\n".join(f" * {line}" for line in subject.head(title, has_values=has_values))


def rows(values: Sequence[Sequence[int]], columns: int) -> str:
    """Return rows of unsigned constants; C has no empty arrays, so of none a row of 0."""
    if not values:
        return f"    {{{', '.join(['0U'] * columns)}}}"
    return "\n".join(f"    {{{', '.join(map(_literal, row))}}}," for row in values)


def _literal(value: int) -> str:
    """Return an unsigned constant, whatever the size of ``int``."""
    return f"UINT64_C({value})" if value >= 2**32 else f"{value}U"


def numbers(values: Sequence[int], per_line: int = 20) -> str:
    """Return signed constants; one 0 if there are none."""
    texts = ["(-2147483647 - 1)" if value == -(2**31) else str(value) for value in values or [0]]
    starts = range(0, len(texts), per_line)
    return "\n".join(f"    {', '.join(texts[first : first + per_line])}," for first in starts)


def image_is_in_c(image: bytes) -> bool:
    """Say whether the constants' bytes are written as an array of C too."""
    return len(image) <= LARGEST_IMAGE_IN_C


def image_name(subject: Subject, image: bytes) -> str:
    """Return what the constants' bytes are called in C, or in the object file that is linked."""
    if image_is_in_c(image):
        return f"{subject.prefix}_plan_image"
    return f"_binary_{subject.prefix}_image_bin_start"


def image_files(subject: Subject, image: bytes) -> dict[str, bytes]:
    """Return the files of the constants' bytes: binary, and C where they are few enough."""
    binary = {f"{subject.prefix}_image.bin": image}
    if not image_is_in_c(image):
        return binary
    marks = {
        "STAMP": stamp(subject, TITLE, has_values=True),
        "IMAGE": image_name(subject, image),
        "IMAGE_ROOM": max(1, len(image)),
        "BYTES": numbers(image),
    }
    return {f"{subject.prefix}_image.c": filled("image.c", marks).encode()} | binary


def kept_marks(subject: Subject, kept: Kept, kind: str) -> dict[str, object]:
    """Return the marks of what a program keeps besides code or bits: ``plan`` or ``code``."""
    name, segments = f"{subject.prefix}_{kind}", [(*segment, 0) for segment in kept.on_chip]
    memories = zip(subject.problem.machine.memories, kept.used, strict=True)
    sizes = (
        f"#define {name.upper()}_MEMORY{memory.index}_USED_BYTES UINT64_C({used}) "
        f"/* {comment(memory.name)} */"
        for memory, used in memories
    )
    return {
        "NAME": name,
        "UPPER": name.upper(),
        "LISTS": len(subject.lists.lists),
        "EVENTS": subject.lists.events,
        "RUNNING": max(1, sum(1 for one in subject.lists.cores if one.commands)),
        "MEMORY_SIZES": "\n".join(sizes),
        "SUMMARY": rows([kept.summary], 5),
        "PORTS": rows(kept.ports, 10),
        "PORTS_COUNT": len(kept.ports),
        "PORTS_ROOM": max(1, len(kept.ports)),
        "SEGMENTS": rows(segments, 5),
        "SEGMENTS_COUNT": len(segments),
        "SEGMENTS_ROOM": max(1, len(segments)),
        "WORDS": numbers(kept.words, 12),
        "WORDS_COUNT": len(kept.words),
        "WORDS_ROOM": max(1, len(kept.words)),
        "TEXTS": numbers(kept.texts),
        "TEXTS_COUNT": len(kept.texts),
        "IMAGE": image_name(subject, kept.image),
        "IMAGE_COUNT": len(kept.image),
    }
