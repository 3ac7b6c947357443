"""Printing: tables and JSON on stdout, progress and errors on stderr."""

import io
import json
import math
import os
import sys
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.text import Text

if TYPE_CHECKING:
    import pandas as pd

    from spmilp.report.search_log import LogEntry

PLAIN_WIDTH = 150
"""Columns when the output is no terminal."""

SHORTEST_PART = 8
"""Columns of a table that words are not broken into less than."""

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
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for good
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


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


def records(frame: "pd.DataFrame") -> list[dict[str, Any]]:
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


def print_log(text: str) -> None:
    """Print one line on stderr about what goes on."""
    with suppress(OSError):
        console(stderr=True).print(styled(text), soft_wrap=True)


def say(text: str) -> None:
    """Say what goes on, where stderr is a terminal."""
    if sys.stderr.isatty():
        print_log(text)


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Container[int] = ()
) -> Text:
    """Return a table as text; columns at the positions ``numbers`` are flush right.

    Where it is wider than the terminal, the widest columns are broken between words, and where that
    is not enough, within long ones; numbers never are.
    """
    every = [[*headings], *([visible(cell) for cell in row] for row in rows)]
    widths, whole, least = [], [], []
    for at, (heading, *cells) in enumerate(zip(*every, strict=True)):
        unbroken = cells if at in numbers else " ".join(cells).split()
        whole.append(max(map(len, [*unbroken, *heading.split()]), default=0))
        least.append(whole[at] if at in numbers else min(whole[at], SHORTEST_PART))
        widths.append(max(map(len, [heading, *cells])))
    room, apart = console().width, 2
    for limits in (whole, least):
        while sum(widths) + apart * (len(widths) - 1) > room:
            able = [at for at, width in enumerate(widths) if width > limits[at]]
            if not able:
                apart = 1
                break
            widths[max(able, key=widths.__getitem__)] -= 1
    lines = []
    for number, row in enumerate(every):
        parts = [wrap(cell, max(1, width)) for cell, width in zip(row, widths, strict=True)]
        height = max(map(len, parts), default=0)
        for line in range(height):
            texts = []
            for at, (part, width) in enumerate(zip(parts, widths, strict=True)):
                # Headings stand at the bottom.
                own = line if number else line - height + len(part)
                text = part[own] if 0 <= own < len(part) else ""
                texts.append(text.rjust(width) if at in numbers else text.ljust(width))
            joined = (" " * apart).join(texts).rstrip()
            lines.append(Text(joined, "" if number else "bold"))
    return Text("\n").join(lines)


def table_of(rows: Iterable[Mapping[str, Any]], formats: Mapping[str, str]) -> Text:
    """Return fields of records as columns; each has a format, empty for what is no number.

    What is missing is a dash.
    """
    cells = [
        ["–" if row[name] is None else format(row[name], form) for name, form in formats.items()]
        for row in rows
    ]
    numbers = {at for at, form in enumerate(formats.values()) if form}
    return table([name.replace("_", " ") for name in formats], cells, numbers=numbers)


class SolveLog:
    """Prints a log on stderr, and keeps it as JSON; times count from the command's start."""

    def __init__(self, started: float, *, shows: bool) -> None:
        self._started = started
        self._shows = shows
        self.lines: list[str] = []

    def stage(self, name: str) -> None:
        """Say which stage begins."""
        self._add(name, {"event": "stage", "seconds": self._seconds(), "stage": name})

    def entry(self, entry: "LogEntry") -> None:
        """Show what has become better."""
        timed = replace(entry, seconds=self._seconds())
        self._add(timed.as_row(), timed.as_fields())

    def end(self, status: str, entry: "LogEntry | None") -> None:
        """Say how it has ended."""
        known = {name: getattr(entry, name, None) for name in ("incumbent", "bound", "gap")}
        fields = {"event": "end", "seconds": self._seconds(), "status": status, **known}
        self._add(status, fields)

    def _seconds(self) -> float:
        return round(time.perf_counter() - self._started, 3)

    def _add(self, text: str, fields: dict[str, Any]) -> None:
        if self._shows:
            from spmilp.report.search_log import HEADING

            if not self.lines:
                print_log(HEADING)
            is_row = fields["event"] == "progress"
            print_log(text if is_row else f"{fields['seconds']:>7.1f}s  {text}")
        self.lines.append(json.dumps(fields))
