"""Requests to a worker process."""

from dataclasses import dataclass
from pathlib import Path

from spmilp.bench.suite import Source
from spmilp.problem.objective import Quantity
from spmilp.solvers.base import SolveOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeRequest:
    """Make the problem of a row.

    Parameters
    ----------
    data
        The folder for problems that are made from data.
    pickled
        Where to leave the problem for the runs.
    written
        Where to write it as ``problem.json``, if it is wanted.
    """

    source: Source
    objective: Quantity | None
    data: Path | None
    pickled: Path
    written: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Run one solver on the problem of a row."""

    instance: str
    source: Source
    objective: Quantity | None
    pickled: Path
    problem_sha256: str
    solver: str
    options: SolveOptions
