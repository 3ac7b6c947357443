"""Sources of the numbers of a machine file, and files with other numbers, for what-if questions.

Both name fields by paths, parts joined by dots; an element of a list goes by its name where it has
one, and ``*`` stands for any part.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any, TypeAlias

from spmilp.formats import near_matches, ratio_from
from spmilp.machine.description import ProvenanceFields
from spmilp.quantities import byte_count

FieldPath: TypeAlias = tuple[str, ...]

TEXT = frozenset({"name", "description", "provenance"})
"""Fields that have no provenance."""

USUAL_NAMES = {"scratchpads": "spm", "dram": "dram", "dma": "dma"}
"""Names of the elements of a list that give none, by the list's field."""

SIZES = ("size_bytes", "size_kib", "size_mib")
ENGINES = ("scratchpads.*.dma.*", "shared.*.dma.*", "dram.*.dma.*", "engines.*")
PLACES: Mapping[str, Sequence[str]] = {
    "spm": ("scratchpads.*.size_bytes",),
    "dma_channels": [f"{engine}.channels" for engine in ENGINES],
    "dma_rate": [f"{engine}.rate_bytes_per_cycle" for engine in ENGINES],
    "dram_rate": ("dram.*.rate_bytes_per_cycle",),
}
"""Paths of the numbers that have short names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin of one value, mostly a number, of a machine file.

    Parameters
    ----------
    field
        Its path.
    value
        As written in the file.
    source
        A publication, a data sheet, a file of a public repository, or why it was assumed.
    verified
        Whether the source states the number.
    """

    field: str
    value: str
    source: str
    verified: bool


def provenance_of(
    content: Mapping[str, object], entries: Sequence[ProvenanceFields]
) -> tuple[Provenance, ...]:
    """Return the origin of each number in a file's content, in the file's order.

    The entry with the longest matching path counts, among equals the one with the fewest ``*``,
    then the first. A number without an entry is unverified and has an empty source. A value that is
    no number counts when an entry names its whole path. Without entries there is nothing to say.

    Raises a ``ValueError`` if an entry matches nothing.
    """
    leaves = {at: value for at, value in _parts((), content) if _is_value(value)}
    leaves = {at: value for at, value in leaves.items() if entries and not TEXT.intersection(at)}
    named_by = [(field.split("."), entry) for entry in entries for field in entry.fields]
    # The most exact ones come first. A size that was set may be in another unit than before.
    named_by.sort(key=lambda one: (-len(one[0]), sum("*" in part for part in one[0])))
    patterns = [
        (tuple("size_*" if part in SIZES else part for part in parts), entry)
        for parts, entry in named_by
    ]
    for (pattern, _), (parts, _) in zip(patterns, named_by, strict=True):
        if not any(_matches(pattern, path) for path in leaves):
            known = sorted({".".join(path[:n]) for path in leaves for n in range(1, 6)})
            wanted = ".".join(parts)
            raise ValueError(f"provenance: no field {wanted}{near_matches(wanted, known)}")
    found = []
    for path, value in leaves.items():
        matching = [(p, entry) for p, entry in patterns if _matches(p, path)]
        named = any(len(p) == len(path) and p[-1] != "*" for p, _ in matching)
        if named or _is_number(value):
            best = matching[0][1] if matching else None
            found.append(
                Provenance(
                    field=".".join(path),
                    value=", ".join(map(str, value)) if isinstance(value, list) else str(value),
                    source=best.source if best else "",
                    verified=best is not None and best.verified,
                )
            )
    return tuple(found)


def change(content: dict[str, Any], changes: Mapping[str, Any]) -> str:
    """Set values in the content of a machine file, and say there that no source confirms them.

    Changes are named as in :data:`PLACES`, or by path; sizes and rates are in any form that people
    write. The answer is the end of a machine's name: ``spm64KiB-dma_channels2``.

    Raises a ``ValueError`` if a value is no size or no rate, or there is nothing that it could be
    set for; what other values may be, the file's format says.
    """
    numbers = {name: _number(name, value) for name, value in changes.items()}
    label = "-".join(f"{name}{_short(name, number)}" for name, number in numbers.items())
    written = []
    for name, number in numbers.items():
        paths = PLACES.get(name, (name,))
        places = [place for path in paths for place in _places(path, content)]
        if name.endswith("_rate"):  # a DRAM without ports has none
            places = [(at, owner) for at, owner in places if owner.get(at[-1]) is not None]
        if not places:
            fields = sorted({".".join(at) for at, _ in _parts((), content)})
            hint = "" if name in PLACES else near_matches(name, fields)
            raise ValueError(f"{name}={number}: {content['name']} has no such field{hint}")
        for at, owner in places:
            given = at[-1] in SIZES and next((size for size in SIZES if size in owner), at[-1])
            fields = [(at[-1] if field == given else field, each) for field, each in owner.items()]
            owner.clear()
            owner.update(fields, **{at[-1]: number})
            written.append(".".join(at))
    if content.get("provenance"):
        source = f"Set by the user ({label})."
        content["provenance"].insert(0, {"fields": written, "source": source, "verified": False})
    return label


def _number(name: str, value: Any) -> int | str:
    """Return what a value is in a file: bytes, or a rate as text."""
    try:
        if name == "spm":
            return byte_count(value)
        if name in ("dma_rate", "dram_rate"):
            return str(ratio_from(value))
    except ValueError as error:
        raise ValueError(f"{name}={value!r}: {error}") from error
    return str(value) if isinstance(value, Fraction) else value


def _short(name: str, number: int | str) -> int | str:
    is_kib = name == "spm" and isinstance(number, int) and number % 1024 == 0
    return f"{int(number) // 1024}KiB" if is_kib else number


def _places(path: str, content: object) -> list[tuple[FieldPath, dict[str, Any]]]:
    """Return the fields, there or not, that a path with ``*`` means, and their owners."""
    *owner, field = path.split(".")
    return [
        ((*at, field), part)
        for at, part in _parts((), content)
        if isinstance(part, dict) and len(at) == len(owner) and _matches(tuple(owner), at)
    ]


def _parts(path: FieldPath, content: Any) -> Iterator[tuple[FieldPath, Any]]:
    """Yield all parts of a file by path, each before what is inside; elements by name or number."""
    yield path, content
    if _is_value(content):
        return
    for index, inside in content.items() if isinstance(content, dict) else enumerate(content):
        name = index
        if isinstance(content, list) and isinstance(inside, dict):
            name = inside.get("name", USUAL_NAMES.get(path[-1], index))
        yield from _parts((*path, str(name)), inside)


def _is_value(content: object) -> bool:
    """Say whether a part of a file is one value, or a list of plain ones."""
    if isinstance(content, list):
        return not any(isinstance(inside, dict | list) for inside in content)
    return not isinstance(content, dict)


def _is_number(value: object) -> bool:
    if isinstance(value, list):
        return any(_is_number(element) for element in value)
    if isinstance(value, str):
        return value.replace("/", "").replace(".", "").isdecimal()
    return isinstance(value, int | float) and not isinstance(value, bool)


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Return whether a pattern, part by part, is the path or the beginning of it."""
    return len(pattern) <= len(path) and all(map(fnmatchcase, path, pattern))
