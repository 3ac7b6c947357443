"""The log of ``spmilp solve``: a line for each better incumbent or bound, and for each stage."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TextIO

from spmilp.cli.output import OutputError, print_warning, visible
from spmilp.cli.valid_plan import LOG
from spmilp.errors import FileError
from spmilp.files import write_together
from spmilp.report.search_log import HEADING, LogEntry

JSON_ENDINGS = (".jsonl", ".ndjson")
"""Of log files that are to hold lines of JSON."""


@dataclass(frozen=True, slots=True)
class _Target:
    """Somewhere that lines go to, and what to do where they cannot."""

    is_json: bool
    write: Callable[[str], None]


class SolveLog:
    """Sends each line to all who want it, as text or as JSON.

    A line that cannot be written costs the lines behind it, never the search.
    """

    def __init__(self, started: float) -> None:
        self._started = started
        self._targets: list[_Target] = []
        self._send_heading = True

    def send_to(self, write: Callable[[str], None], *, is_json: bool) -> None:
        """Add somewhere that lines go to."""
        self._targets.append(_Target(is_json, write))

    def stage(self, name: str) -> None:
        """Say which stage begins."""
        seconds = self._seconds()
        self._send(
            f"{seconds:>7.1f}s  {name}",
            {"event": "stage", "seconds": seconds, "stage": name},
        )

    def entry(self, entry: LogEntry) -> None:
        """Show what has become better; times count from the start of the command."""
        timed = replace(entry, seconds=self._seconds())
        self._send(timed.as_row(), timed.as_fields())

    def end(self, status: str, entry: LogEntry | None) -> None:
        """Say how it has ended."""
        seconds = self._seconds()
        known: dict[str, object] = {"incumbent": None, "bound": None, "gap": None}
        if entry is not None:
            known = {"incumbent": entry.incumbent, "bound": entry.bound, "gap": entry.gap}
        fields: dict[str, object] = {"event": "end", "seconds": seconds, "status": status}
        self._send(f"{seconds:>7.1f}s  {status}", fields | known)

    def _seconds(self) -> float:
        return round(perf_counter() - self._started, 3)

    def _send(self, text: str, fields: dict[str, object]) -> None:
        if self._send_heading:
            self._send_heading = False
            text = f"{HEADING}\n{text}"
        for target in list(self._targets):
            try:
                target.write(json.dumps(fields) if target.is_json else visible(text))
            except (OSError, OutputError, ValueError) as error:
                self._targets.remove(target)
                if not isinstance(error, BrokenPipeError | OutputError):
                    print_warning(f"the log goes on no longer: {error}")


@contextmanager
def log_file(log: SolveLog, file: Path | None) -> Iterator[None]:
    """Send the log to a file, too, for as long as the block runs.

    Raises
    ------
    FileError
        If the file cannot be made.
    """
    if file is None:
        yield
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        opened = file.open("w", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise FileError(f"{file}: the log cannot be written: {error.strerror}") from error
    log.send_to(_line_writer(opened), is_json=file.suffix in JSON_ENDINGS)
    try:
        yield
    finally:
        with suppress(OSError):
            opened.close()


def keep_beside_plan(lines: Sequence[str], folder: Path) -> None:
    """Write the lines of a log beside a plan, where reports and plots look for them.

    Times are those of this run: nothing else in the folder tells one run from another. A plan is
    worth more than its log, so that one which cannot be written is a warning.
    """
    try:
        write_together(folder, {LOG: "".join(f"{line}\n" for line in lines)})
    except FileError as error:
        print_warning(f"the log is not kept: {error}")


def send_to_output(log: SolveLog) -> None:
    """Send the log to standard output as lines of JSON."""
    log.send_to(_line_writer(sys.stdout), is_json=True)


def _line_writer(stream: TextIO) -> Callable[[str], None]:
    def write(line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    return write
