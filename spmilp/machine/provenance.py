"""Sources of the numbers of a machine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

from spmilp.machine.description import ProvenanceFields
from spmilp.machine.fields import near_matches

Leaf: TypeAlias = tuple[tuple[str, ...], str, bool]
"""The path of a value in a file, how it is written, and whether it is a number."""

TEXT = frozenset({"name", "description", "provenance"})
USUAL_NAMES = {"scratchpads": "spm", "dram": "dram", "dma": "dma"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The origin of one value, mostly a number, of a machine file.

    Parameters
    ----------
    field
        Its path, parts joined by dots; an element of a list goes by its name where it has one.
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
    content: dict[str, object], entries: Sequence[ProvenanceFields]
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
        if not any(_matches(pattern, path) for path, _, _ in leaves):
            known = sorted({".".join(path[:n]) for path, _, _ in leaves for n in range(1, 6)})
            wanted = ".".join(pattern)
            raise ValueError(f"provenance: no field {wanted}{near_matches(wanted, known)}")
    found = []
    for path, value, is_number in leaves:
        matching = [(p, entry) for p, entry in patterns if _matches(p, path)]
        named = any(len(p) == len(path) and p[-1] != "*" for p, _ in matching)
        if not is_number and not named:
            continue
        best = max(matching, key=lambda match: _precision(match[0]), default=None)
        found.append(
            Provenance(
                field=".".join(path),
                value=value,
                source=best[1].source if best else "",
                verified=best[1].verified if best else False,
            )
        )
    return tuple(found)


def _precision(pattern: tuple[str, ...]) -> tuple[int, int]:
    """Return a measure by which an entry's path says more than another's."""
    return len(pattern), -sum("*" in part for part in pattern)


def _leaves(path: tuple[str, ...], content: object) -> Iterator[Leaf]:
    """Yield the values inside a part of a file, except those that only name it."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key not in TEXT:
                yield from _leaves((*path, str(key)), value)
    elif isinstance(content, list) and any(isinstance(value, dict | list) for value in content):
        for index, value in enumerate(content):
            named = isinstance(value, dict) and value.get("name", USUAL_NAMES.get(path[-1]))
            yield from _leaves((*path, str(named or index)), value)
    else:
        yield path, _written(content), _is_number(content)


def _written(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _is_number(value: object) -> bool:
    if isinstance(value, list):
        return any(_is_number(element) for element in value)
    if isinstance(value, str):
        return value.replace("/", "").replace(".", "").isdecimal()
    return isinstance(value, int | float) and not isinstance(value, bool)


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Return whether a pattern, part by part, is the path or the beginning of it."""
    return len(pattern) <= len(path) and all(map(fnmatchcase, path, pattern))
