"""Printing: tables and JSON on stdout, progress and errors on stderr."""

import io
import json
import math
import os
import sys
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from spmilp.errors import SpmilpError
from spmilp.quantities import percent, relative_gap

if TYPE_CHECKING:
    import pandas as pd

    from spmilp.solvers.base import Progress


PLAIN_WIDTH = 150
"""Columns when the output is no terminal."""


_CONTROLS = (*range(32), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SHOWN = {code: f"\\u{code:04x}" for code in _CONTROLS if chr(code) not in "\n\t"}


def visible(text: str) -> str:
    """Return text without characters that command a terminal; names in files may hold them."""
    return text.translate(_SHOWN)


class _PlainConsole(Console):
    """A console on which text from files is text."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text with its markup."""
        return super().render_str(visible(text), **options)

    def on_broken_pipe(self) -> None:
        """Say so; otherwise the library ends the process with a code of its own."""
        raise BrokenPipeError


def prepare_streams() -> None:
    """Make standard streams that can be used of those that are closed or know few letters."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The next file that is opened would get the number, and what libraries print.
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8")
    elif isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        sys.stdout = _Output(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8")
    elif sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        encoding, lines = sys.stdout.encoding, sys.stdout.line_buffering
        sys.stdout = _Output(
            sys.stdout.detach(), encoding, errors="backslashreplace", line_buffering=lines
        )


class OutputError(SpmilpError):
    """Standard output does not take what is printed."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output: cannot be written: {error.strerror}")


class _Output(io.TextIOWrapper):
    """Standard output whose errors are told from those of files."""

    def write(self, text: str) -> int:
        """Write text."""
        with _told_from_others():
            return super().write(text)

    def flush(self) -> None:
        """Write what is kept back."""
        with _told_from_others():
            super().flush()


@contextmanager
def _told_from_others() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error) from error


def discard_output() -> None:
    """Print to nowhere from now on, what has not been taken yet included."""
    with suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def console(*, stderr: bool = False) -> Console:
    """Return where to print; colours only on a terminal, and never under ``NO_COLOR``."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return _PlainConsole(stderr=stderr, width=width, highlight=False, emoji=False)


def styled(text: str, style: str = "") -> Text:
    """Return a line that is no markup."""
    return Text(visible(text), style)


def print_json(value: object) -> None:
    """Print one JSON object on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def print_json_line(value: object) -> None:
    """Print a JSON object as one line on stdout."""
    sys.stdout.write(json.dumps(value, allow_nan=False, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_answer(data: object, shown: Iterable[RenderableType], *, as_json: bool) -> None:
    """Print what a command has found: one JSON object, or tables and lines.

    A line is printed as it is, however long.
    """
    if as_json:
        print_json(data)
        return
    to = console()
    for each in shown:
        if isinstance(each, str):
            typer.echo(visible(each))
        else:
            to.print(each, soft_wrap=isinstance(each, Text))


def records(frame: "pd.DataFrame") -> list[dict[str, object]]:
    """Return the rows of a table as JSON knows them: what is missing is ``None``."""
    rows = frame.astype(object).where(frame.notna(), None)
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


def finite(value: float) -> float | None:
    """Return a number as JSON knows it: ``None`` for infinity, which it does not."""
    return value if math.isfinite(value) else None


def print_error(message: str) -> None:
    """Print one message on stderr."""
    with suppress(OSError):  # there may be nowhere to say it
        console(stderr=True).print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)


def print_warning(message: str) -> None:
    """Print one message on stderr about something that need not be wrong."""
    with suppress(OSError):
        console(stderr=True).print(f"[yellow]warning:[/] {escape(message)}", soft_wrap=True)


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers: Container[int] = (),
    show_headings: bool = True,
) -> Table:
    """Return a table; columns at the positions ``numbers`` are set flush right and never broken."""
    made = Table(
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
        header_style="bold",
        show_header=show_headings,
    )
    for position, heading in enumerate(headings):
        flush_right = position in numbers
        justify: JustifyMethod = "right" if flush_right else "left"
        made.add_column(heading, justify=justify, overflow="fold", no_wrap=flush_right)
    for row in rows:
        made.add_row(*(escape(cell) for cell in row))
    return made


BETWEEN = 2
"""Columns of the terminal between those of a table."""

NARROWEST_NAME = 24
"""Texts that are longer may be folded; numbers never are."""


@dataclass(frozen=True)
class Stacked:
    """A table; where it is too wide, several that all begin with the first ``keys`` columns.

    Parameters
    ----------
    numbers
        Positions of the columns that hold numbers.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Container[int]
    keys: int = 1

    def __rich_console__(self, to: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the tables that fit, with empty lines between them."""
        for place, columns in enumerate(self._that_fit(options.max_width)):
            if place:
                yield ""
            yield table(
                [self.headings[column] for column in columns],
                [[row[column] for column in columns] for row in self.rows],
                numbers={at for at, column in enumerate(columns) if column in self.numbers},
            )

    def _that_fit(self, width: int) -> list[list[int]]:
        """Return the columns of each of the tables: as many as fit, and one at least."""
        first = list(range(self.keys))
        tables = [first]
        room = left = width - sum(map(self._needed, first))
        for column in range(self.keys, len(self.headings)):
            if self._needed(column) > left and len(tables[-1]) > self.keys:
                tables.append(list(first))
                left = room
            left -= self._needed(column)
            tables[-1] = [*tables[-1], column]
        return tables

    def _needed(self, column: int) -> int:
        texts = (self.headings[column], *(row[column] for row in self.rows))
        widest = max(map(cell_len, texts))
        return BETWEEN + (widest if column in self.numbers else min(widest, NARROWEST_NAME))


class ProgressLine:
    """Says what the command does; silent unless stderr is a terminal."""

    def __init__(self) -> None:
        self._text = ""
        self._end = math.inf
        self._status = console(stderr=True).status(self) if sys.stderr.isatty() else None

    def __rich__(self) -> RenderableType:
        """Return the line as it is now; it is drawn several times a second."""
        left = self._end - time.perf_counter()
        if math.isinf(left):
            return Text(self._text)
        return Text(f"{self._text}, {max(0.0, left):.0f} s left")

    def say(self, text: str) -> None:
        """Replace the line."""
        self._text = visible(text)

    def ends_at(self, instant: float) -> None:
        """Show the seconds left until an instant of ``time.perf_counter``."""
        self._end = instant

    def print_above(self, text: str) -> None:
        """Print a line that stays, above the one that is replaced."""
        to = console(stderr=True) if self._status is None else self._status.console
        to.print(Text(visible(text)), soft_wrap=True)

    def starts(self, instance: str, solver: str) -> None:
        """Say which solver begins on which instance."""
        self.say(f"{instance}: {solver}")

    def better_tiles(self, value: int, tasks: int) -> None:
        """Show what the search for tile sizes has found."""
        self.say(f"choosing tiles: best {value:,} with {tasks:,} tasks")

    def improved(self, progress: "Progress") -> None:
        """Show a solver's incumbent, bound and gap."""
        incumbent = progress.incumbent
        if incumbent is None:
            self.say(f"solving: no plan yet, bound {progress.bound:,} ({progress.source})")
            return
        gap = percent(relative_gap(incumbent, progress.bound))
        self.say(
            f"solving: best {incumbent:,}, bound {progress.bound:,}, gap {gap} ({progress.source})"
        )


@contextmanager
def progress_line() -> Iterator[ProgressLine]:
    """Show a line of progress for as long as the block runs."""
    line = ProgressLine()
    if line._status is None:
        yield line
        return
    with line._status:
        yield line
