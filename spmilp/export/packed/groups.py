"""Groups of holes that are filled together: few different rows, each kept once in a table."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

GROUP_BITS = 2
MOST_GROUPS = (1 << GROUP_BITS) - 1
"""``SPMILP_PACKED_GROUPS`` of the sources."""

_HEAD = 40
"""Bits that a group takes besides its table, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Some columns, and the different rows that they have.

    Parameters
    ----------
    rows
        What fills the holes, of ``widths`` bits each.
    row_of
        For each member of the template the number of its row.
    """

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    row_of: tuple[int, ...]

    @property
    def index_bits(self) -> int:
        """Bits of a row's number."""
        return _index_bits(len(self.rows))


def groups_of(raws: Ints, holes: Mapping[int, int]) -> list[Group]:
    """Return groups of columns that take fewer bits in a table than in each row.

    Parameters
    ----------
    raws
        A row for each member, a column for each field.
    holes
        Bits of the columns that may be in a group.
    """
    left, found = dict(holes), list[Group]()
    while left and len(found) < MOST_GROUPS:
        chosen = _best_columns(raws, left)
        if not chosen:
            break
        widths = tuple(left.pop(column) for column in chosen)
        rows, row_of = np.unique(raws[:, chosen], axis=0, return_inverse=True)
        found.append(
            Group(
                columns=tuple(chosen),
                widths=widths,
                rows=tuple(map(tuple, rows.tolist())),
                row_of=tuple(row_of.reshape(-1).tolist()),
            )
        )
    return found


def _best_columns(raws: Ints, holes: Mapping[int, int]) -> list[int]:
    """Return columns, added one after the other, up to where most bits are saved; in order."""
    columns = {at: np.unique(raws[:, at], return_inverse=True)[1].reshape(-1) for at in holes}
    labels = np.zeros(len(raws), np.int64)
    chosen: list[int] = []
    best, best_columns = 0, list[int]()
    while len(chosen) < len(holes):
        width = sum(holes[at] for at in chosen)
        tried = []
        for at in columns.keys() - set(chosen):
            rows = len(np.unique(labels * len(raws) + columns[at]))
            tried.append((_saved(len(raws), rows, width + holes[at]), -at))
        saved, at = max(tried)
        chosen.append(-at)
        labels = np.unique(labels * len(raws) + columns[-at], return_inverse=True)[1].reshape(-1)
        if saved > best:
            best, best_columns = saved, sorted(chosen)
    return best_columns


def _saved(members: int, rows: int, width: int) -> int:
    """Return the bits that a table of some rows saves."""
    return (members - rows) * width - members * _index_bits(rows) - _HEAD


def _index_bits(rows: int) -> int:
    return (rows - 1).bit_length()
