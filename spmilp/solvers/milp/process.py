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

    def call(self, function: str, *arguments: object) -> tuple[object, bool]:
        """Call a function over there; return or raise what it does, and if an interrupt came."""
        interrupted = False
        if self._process.stdin is None or self._process.stdout is None:
            raise OSError("the process of PuLP has no pipes")
        try:
            send(self._process.stdin, Call(function, arguments))
            try:
                answer = received(self._process.stdout)
            except KeyboardInterrupt:
                interrupted = True
                self._process.send_signal(signal.SIGINT)
                answer = received(self._process.stdout)
        except (BrokenPipeError, KeyboardInterrupt):
            self._end()
            raise
        if not isinstance(answer, Answer):
            self._end()
            raise SpmilpError("the process of the MILP solver ended before it answered")
        if answer.traceback:
            raise RuntimeError(f"in the process of PuLP:\n{answer.traceback}")
        if answer.error:
            raise SpmilpError(answer.error)
        return answer.value, interrupted

    def _end(self) -> None:
        """Give the process up; the next call starts another."""
        self._process.kill()
        _worker.cache_clear()


@cache
def _worker() -> _Worker:
    return _Worker()
