"""Worker processes: requests to them, their messages, and the status with which they end."""

import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, TypeAlias

from spmilp.bench.suite import Source
from spmilp.comparison.run import Moment
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

    @property
    def time_limit(self) -> float | None:
        """None: making a problem has no limit of its own."""
        return None


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

    @property
    def time_limit(self) -> float | None:
        """Wall seconds of the solver."""
        return self.options.time_limit


class Request(Protocol):
    """Something that a worker can be asked; it is pickled."""

    @property
    def time_limit(self) -> float | None:
        """Wall seconds from the worker's message ``started`` on; ``None`` for no limit."""


Worker: TypeAlias = "subprocess.Popen[bytes]"

COMMAND = (sys.executable, "-m", "spmilp.bench.worker")

LONGEST_PHASE = 1800.0
"""Seconds for each phase without a limit of its own: making a problem, checking a plan."""

LEAST_GRACE = 30.0
"""Seconds that a solver may go on after its time limit before it is ended, at least."""

SHARE_OF_GRACE = 0.5
"""The same as a share of the time limit."""


CRASHED = "crashed"
"""The status of a worker that ended without a message: a defect."""


@dataclass
class Conversation:
    """The messages of a worker, and how it ended.

    Parameters
    ----------
    outcome
        The content of its last message; ``None`` when it ended without one.
    history
        Improvements that it reported while it solved.
    status, reason
        How it ended, when it has no outcome.
    """

    outcome: dict[str, Any] | None = None
    history: list[Moment] = field(default_factory=list)
    status: str = CRASHED
    reason: str = ""


class Workers:
    """Starts workers one by one or side by side, and ends those that run when it must.

    Parameters
    ----------
    folder
        A private folder for requests and for what workers print to standard error.
    command
        What is started, with the file of the request behind it.
    """

    def __init__(self, folder: Path, command: tuple[str, ...] = COMMAND) -> None:
        self._folder = folder
        self._command = command
        self._live: set[Worker] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._count = 0

    def ask(self, request: Request) -> Conversation:
        """Run a request in a new process; a crash or a time-out becomes a status.

        Raises
        ------
        CancelledError
            If :meth:`end_all` has been called.
        """
        with self._started(request) as (worker, errors):
            conversation = _listen(worker, _Clock(request.time_limit))
        if self._closed:
            raise CancelledError
        if conversation.outcome is None and not conversation.reason:
            conversation.status, conversation.reason = _how_it_ended(worker.returncode, errors)
        return conversation

    def end_all(self) -> None:
        """End every worker, and let no other one start."""
        with self._lock:
            self._closed = True
            for worker in self._live:
                _kill(worker)

    @contextmanager
    def _started(self, request: Request) -> Iterator[tuple[Worker, Path]]:
        with self._lock:
            self._count += 1
            file = self._folder / f"request{self._count}"
        errors = file.with_suffix(".err")
        file.write_bytes(pickle.dumps(request))
        with errors.open("wb") as stderr, self._lock:
            if self._closed:
                raise CancelledError
            worker = subprocess.Popen(
                [*self._command, str(file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
            self._live.add(worker)
        try:
            with worker:
                try:
                    yield worker, errors
                finally:
                    _kill(worker)
        finally:
            with self._lock:
                self._live.discard(worker)
            file.unlink(missing_ok=True)


class _Clock:
    """The deadline of a worker, which depends on its phase."""

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self._deadline: float | None = monotonic() + LONGEST_PHASE
        self.phase = "preparing"

    def enter(self, phase: str) -> None:
        """Begin another phase, with a deadline of its own."""
        self.phase = phase
        self._deadline = monotonic() + LONGEST_PHASE
        if phase == "solving":
            self._deadline = None if self.limit is None else monotonic() + self._longest()

    def left(self) -> float | None:
        """Return the seconds left; ``None`` for no end."""
        return None if self._deadline is None else max(0.0, self._deadline - monotonic())

    def overrun(self) -> str:
        """Return the message that names the phase that took too long."""
        if self.phase != "solving" or self.limit is None:
            return f"{self.phase} took more than {LONGEST_PHASE:g} s"
        return f"no answer {self._longest() - self.limit:g} s after the limit of {self.limit:g} s"

    def _longest(self) -> float:
        limit = self.limit or 0.0
        return limit + max(LEAST_GRACE, SHARE_OF_GRACE * limit)


PHASES = {"started": "solving", "solved": "checking"}


def _listen(worker: Worker, clock: _Clock) -> Conversation:
    """Collect the messages of a worker until it ends or has taken too long."""
    conversation = Conversation()
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read_lines, args=(worker, lines), daemon=True).start()
    threading.Thread(target=_end_what_is_left, args=(worker,), daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=clock.left())
        except queue.Empty:
            conversation.status, conversation.reason = "overrun", clock.overrun()
            return conversation
        if not line:
            worker.wait()
            return conversation
        event: dict[str, Any] = json.loads(line)
        name = event.pop("event")
        if name == "moment":
            conversation.history.append(Moment(**event))
        elif name in PHASES:
            clock.enter(PHASES[name])
        elif name in ("skipped", "failed"):
            conversation.status, conversation.reason = event.get("status", name), event["reason"]
        else:
            conversation.outcome = event


def _read_lines(worker: Worker, lines: "queue.Queue[bytes]") -> None:
    """Put every whole line into the queue, and an empty one at the end."""
    if worker.stdout is not None:
        for line in worker.stdout:
            if line.endswith(b"\n"):
                lines.put(line)
    lines.put(b"")


def _end_what_is_left(worker: Worker) -> None:
    """When a worker has ended, end the processes that it started: they would hold its pipes."""
    worker.wait()
    _kill(worker)


def _how_it_ended(code: int | None, errors: Path) -> tuple[str, str]:
    """Return status and reason of a worker that has left no answer."""
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        if name == "SIGKILL":
            return "killed", "ended by SIGKILL, as happens when memory runs out"
        return CRASHED, f"ended by {name}: {_last_line(errors)}"
    return CRASHED, _last_line(errors) or f"ended with exit code {code}"


def _last_line(file: Path) -> str:
    lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return "".join(lines[-1:])[:300]


def _kill(worker: Worker) -> None:
    """End a worker and all that it has started, also what has outlived it."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(worker.pid, signal.SIGKILL)
        else:
            worker.kill()
