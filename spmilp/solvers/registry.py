"""Solvers by name."""

from spmilp.errors import SpmilpError
from spmilp.solvers.base import Solver


def solver_names() -> tuple[str, ...]:
    """Return the names that :func:`find_solver` knows."""
    return ("auto", "list")


def find_solver(name: str) -> Solver:
    """Return the solver of that name (``auto`` takes the best that there is for the problem).

    Raises
    ------
    SpmilpError
        If there is none.
    """
    if name not in solver_names():
        known = ", ".join(solver_names())
        raise SpmilpError(f"no solver is named {name!r}; there are {known}")
    # The compiled scheduler takes a second to load: only when it is asked for.
    from spmilp.solvers.list_scheduler.solver import ListScheduler

    return ListScheduler()
