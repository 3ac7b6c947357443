"""Printing: tables and JSON on stdout, progress and errors on stderr."""

import json
import math
import sys
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    import pandas as pd

PLAIN_WIDTH = 150
"""Columns when the output is no terminal."""


def console(*, stderr: bool = False) -> Console:
    """Return where to print; colours only on a terminal, and never under ``NO_COLOR``."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, emoji=False)


def print_json(value: object) -> None:
    """Print one JSON object on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def records(frame: "pd.DataFrame") -> list[dict[str, object]]:
    """Return the rows of a table as JSON knows them: what is missing is ``None``."""
    rows = frame.astype(object).where(frame.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


def finite(value: float) -> float | None:
    """Return a number as JSON knows it: ``None`` for infinity, which it does not."""
    return value if math.isfinite(value) else None


def print_error(message: str) -> None:
    """Print one message on stderr."""
    console(stderr=True).print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)


def print_warning(message: str) -> None:
    """Print one message on stderr about something that need not be wrong."""
    console(stderr=True).print(f"[yellow]warning:[/] {escape(message)}", soft_wrap=True)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Container[int] = (),
    show_headings: bool = True,
) -> Table:
    """Return a table; the columns at the positions ``numbers`` are set flush right."""
    made = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="bold",
        show_header=show_headings,
    )
    for position, heading in enumerate(headings):
        flush_right = position in numbers
        made.add_column(heading, justify="right" if flush_right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(escape(cell) for cell in row))
    return made
