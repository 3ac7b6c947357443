"""Solvers by name; each is imported only when it is asked for, for their libraries load slowly."""

from collections.abc import Callable

from spmilp.errors import SpmilpError
from spmilp.solvers.base import Solver


def _list() -> Solver:
    from spmilp.solvers.list_scheduler.solver import ListScheduler

    return ListScheduler()


def _cpsat() -> Solver:
    from spmilp.solvers.cpsat.solver import CpSatSolver

    return CpSatSolver()


def _bruteforce() -> Solver:
    from spmilp.solvers.bruteforce.solver import BruteForce

    return BruteForce()


SOLVERS: dict[str, Callable[[], Solver]] = {
    "auto": _list,
    "list": _list,
    "cpsat": _cpsat,
    "bruteforce": _bruteforce,
}


def solver_names() -> tuple[str, ...]:
    """Return the names that :func:`find_solver` knows."""
    return tuple(SOLVERS)


def find_solver(name: str) -> Solver:
    """Return the solver of that name (``auto`` takes the best that there is for the problem).

    Raises
    ------
    SpmilpError
        If there is none.
    """
    if name not in SOLVERS:
        raise SpmilpError(f"no solver is named {name!r}; there are {', '.join(SOLVERS)}")
    return SOLVERS[name]()
