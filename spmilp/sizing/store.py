"""The rows of a sweep in a folder: each is durable as soon as it is finished."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from spmilp.errors import FileError
from spmilp.files import read_together, write_together
from spmilp.plan.write import PLAN_FILE, PROBLEM_FILE
from spmilp.sizing.grid import Point
from spmilp.sizing.process import Answer
from spmilp.sizing.values import plain
from spmilp.solvers.base import SolveStatus

ROWS = "rows"
ROW_FILE = "row.json"
FINAL = frozenset(map(str, SolveStatus))
"""Statuses of points that were solved; others are tried again when a sweep is resumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The result of one point.

    Parameters
    ----------
    key
        The point's.
    status
        The solver's, ``rejected`` (by the checker), or how its process ended.
    objective
        Of the accepted plan; ``None`` without one, as the other quantities.
    bound
        No plan with these tiles has less; ``roofline``: no plan with any tiles.
    seconds
        Wall time of the solve.
    handed_on
        The key of the point whose plan this one began with; empty for none.
    """

    key: str
    status: str
    reason: str = ""
    objective: int | None = None
    bound: int | None = None
    bound_source: str = ""
    roofline: int | None = None
    makespan: int | None = None
    dram_traffic: int | None = None
    energy: int | None = None
    peak_spm: int | None = None
    tasks: int | None = None
    cores: int | None = None
    seconds: float | None = None
    handed_on: str = ""

    @classmethod
    def of(cls, key: str, answer: Answer) -> "Row":
        """Return the row of an answer."""
        return cls(key=key, status=answer.status, reason=answer.reason, **answer.figures)

    @property
    def is_final(self) -> bool:
        """Whether the point was solved, with a plan or without."""
        return self.status in FINAL


class Store:
    """Rows by key, with their problems and plans, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def folder_of(self, key: str) -> Path:
        """Return where ``row.json``, and with a plan ``problem.json`` and ``plan.json``, are."""
        return self.folder / ROWS / key

    def find(self, key: str) -> Row | None:
        """Return the row of a point that was solved; ``None`` if it is to be solved yet."""
        path = self.folder_of(key) / ROW_FILE
        try:
            (data,) = read_together([path])
            given: dict[str, Any] = json.loads(data)
            known = {field.name for field in fields(Row)}
            row = Row(**{name: value for name, value in given.items() if name in known})
        except (FileError, ValueError, TypeError, AttributeError, RecursionError):
            return None
        return row if row.is_final and row.key == key else None

    def keep(self, point: Point, row: Row, files: Mapping[str, bytes]) -> None:
        """Write a row with its plan, all of it or nothing; it is on the disk when this returns.

        Raises
        ------
        FileError
            If the folder cannot be written.
        """
        described = {
            "model": point.model,
            "model_sha256": point.model_sha256,
            "dim": dict(point.dim),
            "machine": point.base,
            "machine_sha256": point.machine.sha256,
            "values": {name: plain(value) for name, value in point.values},
            "options": asdict(point.options),
        }
        text = json.dumps(asdict(row) | described, indent=1, allow_nan=False) + "\n"
        write_together(self.folder_of(row.key), {ROW_FILE: text, **files})

    def pair_of(self, key: str) -> dict[str, bytes]:
        """Return ``problem.json`` and ``plan.json`` of a row that has a plan.

        Raises
        ------
        FileError
            If they cannot be read.
        """
        names = (PROBLEM_FILE, PLAN_FILE)
        found = read_together([self.folder_of(key) / name for name in names])
        return dict(zip(names, found, strict=True))
