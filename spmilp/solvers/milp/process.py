"""PuLP at arm's length: the functions of its process, callable from this one.

PuLP loads highspy, and highspy and OR-Tools each bring a HiGHS under the same library name, so that
whichever comes second into a process cannot be loaded. So PuLP has a process of its own, which is
started at the first call and ends with this one.
"""

import atexit
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache
from threading import Event, Thread
from typing import IO

from spmilp.errors import SpmilpError
from spmilp.solvers.milp.messages import Answer, Call, received, send
from spmilp.solvers.milp.outcome import Limits, Outcome
from spmilp.solvers.milp.program import Program


def run(program: Program, backend: str, limits: Limits) -> Outcome:
    """Let a solver make the objective of a program small.

    After a ``KeyboardInterrupt`` the outcome is what the solver had by then.

    Raises
    ------
    SpmilpError
        If the solver fails.
    """
    found, interrupted = _worker().call("run", program, backend, limits)
    if not isinstance(found, Outcome):
        raise TypeError(f"the process of PuLP answered {found!r}, expected an outcome")
    return replace(found, interrupted=found.interrupted or interrupted)


def backend_name(name: str) -> str:
    """Return the name that PuLP has for a solver that is installed.

    Raises
    ------
    SpmilpError
        If PuLP knows none of that name, or it is not installed.
    """
    return str(_uninterrupted("backend_name", name))


def model_file(program: Program, suffix: str) -> bytes:
    """Return the bytes of a program as a file of that format, ``.lp`` or ``.mps``."""
    found = _uninterrupted("model_file", program, suffix)
    if not isinstance(found, bytes):
        raise TypeError(f"the process of PuLP answered {found!r}, expected bytes")
    return found


def _uninterrupted(function: str, *arguments: object) -> object:
    found, interrupted = _worker().call(function, *arguments)
    if interrupted:
        raise KeyboardInterrupt
    return found


class _Worker:
    def __init__(self) -> None:
        # In a session of its own a Ctrl-C at the terminal reaches it only through this process.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "spmilp.solvers.milp.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        atexit.register(self._process.kill)
        if self._process.stdin is None or self._process.stdout is None:
            raise OSError("the process of PuLP has no pipes")
        self._calls = self._process.stdin
        self._answer: Answer | None = None
        self._answered = Event()
        self._is_over = False
        # A thread reads, so that an interrupt never comes in the middle of an answer.
        Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def call(self, function: str, *arguments: object) -> tuple[object, bool]:
        """Call a function over there; return or raise what it does, and if an interrupt came."""
        interrupted = False
        self._answered.clear()
        if self._is_over:
            self._answered.set()
        try:
            send(self._calls, Call(function, arguments))
            try:
                self._answered.wait()
            except KeyboardInterrupt:
                interrupted = True
                self._process.send_signal(signal.SIGINT)
                self._answered.wait()
        except (BrokenPipeError, KeyboardInterrupt):
            self._end()
            raise
        answer = self._answer
        if answer is None:
            self._end()
            raise SpmilpError("the process of the MILP solver ended before it answered")
        if answer.traceback:
            raise RuntimeError(f"in the process of PuLP:\n{answer.traceback}")
        if answer.error:
            raise SpmilpError(answer.error)
        return answer.value, interrupted

    def _read(self, stream: IO[bytes]) -> None:
        while isinstance(answer := received(stream), Answer):
            self._answer = answer
            self._answered.set()
        self._answer, self._is_over = None, True
        self._answered.set()

    def _end(self) -> None:
        """Give the process up; the next call starts another."""
        self._process.kill()
        _worker.cache_clear()


@cache
def _worker() -> _Worker:
    return _Worker()
