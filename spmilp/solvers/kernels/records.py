"""Array types that compiled code works on.

A table is an array of records: ``table[i].field`` is what compiled code reads and writes, and
``table["field"]`` a whole column for Python. Missing references are ``NONE``.

Constants are NumPy numbers, because compiled code tells the types of 1, of True and of an entry of
a table apart and compiles a function anew for each.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Table: TypeAlias = NDArray[Any]

NONE = cast(int, np.int64(-1))
SET_ASIDE = cast(int, np.int64(-2))
ZERO = cast(int, np.int64(0))
ONE = cast(int, np.int64(1))
NEVER = cast(int, np.int64(2**62))
NO_LIMIT = NEVER
YES = cast(bool, np.bool_(True))
NO = cast(bool, np.bool_(False))


def table(rows: int, *fields: str) -> Table:
    """Return a table of zeros with 64-bit integer ``fields``."""
    return tables((rows,), *fields)


def tables(shape: tuple[int, ...], *fields: str) -> Table:
    """Return an array of zeros of any shape with 64-bit integer ``fields``."""
    kind = np.dtype([(field, np.int64) for field in fields])
    return np.zeros(shape, kind).view(np.recarray)


def numbers(values: Iterable[int]) -> Ints:
    """Return an array of 64-bit integers."""
    return np.fromiter(values, np.int64)


def flatten(lists: Iterable[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return where each list begins (one entry more than lists), and all items in a row."""
    kept = list(lists)
    begin = list(accumulate((len(some) for some in kept), initial=0))
    return numbers(begin), numbers(item for some in kept for item in some)
