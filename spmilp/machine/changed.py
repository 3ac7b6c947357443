"""Sources of the numbers of a machine file, and files with other numbers, for what-if questions.

Both name fields by paths, parts joined by dots; an element of a list goes by its name where it has
one, and ``*`` stands for any part.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from spmilp.formats import near_matches, ratio_from
from spmilp.machine.description import ProvenanceFields
from spmilp.quantities import byte_count

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

    Raises
    ------
    ValueError
        If an entry matches nothing.
    """
    if not entries:
        return ()
    leaves = list(_leaves((), content))
    patterns = [(tuple(field.split(".")), entry) for entry in entries for field in entry.fields]
    for pattern, _ in patterns:
        if not any(_matches(pattern, path) for path, _ in leaves):
            known = sorted({".".join(path[:n]) for path, _ in leaves for n in range(1, 6)})
            wanted = ".".join(pattern)
            raise ValueError(f"provenance: no field {wanted}{near_matches(wanted, known)}")
    found = []
    for path, value in leaves:
        matching = [(p, entry) for p, entry in patterns if _matches(p, path)]
        named = any(len(p) == len(path) and p[-1] != "*" for p, _ in matching)
        if named or _is_number(value):
            _, best = max(
                matching,
                key=lambda match: (len(match[0]), -sum("*" in part for part in match[0])),
                default=((), None),
            )
            found.append(
                Provenance(
                    field=".".join(path),
                    value=", ".join(map(str, value)) if isinstance(value, list) else str(value),
                    source=best.source if best else "",
                    verified=best is not None and best.verified,
                )
            )
    return tuple(found)


def provenance_after(
    before: tuple[Provenance, ...], written: Mapping[str, str], label: str
) -> tuple[Provenance, ...]:
    """Return the origins of all numbers: those that were set anew are confirmed by no source.

    A machine whose file says nothing of origins still does not.
    """
    if not before:
        return ()
    rows = {}
    for row in before:
        owner, _, last = row.field.rpartition(".")
        size = f"{owner}.size_bytes"
        rows[size if last in SIZES and size in written else row.field] = row
    for field, value in written.items():
        source = f"Set by the user ({label})."
        rows[field] = Provenance(field=field, value=value, source=source, verified=False)
    return tuple(rows.values())


def numbers_of(changes: Mapping[str, Any]) -> dict[str, int | str]:
    """Return the numbers that are meant, by the names of :data:`PLACES` or by path; rates as text.

    Raises
    ------
    ValueError
        If a value is no size or no rate; of all others the file's format says what they may be.
    """
    numbers: dict[str, int | str] = {}
    for name, value in changes.items():
        try:
            if name == "spm":
                numbers[name] = byte_count(value)
            elif name in ("dma_rate", "dram_rate"):
                numbers[name] = str(ratio_from(value))
            else:
                numbers[name] = str(value) if isinstance(value, Fraction) else value
        except ValueError as error:
            raise ValueError(f"{name}={value!r}: {error}") from error
    return numbers


def change(content: dict[str, Any], numbers: Mapping[str, int | str]) -> dict[str, str]:
    """Set numbers in the content of a machine file; return what is written where.

    Raises
    ------
    ValueError
        If there is nothing that a number could be set for.
    """
    written: dict[str, str] = {}
    for name, number in numbers.items():
        places = [] if name in PLACES else _places_of(name, content)
        for path in PLACES.get(name, ()):
            with suppress(ValueError):  # not every machine has shared memories
                places += _places_of(path, content)
        if name.endswith("_rate"):  # a DRAM without ports has none
            places = [place for place in places if place[1].get(place[2]) is not None]
        if not places:
            raise ValueError(f"{name}={number}: {content['name']} has none that could be set")
        for path, owner, field in places:
            for other in SIZES if field in SIZES else ():
                owner.pop(other, None)
            owner[field] = number
            written[f"{path}.{field}"] = str(number)
    return written


def label_of(numbers: Mapping[str, int | str]) -> str:
    """Return the changes as the end of a machine's name: ``spm64KiB-dma_channels2``."""
    shown = dict(numbers)
    size = shown.get("spm")
    if isinstance(size, int) and size % 1024 == 0:
        shown["spm"] = f"{size // 1024}KiB"
    return "-".join(f"{name}{number}" for name, number in shown.items())


def _places_of(path: str, content: object) -> list[tuple[str, dict[str, Any], str]]:
    """Return the paths and owners of the fields at a path, and their name.

    Raises
    ------
    ValueError
        If there is no such place; the message says what is there.
    """
    *parts, last = path.split(".")
    owners: list[tuple[tuple[str, ...], Any]] = [((), content)]
    for depth, part in enumerate(parts):
        inside = [((*at, name), each) for at, owner in owners for name, each in _inside(at, owner)]
        owners = [(at, each) for at, each in inside if fnmatchcase(at[-1], part)]
        if not owners:
            names = sorted({at[-1] for at, _ in inside})
            where = f"in {'.'.join(parts[:depth])} " if depth else ""
            there = f"there are {', '.join(names)}" if names else "there is nothing"
            raise ValueError(f"{path}: {where}{there}, not {part}{near_matches(part, names)}")
    plain = [at for at, owner in owners if not isinstance(owner, dict)]
    if plain:
        raise ValueError(f"{path}: {'.'.join(plain[0])} is a value and has no fields")
    return [(".".join(at), owner, last) for at, owner in owners]


def _inside(at: tuple[str, ...], owner: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a file's part by name; elements of a list by name or number."""
    if isinstance(owner, dict):
        yield from ((str(name), each) for name, each in owner.items())
    elif isinstance(owner, list):
        for index, each in enumerate(owner):
            name = each.get("name", USUAL_NAMES.get(at[-1])) if isinstance(each, dict) else None
            yield str(index if name is None else name), each


def _leaves(path: tuple[str, ...], content: object) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the values inside a part of a file by path, without the fields of :data:`TEXT`."""
    is_dict = isinstance(content, dict)
    if is_dict or (isinstance(content, list) and any(isinstance(c, dict | list) for c in content)):
        for name, value in _inside(path, content):
            if not (is_dict and name in TEXT):
                yield from _leaves((*path, name), value)
    else:
        yield path, content


def _is_number(value: object) -> bool:
    if isinstance(value, list):
        return any(_is_number(element) for element in value)
    if isinstance(value, str):
        return value.replace("/", "").replace(".", "").isdecimal()
    return isinstance(value, int | float) and not isinstance(value, bool)


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Return whether a pattern, part by part, is the path or the beginning of it."""
    return len(pattern) <= len(path) and all(map(fnmatchcase, path, pattern))
