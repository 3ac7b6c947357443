"""Running a benchmark: row by row, each solver in a process of its own."""

import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import spmilp
from spmilp.bench.best_known import keep_best, read_best
from spmilp.bench.child import Conversation, MakeRequest, RunRequest, Workers
from spmilp.bench.folder import write_tables
from spmilp.bench.make import ProblemStatistics, files_behind
from spmilp.bench.records import Key, Record, Records, Setting, appending, attribution_from
from spmilp.bench.suite import Row
from spmilp.code_cache import hash_of_sources
from spmilp.comparison.run import Moment
from spmilp.errors import SpmilpError
from spmilp.files import sha256_of, write_atomically
from spmilp.solvers.base import SolveOptions

PROBLEMS = "problems.json"
"""Remembers the statistics of problems, so that a resumed benchmark need not make them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSettings:
    """Settings for running the rows.

    Parameters
    ----------
    folder
        Where records and tables are.
    data
        The folder for problems that are made from data.
    jobs
        Rows that run at one time; with more than one, they disturb each other's clocks.
    again
        Repeat runs that are recorded already.
    keep_problems
        Write ``problems/ROW.json``.
    attribute
        Have each plan analysed; recorded runs whose plans were not are repeated.
    best_known
        Split gaps by what this file knows.
    keep_best
        Put better makespans into this file after each run.
    """

    folder: Path
    data: Path | None = None
    jobs: int = 1
    again: bool = False
    keep_problems: bool = False
    attribute: bool = False
    best_known: Path | None = None
    keep_best: Path | None = None


def run_rows(
    rows: Sequence[Row], settings: BenchSettings, report: Callable[[str], None] = lambda text: None
) -> Records:
    """Run what is not recorded yet; records and tables are written after each run.

    Parameters
    ----------
    report
        Called with a line for each step.

    Raises
    ------
    KeyboardInterrupt
        After all workers have been ended; completed runs are in the folder.
    SpmilpError
        If the folder cannot be used.
    """
    with appending(settings.folder) as file, tempfile.TemporaryDirectory() as scratch:
        benchmark = _Benchmark(settings, Path(scratch), file, report)
        benchmark.write()
        with ThreadPoolExecutor(settings.jobs) as pool, benchmark.ended_on_error():
            for done in [pool.submit(benchmark.run_row, row) for row in rows]:
                done.result()
        return benchmark.records


class _Benchmark:
    def __init__(
        self, settings: BenchSettings, scratch: Path, file: IO[str], report: Callable[[str], None]
    ) -> None:
        self.records = Records(settings.folder)
        self._settings = settings
        self._scratch = scratch
        self._file = file
        self._report = report
        self._workers = Workers(scratch)
        self._lock = threading.Lock()
        self._statistics = _known_statistics(settings.folder)
        self._problems = 0

    def write(self) -> None:
        """Keep what is better than what is known, and write the tables."""
        kept, known = self._settings.keep_best, self._settings.best_known
        if kept is not None:
            for contradiction in keep_best(kept, self.records):
                self._report(contradiction)
        write_tables(self.records, None if known is None else read_best(known))

    @contextmanager
    def ended_on_error(self) -> Iterator[None]:
        """End the workers when something is raised, so that no thread waits for them."""
        try:
            yield
        except BaseException:
            self._workers.end_all()
            raise

    def run_row(self, row: Row) -> None:
        """Make the problem of a row unless all its runs are recorded, and run what is missing."""
        key = self._key_of_statistics(row)
        statistics = self._statistics.get(key) if key else None
        if statistics is not None and not list(self._missing(row, statistics)):
            return
        self._report(f"{row.name}: making the problem")
        with self._lock:
            self._problems += 1
            pickled = self._scratch / f"problem{self._problems}"
        made = self._workers.ask(self._request_for(row, pickled))
        if made.outcome is None:
            self._note_all(row, made)
            return
        statistics = ProblemStatistics(**made.outcome["statistics"])
        self._remember(key, statistics)
        for solver, seed in self._missing(row, statistics):
            self._report(f"{row.name}: {solver}" + (f", seed {seed}" if len(row.seeds) > 1 else ""))
            request = _run_request(row, statistics, pickled, solver, seed)
            request = replace(request, attribute=self._settings.attribute)
            conversation = self._workers.ask(request)
            self._note(_record(row, statistics, solver, seed, conversation))
        pickled.unlink(missing_ok=True)

    def _missing(self, row: Row, statistics: ProblemStatistics) -> Iterator[tuple[str, int]]:
        for solver in row.solvers:
            for seed in row.seeds:
                key: Key = (row.name, solver, seed)
                is_there = self.records.has(
                    key, _setting(row, statistics), attributed=self._settings.attribute
                )
                if self._settings.again or not is_there:
                    yield solver, seed

    def _request_for(self, row: Row, pickled: Path) -> MakeRequest:
        folder = self._settings.folder / "problems"
        return MakeRequest(
            source=row.source,
            objective=row.objective,
            data=self._settings.data,
            pickled=pickled,
            written=folder / f"{row.name}.json" if self._settings.keep_problems else None,
        )

    def _note_all(self, row: Row, made: Conversation) -> None:
        """Record for each run of a row that its problem could not be made."""
        if made.status != "skipped":
            made.reason, made.status = f"{made.status}: {made.reason}", "not made"
        for solver in row.solvers:
            for seed in row.seeds:
                self._note(_record(row, None, solver, seed, made))

    def _note(self, record: Record) -> None:
        with self._lock:
            self.records.add(record, self._file)
            self.write()

    def _key_of_statistics(self, row: Row) -> str | None:
        """Return a hash of all that a row's statistics depend on; ``None`` if it is not known."""
        hashes = files_behind(row.source)
        if hashes is None or self._settings.keep_problems:
            return None
        try:
            parts = [repr(row.source), repr(row.objective), version(), *hashes()]
        except SpmilpError:
            # The file is not there: making the problem will report it.
            return None
        return sha256_of("\n".join(parts).encode())

    def _remember(self, key: str | None, statistics: ProblemStatistics) -> None:
        if key is None:
            return
        with self._lock:
            self._statistics[key] = statistics
            known = {each: asdict(found) for each, found in sorted(self._statistics.items())}
            write_atomically(self._settings.folder / PROBLEMS, json.dumps(known, indent=1) + "\n")


def _run_request(
    row: Row, statistics: ProblemStatistics, pickled: Path, solver: str, seed: int
) -> RunRequest:
    return RunRequest(
        instance=row.name,
        source=row.source,
        objective=row.objective,
        pickled=pickled,
        problem_sha256=statistics.problem_sha256,
        solver=solver,
        options=SolveOptions(
            time_limit=row.time_limit, gap=row.gap, seed=seed, workers=row.workers
        ),
    )


def _setting(row: Row, statistics: ProblemStatistics | None) -> Setting:
    return Setting(
        row_sha256="" if statistics is None else statistics.problem_sha256,
        version=version(),
        time_limit=row.time_limit,
        workers=row.workers,
        gap=row.gap,
    )


def _record(
    row: Row,
    statistics: ProblemStatistics | None,
    solver: str,
    seed: int,
    conversation: Conversation,
) -> Record:
    """Return the record of a run from the messages of its worker."""
    common: dict[str, Any] = {
        "instance": row.name,
        "solver": solver,
        "seed": seed,
        "setting": _setting(row, statistics),
        "described": row.described,
    }
    if row.peer is not None:
        peer = row.peer
        common |= {"peer": peer.name, "peer_objective": peer.value, "peer_source": peer.source}
    if conversation.outcome is None or statistics is None:
        return Record(
            statistics=statistics,
            status=conversation.status,
            reason=conversation.reason,
            history=tuple(conversation.history),
            **common,
        )
    outcome = dict(conversation.outcome)
    own = replace(statistics, **outcome.pop("own"))
    history = tuple(Moment(**moment) for moment in outcome.pop("history"))
    attribution = attribution_from(outcome.pop("attribution", None))
    return Record(statistics=own, history=history, attribution=attribution, **common, **outcome)


def _known_statistics(folder: Path) -> dict[str, ProblemStatistics]:
    """Return the statistics that a folder remembers; none where the file is of another version."""
    try:
        known = json.loads((folder / PROBLEMS).read_bytes())
        return {key: ProblemStatistics(**statistics) for key, statistics in known.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


ROOTS = ("bench/make.py", "registry.py", "checker/check.py", "tile_selection/choose.py")
"""From these files, imports lead to all code that problems, plans and verdicts depend on."""


@cache
def version() -> str:
    """Return the version, and a hash of the sources, the compiler and the processor.

    Figures with the same version can be compared with each other; a figure of another one is
    measured again when a benchmark is resumed.
    """
    folder = Path(spmilp.__file__).parent
    hashes = [hash_of_sources(folder / root) for root in ROOTS]
    return f"{spmilp.__version__}+{sha256(''.join(hashes).encode()).hexdigest()[:12]}"
