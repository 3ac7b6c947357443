"""Making and turning round lists of numbers."""

from collections.abc import Iterable, Sequence

import numpy as np

from spmilp.solvers.kernels.records import Ints, flatten
from spmilp.solvers.lns.draft import Rows


def rows_of(lists: Iterable[Sequence[int]]) -> Rows:
    """Return lists as rows."""
    return Rows(*flatten(lists))


def rows_from_pairs(owners: Ints, items: Ints, count: int) -> Rows:
    """Return the items of each of ``count`` owners, in the order given."""
    order = np.argsort(owners, kind="stable")
    begin = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=begin[1:])
    return Rows(begin, items[order])


def owners_of(rows: Rows) -> Ints:
    """Return the owner of each item."""
    return np.repeat(np.arange(rows.begin.size - 1), np.diff(rows.begin))


def turned_round(rows: Rows, count: int) -> Rows:
    """Return for each of ``count`` items whose lists hold it."""
    return rows_from_pairs(rows.items, owners_of(rows), count)
