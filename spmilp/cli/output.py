"""Printing: tables and JSON on stdout, progress and errors on stderr."""

import io
import json
import math
import os
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import typer
from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from spmilp.errors import SpmilpError

if TYPE_CHECKING:
    import pandas as pd

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


def print_line(text: str) -> None:
    """Print one line on stdout as it is, however long."""
    typer.echo(visible(text))


def print_json(value: object) -> None:
    """Print one JSON object on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def print_json_line(value: object) -> None:
    """Print a JSON object as one line on stdout."""
    sys.stdout.write(json.dumps(value, allow_nan=False, ensure_ascii=False) + "\n")
    sys.stdout.flush()


class Answer(Protocol):
    """What a command has found, for people and for programs."""

    def text(self) -> str:
        """Return it as lines."""

    def data(self) -> Mapping[str, object]:
        """Return it as a JSON object."""


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print what a command has found: its lines, or one JSON object."""
    if as_json:
        print_json(answer.data())
    else:
        print_line(answer.text())


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
