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
from typing import Any, Protocol

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
    """Run one solver on the problem of a row.

    Parameters
    ----------
    attribute
        Also say where the time and the traffic of the plan go.
    """

    instance: str
    source: Source
    objective: Quantity | None
    pickled: Path
    problem_sha256: str
    solver: str
    options: SolveOptions
    attribute: bool = False

    @property
    def time_limit(self) -> float | None:
        """Wall seconds of the solver."""
        return self.options.time_limit


class Request(Protocol):
    """Something that a worker can be asked; it is pickled."""

    @property
    def time_limit(self) -> float | None:
        """Wall seconds from the worker's message ``started`` on; ``None`` for no limit."""


COMMAND = (sys.executable, "-m", "spmilp.bench.worker")

LONGEST_PHASE = 1800.0
"""Seconds for each phase without a limit of its own: making a problem, checking a plan."""

LEAST_GRACE = 30.0
"""Seconds that a solver may go on after its time limit before it is ended, at least."""

SHARE_OF_GRACE = 0.5
"""The same as a share of the time limit."""


QUICK = 10.0
"""Seconds: a worker that was quicker with a request leaves so little in memory that it may have
another one, where starting a new one would take longer than most requests."""

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
    is_over
        Whether the worker has said its last word, and did not end before.
    """

    outcome: dict[str, Any] | None = None
    history: list[Moment] = field(default_factory=list)
    status: str = CRASHED
    reason: str = ""
    is_over: bool = False


class _Worker:
    """A process that takes requests one after another, and what it says."""

    def __init__(self, command: tuple[str, ...], errors: Path) -> None:
        self.errors = errors
        self.lines: queue.Queue[bytes] = queue.Queue()
        with errors.open("wb") as stderr:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        threading.Thread(target=self._read_lines, daemon=True).start()
        threading.Thread(target=self._end_what_is_left, daemon=True).start()

    def give(self, request: Path) -> None:
        """Name the file of a request; a worker that has ended is found out by its silence."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(f"{request}\n".encode())
                self._process.stdin.flush()

    def is_alive(self) -> bool:
        """Say whether it still runs."""
        return self._process.poll() is None

    def exit_code(self) -> int:
        """Wait for the end of a worker that says no more."""
        return self._process.wait()

    def kill(self) -> None:
        """End it and all that it has started, also what has outlived it."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def end(self) -> None:
        """End it, and wait until it has."""
        self.kill()
        with suppress(BrokenPipeError), self._process:
            pass

    def _read_lines(self) -> None:
        """Put every whole line into the queue, and an empty one at the end."""
        if self._process.stdout is not None:
            for line in self._process.stdout:
                if line.endswith(b"\n"):
                    self.lines.put(line)
        self.lines.put(b"")

    def _end_what_is_left(self) -> None:
        """When it has ended, end the processes that it started: they would hold its pipes."""
        self._process.wait()
        self.kill()


class Workers:
    """Starts workers one by one or side by side, and ends those that run when it must.

    Parameters
    ----------
    folder
        A private folder for requests and for what workers print to standard error.
    command
        What is started; it is told on its standard input in which files requests are.
    reuse
        Give another request to a worker that was quick with its first one. What a process has
        used at most is then no more that of one request.
    """

    def __init__(
        self, folder: Path, command: tuple[str, ...] = COMMAND, *, reuse: bool = False
    ) -> None:
        self._folder = folder
        self._command = command
        self._reuse = reuse
        self._live: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._closed = False
        self._count = self._started = 0

    def ask(self, request: Request) -> Conversation:
        """Run a request in a process of its own; a crash or a time-out becomes a status.

        Raises
        ------
        CancelledError
            If :meth:`end_all` has been called.
        """
        began, conversation = monotonic(), Conversation()
        with self._written(request) as file:
            worker = self._a_worker()
            try:
                worker.give(file)
                _listen(worker, _Clock(request.time_limit), conversation)
            finally:
                is_quick = monotonic() - began < QUICK
                self._put_back(worker, wanted=conversation.outcome is not None and is_quick)
        if self._closed:
            raise CancelledError
        return conversation

    def end_all(self) -> None:
        """End every worker, and let no other one start."""
        with self._lock:
            self._closed = True
            for worker in self._live:
                worker.kill()
            for worker in self._idle:
                worker.end()

    @contextmanager
    def _written(self, request: Request) -> Iterator[Path]:
        with self._lock:
            self._count += 1
            file = self._folder / f"request{self._count}"
        file.write_bytes(pickle.dumps(request))
        try:
            yield file
        finally:
            file.unlink(missing_ok=True)

    def _a_worker(self) -> _Worker:
        with self._lock:
            if self._closed:
                raise CancelledError
            while self._idle and not self._idle[-1].is_alive():
                self._idle.pop()
            if self._idle:
                worker = self._idle.pop()
            else:
                self._started += 1
                worker = _Worker(self._command, self._folder / f"worker{self._started}.err")
            self._live.add(worker)
            return worker

    def _put_back(self, worker: _Worker, *, wanted: bool) -> None:
        with self._lock:
            self._live.discard(worker)
            if wanted and self._reuse and not self._closed:
                self._idle.append(worker)
                return
        worker.end()


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


def _listen(worker: _Worker, clock: _Clock, conversation: Conversation) -> None:
    """Collect the messages of a worker until it is done, has ended, or has taken too long."""
    while not conversation.is_over:
        try:
            line = worker.lines.get(timeout=clock.left())
        except queue.Empty:
            conversation.status, conversation.reason = "overrun", clock.overrun()
            return
        if not line:
            ended = _how_it_ended(worker.exit_code(), worker.errors)
            conversation.status, conversation.reason = ended
            return
        event: dict[str, Any] = json.loads(line)
        name = event.pop("event")
        if name == "moment":
            conversation.history.append(Moment(**event))
        elif name in PHASES:
            clock.enter(PHASES[name])
        else:
            conversation.is_over = True
            if name in ("skipped", "failed"):
                conversation.status, conversation.reason = (
                    event.get("status", name),
                    event["reason"],
                )
            else:
                conversation.outcome = event


def _how_it_ended(code: int, errors: Path) -> tuple[str, str]:
    """Return status and reason of a worker that has left no answer."""
    if code < 0:
        name = signal.Signals(-code).name
        if name == "SIGKILL":
            return "killed", "ended by SIGKILL, as happens when memory runs out"
        return CRASHED, f"ended by {name}: {_last_line(errors)}"
    return CRASHED, _last_line(errors) or f"ended with exit code {code}"


def _last_line(file: Path) -> str:
    lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return "".join(lines[-1:])[:300]
