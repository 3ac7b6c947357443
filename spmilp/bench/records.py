"""Measurements of a benchmark, kept line by line in a file that survives a kill."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, TypeAlias

from spmilp.analysis.attribution import Attribution, PhaseUse
from spmilp.analysis.idle import Lack
from spmilp.analysis.subject import Part
from spmilp.analysis.traffic import Beyond, Excess
from spmilp.bench.make import ProblemStatistics
from spmilp.comparison.run import Moment
from spmilp.errors import FileError, SpmilpError
from spmilp.problem.problem import BufferKind

FILE = "records.jsonl"

Key: TypeAlias = tuple[str, str, int]
"""Row, solver and seed."""

AGAIN = frozenset({"skipped", "not made"})
"""Statuses of runs that have not taken place; a resumed benchmark tries them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Settings that a run depends on besides its row, solver and seed.

    Parameters
    ----------
    row_sha256
        Of the row's ``problem.json``; empty when there is none.
    version
        Of the code; see :func:`spmilp.bench.run.version`.
    """

    row_sha256: str
    version: str
    time_limit: float | None
    workers: int
    gap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run: its settings, its end and its figures.

    Parameters
    ----------
    described
        See :attr:`.suite.Row.described`.
    statistics
        Of the row's problem, but for the hash and the tasks of the one that was solved (``solve``
        has tiles of its own); ``None`` if none could be made.
    status
        The solver's status, ``rejected`` (by the checker), or another end.
    objective, transfers
        Of the accepted plan; ``None`` without one.
    busy, dram_ratio
        See :class:`~spmilp.comparison.run.Run`.
    bound
        The bound that the solver proved; ``None`` without one.
    seconds, cpu_seconds
        Of the solver alone.
    peak_bytes
        The most memory that the process had until the solver's answer.
    history
        See :class:`~spmilp.comparison.run.Run`.
    peer, peer_objective, peer_source
        Another tool, its figure for the same input, and where that comes from.
    reason
        Why there is no accepted plan.
    attribution
        Where the time and the traffic of the accepted plan go, where it was asked for.
    """

    instance: str
    solver: str
    seed: int
    setting: Setting
    described: dict[str, object]
    statistics: ProblemStatistics | None
    status: str
    objective: int | None = None
    bound: int | None = None
    bound_source: str = ""
    transfers: int | None = None
    busy: float | None = None
    dram_ratio: float | None = None
    violations: int = 0
    seconds: float | None = None
    cpu_seconds: float | None = None
    peak_bytes: int | None = None
    history: tuple[Moment, ...] = ()
    peer: str = ""
    peer_objective: int | None = None
    peer_source: str = ""
    reason: str = ""
    attribution: Attribution | None = None

    @property
    def key(self) -> Key:
        """Row, solver and seed: different for any two rows of a table."""
        return self.instance, self.solver, self.seed

    @property
    def took_place(self) -> bool:
        """Whether the solver was run."""
        return self.status not in AGAIN


class Records:
    """The records of a folder, the last one of each key, in the order in which they came."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._found: dict[Key, Record] = {}
        for record in read_records(folder):
            self._replace(record)

    def __iter__(self) -> Iterator[Record]:
        """Return the records."""
        return iter(self._found.values())

    def has(self, key: Key, setting: Setting, *, attributed: bool = False) -> bool:
        """Whether this has been run, in this setting; ``attributed``: its plan analysed, too."""
        known = self._found.get(key)
        if known is None or not known.took_place or known.setting != setting:
            return False
        return not attributed or known.objective is None or known.attribution is not None

    def add(self, record: Record, file: IO[str]) -> None:
        """Append one record; it is on the disk when this returns."""
        self._replace(record)
        file.write(json.dumps(asdict(record), allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())

    def _replace(self, record: Record) -> None:
        """Put the record behind all others, in the place of an older one of its key."""
        self._found.pop(record.key, None)
        self._found[record.key] = record


@contextmanager
def appending(folder: Path) -> Iterator[IO[str]]:
    """Open and lock the file of records, behind its last whole line.

    Raises
    ------
    SpmilpError
        If another benchmark writes there.
    FileError
        If the folder cannot be written.
    """
    path = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("a+", encoding="utf-8", newline="\n") as file:
            _lock(file, folder)
            whole = path.read_bytes().rpartition(b"\n")
            os.truncate(path, len(whole[0]) + len(whole[1]))
            yield file
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error


def read_records(folder: Path) -> Iterator[Record]:
    """Yield the records of a folder; a last line that was cut off by a kill is left out.

    Raises
    ------
    FileError
        If the file cannot be read or holds something else.
    """
    path = folder / FILE
    if not path.exists():
        return
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines[:-1], start=1):
        try:
            yield _record(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise FileError(
                f"{path}: line {number} is no record of this version of spmilp bench "
                f"({type(error).__name__}: {error}); remove the folder or give another one"
            ) from error


def _record(given: dict[str, Any]) -> Record:
    for old, new in (("course", "history"), ("facts", "statistics")):
        if old in given:  # as older folders call it
            given[new] = given.pop(old)
    unknown = set(given) - {field.name for field in fields(Record)}
    if unknown:
        raise ValueError(f"unknown field {sorted(unknown)[0]}")
    statistics = given["statistics"]
    nested = {
        "setting": Setting(**given["setting"]),
        "statistics": None if statistics is None else ProblemStatistics(**statistics),
        "history": tuple(Moment(**moment) for moment in given["history"]),
        "attribution": attribution_from(given.get("attribution")),
    }
    return Record(**{**given, **nested})


def attribution_from(given: Mapping[str, Any] | None) -> Attribution | None:
    """Return the attribution that a worker has sent, or a line of records has.

    Raises
    ------
    ValueError, TypeError, KeyError
        If it is none.
    """
    if given is None:
        return None
    phases = (
        {
            **each,
            "part": Part(each["part"]),
            "idle": {lack: each["idle"][lack.value] for lack in Lack},
        }
        for each in given["phases"]
    )
    excess = (
        {**each, "kind": Beyond(each["kind"]), "data": BufferKind(each["data"])}
        for each in given["excess"]
    )
    return Attribution(
        cores=given["cores"],
        phases=tuple(PhaseUse(**phase) for phase in phases),
        compulsory=given["compulsory"],
        excess=tuple(Excess(**each) for each in excess),
    )


def _lock(file: IO[str], folder: Path) -> None:
    """Refuse a folder that another process writes; where there are no locks, trust the user."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise SpmilpError(
            f"{folder}: another spmilp bench writes there; give another -o"
        ) from error
