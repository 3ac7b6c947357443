"""One point in another process: what it is asked, and what it answers."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spmilp.bench.child import Workers
from spmilp.plan.write import PLAN_FILE, PROBLEM_FILE
from spmilp.sizing.grid import Point, code_version
from spmilp.units import Bytes

COMMAND = (sys.executable, "-m", "spmilp.sizing.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRequest:
    """Solve one point.

    Parameters
    ----------
    start
        ``problem.json`` and ``plan.json`` of another machine, to begin with.
    improve
        Search for a better plan than the start, and not only check it on this machine.
    memory
        Bytes that the process may use, where the point has no limit of its own.
    version
        Of the code that asks: that which answers must be the same.
    folder
        Private to the process.
    """

    point: Point
    start: Mapping[str, bytes] | None = None
    improve: bool = True
    memory: Bytes | None = None
    version: str = field(default_factory=code_version)
    folder: Path = Path()

    @property
    def time_limit(self) -> float | None:
        """Wall seconds of the solve."""
        return self.point.options.time_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a point ended.

    Parameters
    ----------
    status
        The solver's, or how the process ended without an answer.
    figures
        Fields of :class:`~spmilp.sizing.store.Row`.
    files
        ``problem.json`` and ``plan.json``; empty without a plan.
    """

    status: str
    reason: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


def workers_in(folder: Path) -> Workers:
    """Return processes for points; one that was quick with a point gets the next one."""
    return Workers(folder, COMMAND, reuse=True)


def answer_to(request: PointRequest, workers: Workers) -> Answer:
    """Solve a point in a process of its own; a crash or a time-out becomes a status."""
    with TemporaryDirectory(prefix="spmilp-sweep-") as scratch:
        folder = Path(scratch)
        asked = workers.ask(replace(request, folder=folder))
        if asked.outcome is None:
            return Answer(status=asked.status, reason=asked.reason)
        files = {name: folder / name for name in (PROBLEM_FILE, PLAN_FILE)}
        return Answer(
            status=asked.outcome.pop("status"),
            reason=asked.outcome.pop("reason"),
            figures=asked.outcome,
            files={name: file.read_bytes() for name, file in files.items() if file.exists()},
        )
