"""Array types that compiled code works on.

A table is an array of records: ``table[i].field`` is what compiled code reads and writes, and
``table["field"]`` a whole column for Python. Missing references are ``NONE``.
"""

from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Table: TypeAlias = NDArray[Any]

NONE = -1
NEVER = 2**62
NO_LIMIT = NEVER


def table(rows: int, *fields: str) -> Table:
    """Return a table of zeros with 64-bit integer ``fields``."""
    kind = np.dtype([(field, np.int64) for field in fields])
    return np.zeros(rows, kind).view(np.recarray)


def row_of(rows: Table, index: int) -> Any:
    """Return a row to read and to write, for which kernels in C have a pointer."""
    return rows[index]


def set_ranges(rows: Table, name: str, begin: Ints) -> None:
    """Set the columns ``name_from`` and ``name_to`` to where each list begins and ends."""
    rows[f"{name}_from"], rows[f"{name}_to"] = begin[:-1], begin[1:]


def numbers(values: Iterable[int]) -> Ints:
    """Return an array of 64-bit integers."""
    return np.fromiter(values, np.int64)


class Rows(NamedTuple):
    """A list of numbers for each of many things: ``items[begin[i]:begin[i + 1]]``."""

    begin: Ints
    items: Ints

    def row(self, index: int) -> Ints:
        """Return one of the lists."""
        return self.items[self.begin[index] : self.begin[index + 1]]

    def values(self, index: int) -> list[int]:
        """Return one of the lists as Python's numbers."""
        found: list[int] = self.row(index).tolist()
        return found


def rows_of(lists: Iterable[Sequence[int]]) -> Rows:
    """Return lists as rows."""
    kept = list(lists)
    begin = numbers(accumulate(map(len, kept), initial=0))
    items = np.fromiter(chain.from_iterable(kept), np.int64, count=int(begin[-1]))
    return Rows(begin, items)


def ranges_of(items: Ints, first: Ints, lengths: Ints) -> Rows:
    """Return, as rows, ranges of items that begin and are as long as given."""
    begin = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    places = np.arange(begin[-1]) + np.repeat(first - begin[:-1], lengths)
    return Rows(begin, items[places])


def rows_from_pairs(owners: Ints, items: Ints, count: int) -> Rows:
    """Return the items of each of ``count`` owners, in the order given."""
    order = np.argsort(owners, kind="stable")
    begin = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=begin[1:])
    return Rows(begin, items[order])


def owners_of(rows: Rows) -> Ints:
    """Return the owner of each item."""
    return np.repeat(np.arange(rows.begin.size - 1), np.diff(rows.begin))


def inverted(rows: Rows, count: int) -> Rows:
    """Return for each of ``count`` items whose lists hold it."""
    return rows_from_pairs(rows.items, owners_of(rows), count)


def numbered(names: Iterable[Hashable]) -> Ints:
    """Return a number for each name: equal names the same, in the order in which they come."""
    known: dict[Hashable, int] = {}
    return numbers(known.setdefault(name, len(known)) for name in names)
