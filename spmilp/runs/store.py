"""The rows of a folder: a line each, durable as soon as a run has ended, with plans beside them."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spmilp.errors import FileError
from spmilp.files import read_bytes, write_together
from spmilp.plan.file import PLAN_FILE, PROBLEM_FILE
from spmilp.runs.jobs import Answer
from spmilp.runs.run import Run

LINES = "rows.jsonl"
ROWS = "rows"


class Store:
    """Rows by key; the last line of a key counts.

    Raises
    ------
    FileError
        If the folder has a file of rows that cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines = {line["key"]: line for line in self._read()}

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Yield what is kept of each row, in the order in which they came."""
        yield from self._lines.values()

    def folder_of(self, key: str) -> Path:
        """Return where ``problem.json`` and ``plan.json`` of a row with a plan are."""
        return self.folder / ROWS / key

    def find(self, key: str) -> Run | None:
        """Return the row of a job that was carried out; ``None`` if it is to be, or its plan is
        not there any more."""
        line = self._lines.get(key)
        if line is None:
            return None
        try:
            run = Run.read(line)
            there = all((self.folder_of(key) / name).exists() for name in line["files"])
        except (ValueError, TypeError, KeyError, AttributeError):
            return None
        return run if run.is_final and there else None

    def keep(self, answer: Answer, about: Mapping[str, object]) -> None:
        """Write a plan, then the row; both are on the disk when this returns.

        Parameters
        ----------
        about
            Columns that describe the job.

        Raises
        ------
        FileError
            If the folder cannot be written.
        """
        key, path = answer.run.key, self.folder / LINES
        if answer.files:
            write_together(self.folder_of(key), answer.files)
        line = {**asdict(answer.run), **about, "files": sorted(answer.files)}
        text = json.dumps(line, allow_nan=False)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with path.open("ab+") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - 1))
                if file.read(1) not in (b"", b"\n"):
                    file.write(b"\n")  # a kill has cut the last line off
                file.write(f"{text}\n".encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
        self._lines.pop(key, None)
        self._lines[key] = json.loads(text)

    def pair_of(self, key: str) -> dict[str, bytes]:
        """Return ``problem.json`` and ``plan.json`` of a row that has a plan.

        Raises
        ------
        FileError
            If they cannot be read.
        """
        names = (PROBLEM_FILE, PLAN_FILE)
        return {name: read_bytes(self.folder_of(key) / name) for name in names}

    def _read(self) -> Iterator[dict[str, Any]]:
        path = self.folder / LINES
        for text in read_bytes(path).split(b"\n") if path.exists() else ():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue  # cut off
            if isinstance(line, dict) and "key" in line:
                yield line
