"""Solves as rows of a table: jobs, processes that carry them out, and a store of their answers."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec

import spmilp
from spmilp.errors import FileError
from spmilp.files import read_bytes, write_together
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.processes import ChildError, Children
from spmilp.report.search_log import LogEntry
from spmilp.result import Result
from spmilp.solvers.base import SolveStatus

REJECTED = "rejected"
"""The status of a run whose plan the checker does not accept."""

FINAL = frozenset(map(str, SolveStatus))
"""Statuses of runs that took place; others are tried again when work is resumed."""

LEAST_GRACE, SHARE_OF_GRACE = 30.0, 0.5
"""Seconds that a solver may go on after its time limit before it is ended, at least, and as a share
of the limit."""

LONGEST_AROUND = 1800.0
"""Seconds for what has no limit of its own: making the problem, checking and writing the plan."""

OF_RESULT = (
    *("reason", "objective", "bound", "bound_source", "makespan", "period", "dram_traffic"),
    *("energy", "peak_spm", "log"),
)
"""Figures of a row that a result has under the same names."""

LINES = "rows.jsonl"
ROWS = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One solver's run on one problem or network with one seed.

    Parameters
    ----------
    key
        Of the job that it is of; empty for one that was not stored.
    status
        The solver's; ``rejected`` when the checker does not accept its plan, for a ``reason``; or
        how its process ended: see :class:`~spmilp.processes.ChildError`.
    objective, bound
        Of the ``quantity`` that is made small: its value in the plan (``None`` without an accepted
        one, as its other figures), and the best bound that the solver proved.
    roofline
        Cycles that no plan with any tiles is below.
    dram_ratio
        Bytes to and from DRAM over those that no plan can avoid; ``None`` where these are none.
    seconds
        On the wall, without the check.
    warm_start
        The key of the run whose plan this one began with; empty for none.
    """

    key: str = ""
    instance: str
    solver: str
    seed: int
    status: str
    reason: str = ""
    quantity: str = ""
    objective: int | None = None
    bound: int | None = None
    bound_source: str = ""
    roofline: int | None = None
    makespan: int | None = None
    period: int | None = None
    dram_traffic: int | None = None
    energy: int | None = None
    peak_spm: int | None = None
    tasks: int | None = None
    cores: int | None = None
    transfers: int | None = None
    dram_ratio: float | None = None
    seconds: float | None = None
    log: tuple[LogEntry, ...] = ()
    warm_start: str = ""


def run_of(result: Result, *, instance: str, seed: int, key: str = "") -> Run:
    """Return the row of a solve."""
    problem, plan = result.problem, result.plan
    stream = None if plan is None else plan.stream
    compulsory = compulsory_dram_traffic(problem, stream)
    same = {name: getattr(result, name) for name in OF_RESULT}
    return Run(
        key=key,
        instance=instance,
        solver=result.asked,
        seed=seed,
        status=REJECTED if result.violations else str(result.status),
        quantity=str(problem.objective.first),
        tasks=len(problem.tasks),
        cores=len(problem.machine.cores),
        transfers=None if plan is None else len(plan.transfers),
        dram_ratio=plan.claim.dram_traffic / compulsory if plan and compulsory else None,
        seconds=None if result.seconds is None else result.seconds - result.seconds_to_check,
        **same,
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """The row of a job, and the files ``problem.json`` and ``plan.json`` where it has a plan."""

    run: Run
    files: Mapping[str, bytes] = field(default_factory=dict)


class Job(Protocol):
    """One solve, with all that it depends on: it is pickled and carried out elsewhere."""

    @property
    def key(self) -> str:
        """A hash of all that the result depends on."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def time_limit(self) -> float | None:
        """Wall seconds of the solver; ``None`` for no limit."""

    def carry_out(self) -> Answer:
        """Solve it, here; a ``SpmilpError`` says why it has failed."""

    def ended(self, status: str, reason: str) -> Run:
        """Return the row of the job when it has ended without a plan."""


Executor: TypeAlias = Callable[[Iterable[Job]], Iterator[Answer]]
"""Carries jobs out somewhere, and yields the answers as they come, in any order."""


@contextmanager
def processes(at_once: int = 1) -> Iterator[Executor]:
    """Give what carries jobs out in child processes, so many at one time; they end with it."""
    children, pool = Children(), ThreadPoolExecutor(at_once)

    def answers(jobs: Iterable[Job]) -> Iterator[Answer]:
        asked = [pool.submit(answer_of, job, children) for job in jobs]
        return (done.result() for done in as_completed(asked))

    try:
        yield answers
    finally:
        children.end()
        pool.shutdown(wait=False, cancel_futures=True)


def answer_of(job: Job, children: Children) -> Answer:
    """Carry a job out in a child; a crash, an error or a time-out becomes a status."""
    limit = job.time_limit
    if limit is not None:
        limit += max(LEAST_GRACE, SHARE_OF_GRACE * limit) + LONGEST_AROUND
    try:
        answer: Answer = children.call(type(job).carry_out, job, limit=limit)
    except ChildError as error:
        return Answer(job.ended(error.status, str(error)))
    return answer


@cache
def code_version() -> str:
    """Return the version, and a hash of all sources of the package, the same on any computer."""
    folder, found = Path(spmilp.__file__).parent, sha256()
    for file in sorted((*folder.rglob("*.py"), *folder.rglob("*.pxd"))):
        found.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    return f"{spmilp.__version__}+{found.hexdigest()[:12]}"


class Store:
    """The rows of a folder by key: a line each, durable as soon as a run has ended.

    Plans lie beside them. The last line of a key counts.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines: dict[str, Mapping[str, Any]] = {}
        path = folder / LINES
        content = read_bytes(path) if path.exists() else b""
        self._is_cut = bool(content) and not content.endswith(b"\n")
        for text in content.splitlines():
            with suppress(ValueError, TypeError, KeyError):  # a kill has cut it off
                line = json.loads(text)
                self._lines[line["key"]] = line

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Yield what is kept of each row."""
        yield from self._lines.values()

    def folder_of(self, key: str) -> Path:
        """Return where ``problem.json`` and ``plan.json`` of a row with a plan are."""
        return self.folder / ROWS / key

    def find(self, key: str) -> Run | None:
        """Return the row of a job that was carried out; ``None`` if it is to be."""
        with suppress(ValueError, KeyError):
            run = msgspec.convert(self._lines[key], Run)
            return run if run.status in FINAL else None
        return None

    def keep(self, answer: Answer, about: Mapping[str, object] | None = None) -> None:
        """Write a plan, then the row with more ``about`` the job; a ``FileError`` if that fails.

        Both are on the disk when this returns.
        """
        path = self.folder / LINES
        if answer.files:
            write_together(self.folder_of(answer.run.key), answer.files)
        line = {**msgspec.to_builtins(answer.run), **(about or {})}
        text = json.dumps(line, allow_nan=False)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write("\n" * self._is_cut + f"{text}\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
        self._is_cut = False
        self._lines[answer.run.key] = line
