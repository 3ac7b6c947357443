"""PuLP in a process of its own: its functions, callable from this one.

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
from multiprocessing import Pipe

from spmilp.errors import SpmilpError
from spmilp.interruptible import Background
from spmilp.solvers.milp.messages import Answer, Call, Limits, Outcome
from spmilp.solvers.milp.program import Program

LEAST_GRACE = 5.0
"""Seconds after its time limit in which a solver that is still at work may answer, at least."""

SHARE_OF_GRACE = 0.25
"""The same as a share of the time limit."""


class SolverProcessError(SpmilpError):
    """The process of a solver has died, or does not answer any more."""


def run(program: Program, backend: str, limits: Limits) -> Outcome:
    """Let a solver minimise the objective of a program.

    After a ``KeyboardInterrupt`` the outcome is the best that the solver had by then.

    Raises
    ------
    SolverProcessError
        If its process dies or does not answer.
    SpmilpError
        If the solver fails.
    """
    limit = limits.seconds
    longest = None if limit is None else limit + max(LEAST_GRACE, SHARE_OF_GRACE * limit)
    found, interrupted = _worker().call("run", program, backend, limits, longest=longest)
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
        self._pipe, theirs = Pipe()
        # In a session of its own a Ctrl-C at the terminal reaches it only through this process.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "spmilp.solvers.milp.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        atexit.register(self._process.kill)

    def call(
        self, function: str, *arguments: object, longest: float | None = None
    ) -> tuple[object, bool]:
        """Call a function over there; return its value, and whether an interrupt came.

        Parameters
        ----------
        longest
            Seconds after which the process counts as hanging; ``None`` for never.
        """
        interrupted = False
        try:
            self._pipe.send(Call(function, arguments))
            # A thread reads, so that an interrupt never comes in the middle of an answer.
            answer: Background[Answer] = Background(self._pipe.recv)
            try:
                answer.ended.wait(longest)
            except KeyboardInterrupt:
                interrupted = True
                self._process.send_signal(signal.SIGINT)
                answer.ended.wait(2 * LEAST_GRACE)
            if not answer.ended.is_set():
                raise TimeoutError
            found = answer.answer()
        except (EOFError, OSError) as error:
            self._end()
            hangs = isinstance(error, TimeoutError)
            how = "does not answer" if hangs else "ended before it answered"
            raise SolverProcessError(f"the process of the MILP solver {how}") from error
        except KeyboardInterrupt:
            self._end()
            raise
        if found.traceback:
            raise RuntimeError(f"in the process of PuLP:\n{found.traceback}")
        if found.error:
            raise SpmilpError(found.error)
        return found.value, interrupted

    def _end(self) -> None:
        """Give the process up; the next call starts another."""
        self._process.kill()
        _worker.cache_clear()


@cache
def _worker() -> _Worker:
    return _Worker()
