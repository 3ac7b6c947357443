"""Tables with more columns than a terminal holds: cut, and set below each other."""

from collections.abc import Container, Sequence

from rich.cells import cell_len
from rich.console import Console

from spmilp.cli import output as out

BETWEEN = 2
"""Columns of the terminal between those of a table."""

NARROWEST_NAME = 24
"""Texts that are longer may be folded; numbers never are."""


def print_stacked(
    to: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Container[int],
    keys: int = 1,
) -> None:
    """Print a table; where it is too wide, several that all begin with the first ``keys`` columns.

    Parameters
    ----------
    numbers
        Positions of the columns that hold numbers.
    """
    for place, columns in enumerate(_that_fit(headings, rows, numbers, keys, to.width)):
        if place:
            to.print()
        to.print(
            out.table(
                [headings[column] for column in columns],
                [[row[column] for column in columns] for row in rows],
                numbers={at for at, column in enumerate(columns) if column in numbers},
            )
        )


def _that_fit(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Container[int],
    keys: int,
    width: int,
) -> list[list[int]]:
    """Return the columns of each of the tables: as many as fit, and one at least."""

    def needed(column: int) -> int:
        widest = max(cell_len(text) for text in (headings[column], *(row[column] for row in rows)))
        return BETWEEN + (widest if column in numbers else min(widest, NARROWEST_NAME))

    first = list(range(keys))
    tables = [first]
    room = width - sum(map(needed, first))
    left = room
    for column in range(keys, len(headings)):
        if needed(column) > left and len(tables[-1]) > keys:
            tables.append(list(first))
            left = room
        left -= needed(column)
        tables[-1] = [*tables[-1], column]
    return tables
