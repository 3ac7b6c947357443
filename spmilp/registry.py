"""Solvers by name; each is imported only when it is asked for, for their libraries load slowly."""

from collections.abc import Callable
from functools import cache

from spmilp.errors import SpmilpError
from spmilp.solvers.common.solver import Solver


def _auto() -> Solver:
    from spmilp.solvers.auto import Auto

    return Auto()


def _list() -> Solver:
    from spmilp.solvers.list_scheduler.solver import ListScheduler

    return ListScheduler()


def _lns() -> Solver:
    from spmilp.solvers.lns.solver import LnsSolver

    return LnsSolver()


def _search() -> Solver:
    from spmilp.solvers.local_search.solver import LocalSearch

    return LocalSearch()


def _residency() -> Solver:
    from spmilp.solvers.residency.solver import Residency

    return Residency()


def _peak() -> Solver:
    from spmilp.solvers.peak import PeakBisection

    return PeakBisection()


def _cpsat() -> Solver:
    from spmilp.solvers.cpsat.solver import CpSatSolver

    return CpSatSolver()


def _bruteforce() -> Solver:
    from spmilp.solvers.bruteforce.solver import BruteForce

    return BruteForce()


def _milp(backend: str) -> Callable[[], Solver]:
    def make() -> Solver:
        from spmilp.solvers.milp.options import MilpOptions
        from spmilp.solvers.milp.solver import MilpSolver

        return MilpSolver(MilpOptions(backend=backend))

    return make


def _onsram(*, exact: bool) -> Callable[[], Solver]:
    def make() -> Solver:
        from spmilp.policies.onsram.solver import OnSram

        return OnSram(exact=exact)

    return make


def _cosma() -> Solver:
    from spmilp.policies.cosma.solver import Cosma

    return Cosma()


BACKENDS = ("cbc", "gurobi", "cplex", "scip", "xpress", "copt", "mosek", "glpk")
"""What may solve a MILP instead of HiGHS, when it is installed."""

SOLVERS: dict[str, Callable[[], Solver]] = {
    "auto": _auto,
    "list": _list,
    "search": _search,
    "lns": _lns,
    "residency": _residency,
    "peak": _peak,
    "cpsat": _cpsat,
    "bruteforce": _bruteforce,
    "milp": _milp("highs"),
    **{f"milp:{name}": _milp(name) for name in BACKENDS},
    "onsram": _onsram(exact=False),
    "onsram:exact": _onsram(exact=True),
    "cosma": _cosma,
}


def _greedy(assignment: str, order: str) -> Callable[[], Solver]:
    def make() -> Solver:
        from spmilp.solvers.list_scheduler.solver import ListScheduler

        return ListScheduler(greedy=(assignment, order))

    return make


@cache
def _all_solvers() -> dict[str, Callable[[], Solver]]:
    from spmilp.solvers.list_scheduler.assignments import ASSIGNMENTS
    from spmilp.solvers.list_scheduler.rules import ORDERS

    greedy = {
        f"greedy:{one}/{other}": _greedy(one, other) for one in ASSIGNMENTS for other in ORDERS
    }
    return {**SOLVERS, **greedy}


def solver_names() -> tuple[str, ...]:
    """Return the names that :func:`find_solver` knows; ``greedy:…`` are one-pass baselines."""
    return tuple(_all_solvers())


def find_solver(name: str) -> Solver:
    """Return the solver of that name (``auto`` takes the best that there is for the problem).

    Raises
    ------
    SpmilpError
        If there is none.
    """
    solvers = _all_solvers()
    if name not in solvers:
        raise SpmilpError(f"no solver is named {name!r}; there are {', '.join(solvers)}")
    return solvers[name]()
