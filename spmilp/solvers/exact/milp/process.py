"""PuLP in a process of its own: its functions, callable from this one.

PuLP loads highspy, and highspy and OR-Tools each bring a HiGHS under the same library name, so that
whichever comes second into a process cannot be loaded. So PuLP has a process of its own, in which
:mod:`spmilp.solvers.exact.milp.backend` is loaded; it is started at the first call.
"""

from dataclasses import replace
from functools import cache
from typing import Any

from spmilp.errors import SpmilpError
from spmilp.processes import Child, ChildError
from spmilp.solvers.exact.milp.program import Limits, Outcome, Program

LEAST_GRACE, SHARE_OF_GRACE = 5.0, 0.25
"""Seconds after its time limit in which a solver that is still at work may answer: at least, and as
a share of the limit."""


class SolverProcessError(SpmilpError):
    """The process of a solver has died, or does not answer any more."""


def run(program: Program, backend: str, limits: Limits) -> Outcome:
    """Let a solver minimise the objective of a program.

    After a ``KeyboardInterrupt`` the outcome is the best that the solver had by then. Raises a
    ``SolverProcessError`` if its process dies or does not answer, and a ``SpmilpError`` if the
    solver fails.
    """
    limit = limits.seconds
    longest = None if limit is None else limit + max(LEAST_GRACE, SHARE_OF_GRACE * limit)
    found: Outcome
    found, interrupted = _call("run", program, backend, limits, longest=longest)
    return replace(found, interrupted=found.interrupted or interrupted)


def backend_name(name: str) -> str:
    """Return the name that PuLP has for a solver that is installed.

    Raises a ``SpmilpError`` if PuLP knows none of that name, or it is not installed.
    """
    return str(_uninterrupted("backend_name", name))


def model_file(program: Program, suffix: str) -> bytes:
    """Return the bytes of a program as a file of that format, ``.lp`` or ``.mps``."""
    return bytes(_uninterrupted("model_file", program, suffix))


def _uninterrupted(function: str, *arguments: object) -> Any:
    found, interrupted = _call(function, *arguments)
    if interrupted:
        raise KeyboardInterrupt
    return found


def _call(function: str, *arguments: object, longest: float | None = None) -> tuple[Any, bool]:
    """Call a function in PuLP's process; return its value, and whether an interrupt came.

    After ``longest`` seconds the process counts as hanging; ``None`` for never.
    """
    child, interrupted = _child(), False
    try:
        child.begin(_there, function, *arguments)
        try:
            value = child.answer(longest)
        except KeyboardInterrupt:
            interrupted = True
            child.interrupt()
            value = child.answer(2 * LEAST_GRACE)
    except ChildError as error:
        if error.status == "failed":
            raise SpmilpError(str(error)) from error
        _give_up(child)
        if error.traceback:
            said = f"in the process of PuLP: {error}\n{error.traceback}"
            raise RuntimeError(said) from error
        raise SolverProcessError(f"the process of the MILP solver: {error}") from error
    except KeyboardInterrupt:
        _give_up(child)
        raise
    return value, interrupted


def _there(function: str, *arguments: Any) -> Any:
    """Call a function of the back end; runs in PuLP's process."""
    from spmilp.solvers.exact.milp import backend

    try:
        return getattr(backend, function)(*arguments)
    except KeyboardInterrupt:
        return Outcome(interrupted=True)


@cache
def _child() -> Child:
    return Child()


def _give_up(child: Child) -> None:
    """End the process; the next call starts another."""
    child.end()
    _child.cache_clear()
