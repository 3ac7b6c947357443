"""The columns ``apart`` and ``together`` of a packing CSV: pairs of buffers, by their ids."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import lcm

from spmilp.packing.columns import shown
from spmilp.packing.items import LARGEST, Item

Pairs = tuple[tuple[int, int], ...]
"""Rows of two buffers, counted from 0, the lower one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What the pairs are checked against: of each row its line in the file, id and item."""

    lines: Sequence[int]
    ids: Sequence[str]
    items: Sequence[Item]

    def named(self, row: int) -> str:
        """Return what a message calls the buffer of a row."""
        return f"{shown(self.ids[row])} of line {self.lines[row]}"


class PairError(ValueError):
    """A pair that cannot be; it knows the line to blame."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def ids_in(cell: str) -> list[str]:
    """Return the ids in a cell: separated by spaces, in double quotes where they have some.

    Raises
    ------
    ValueError
        If quotes do not match.
    """
    try:
        (ids,) = csv.reader([cell.strip()], delimiter=" ", skipinitialspace=True, strict=True)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{shown(cell)} is no list of ids separated by spaces") from error
    return [name for name in ids if name]


def pairs_of(column: str, cells: Iterable[str], rows: Rows) -> Pairs:
    """Return the pairs of a column; it is enough that one buffer names the other.

    Raises
    ------
    PairError
        If a cell cannot be read, or names no buffer, or the row's own.
    """
    row_of = {name: row for row, name in enumerate(rows.ids)}
    pairs: set[tuple[int, int]] = set()
    for row, cell in enumerate(cells):
        line = rows.lines[row]
        try:
            named = ids_in(cell) if cell.strip() else []
        except ValueError as error:
            raise PairError(line, f"{column} {error}") from error
        for name in named:
            other = row_of.get(name)
            if other is None:
                raise PairError(line, f"{column} names {shown(name)}, and no buffer has that id")
            if other == row:
                raise PairError(line, f"{column} names {shown(name)}, the id of the line itself")
            pairs.add((min(row, other), max(row, other)))
    return tuple(sorted(pairs))


def require_consistent(rows: Rows, together: Pairs, apart: Pairs) -> None:
    """Refuse buffers that must lie together and cannot.

    Raises
    ------
    PairError
        If they must also lie apart, are fixed at two offsets or where one of them may not lie, or
        no offset is a multiple of all their alignments.
    """
    first_of = _first_of_each_set(len(rows.ids), together)
    for a, b in apart:
        if first_of[a] == first_of[b]:
            message = f"{rows.named(a)} must lie together with {rows.named(b)}, and apart from it"
            raise PairError(rows.lines[b], message)
    fixed: dict[int, int] = {}
    for row, item in enumerate(rows.items):
        if item.offset is None:
            continue
        other = fixed.setdefault(first_of[row], row)
        there = rows.items[other].offset
        if there != item.offset:
            message = f"{rows.named(other)} at {there} B and {rows.named(row)} at {item.offset} B"
            raise PairError(rows.lines[row], f"{message} must lie together, and are fixed apart")
    alignments: dict[int, int] = {}
    for row, item in enumerate(rows.items):
        first = first_of[row]
        offset = rows.items[fixed[first]].offset if first in fixed else None
        if offset is not None and offset % item.alignment:
            message = f"{rows.named(row)} must lie together with {rows.named(fixed[first])}, at"
            raise PairError(
                rows.lines[row], f"{message} {offset} B, no multiple of {item.alignment} B"
            )
        alignments[first] = lcm(alignments.get(first, 1), item.alignment)
        if alignments[first] >= LARGEST:
            message = f"{rows.named(row)} and those that must lie together with it need a multiple"
            raise PairError(rows.lines[row], f"{message} of {alignments[first]} B, 2^60 B or more")


def _first_of_each_set(count: int, together: Pairs) -> list[int]:
    """Return for each row the first of those that pairs tie it to."""
    first = list(range(count))

    def find(row: int) -> int:
        while first[row] != row:
            first[row] = first[first[row]]
            row = first[row]
        return row

    for a, b in together:
        low, high = sorted((find(a), find(b)))
        first[high] = low
    return [find(row) for row in range(count)]
