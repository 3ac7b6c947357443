"""PuLP in a process of its own: its functions, callable from this one.

PuLP loads highspy, and highspy and OR-Tools each bring a HiGHS under the same library name, so that
whichever comes second into a process cannot be loaded. So PuLP has a process of its own
(:mod:`spmilp.solvers.exact.milp.backend`), which is started at the first call and ends with this
one.
"""

import atexit
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from functools import cache
from typing import IO, Any

from spmilp.errors import SpmilpError
from spmilp.processes import Background
from spmilp.solvers.exact.milp.program import Limits, Outcome, Program

LEAST_GRACE, SHARE_OF_GRACE = 5.0, 0.25
"""Seconds after its time limit in which a solver that is still at work may answer: at least, and as
a share of the limit."""


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
    found: Outcome
    found, interrupted = _worker().call("run", program, backend, limits, longest=longest)
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
    return bytes(_uninterrupted("model_file", program, suffix))


def _uninterrupted(function: str, *arguments: object) -> Any:
    found, interrupted = _worker().call(function, *arguments)
    if interrupted:
        raise KeyboardInterrupt
    return found


class _Worker:
    def __init__(self) -> None:
        # In a session of its own a Ctrl-C at the terminal reaches it only through this process.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spmilp.solvers.exact.milp.backend"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        atexit.register(self.process.kill)

    def call(
        self, function: str, *arguments: object, longest: float | None = None
    ) -> tuple[Any, bool]:
        """Call a function over there; return its value, and whether an interrupt came.

        Parameters
        ----------
        longest
            Seconds after which the process counts as hanging; ``None`` for never.
        """
        interrupted, (into, out) = False, (self.process.stdin, self.process.stdout)
        try:
            if into is None or out is None:
                raise EOFError
            # A thread writes and reads: no interrupt comes in the middle of an answer, and nobody
            # waits for a process that does not even read.
            answer = Background(lambda: _answer(into, out, (function, arguments)))
            try:
                answer.ended.wait(longest)
            except KeyboardInterrupt:
                interrupted = True
                self.process.send_signal(signal.SIGINT)
                answer.ended.wait(2 * LEAST_GRACE)
            if not answer.ended.is_set():
                raise TimeoutError
            value, error, traceback = answer.answer()
        except (EOFError, OSError) as failure:
            self._end()
            hangs = isinstance(failure, TimeoutError)
            how = "does not answer" if hangs else "ended before it answered"
            raise SolverProcessError(f"the process of the MILP solver {how}") from failure
        except KeyboardInterrupt:
            self._end()
            raise
        if traceback:
            raise RuntimeError(f"in the process of PuLP:\n{traceback}")
        if error:
            raise SpmilpError(error)
        return value, interrupted

    def _end(self) -> None:
        """Give the process up; the next call starts another."""
        self.process.kill()
        _worker.cache_clear()


def _answer(into: IO[bytes], out: IO[bytes], question: tuple[str, tuple[object, ...]]) -> Any:
    pickle.dump(question, into)
    into.flush()
    return pickle.load(out)


@cache
def _worker() -> _Worker:
    return _Worker()
