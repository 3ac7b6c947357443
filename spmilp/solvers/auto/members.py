"""Which solvers a problem gets, in which order and for how long."""

from collections.abc import Callable
from dataclasses import dataclass

from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.solver import Solver

SMALL = {True: 150, False: 400}
"""Tasks up to which the exact solver is worth most of the time: for the makespan, and for bytes."""

WITHOUT_LIMIT = 5.0
"""Deterministic time for each solver that uses it, where no time limit ends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A solver of the portfolio.

    Parameters
    ----------
    until
        Share of the time limit by which it has ended.
    make
        Makes it for some options; its libraries are loaded only then.
    """

    name: str
    until: float
    make: Callable[[SolveOptions], Solver]


def members_for(problem: Problem) -> tuple[Member, ...]:
    """Return the solvers of a problem: each begins with the best plan of those before it.

    Small problems are searched for a while, and then decided exactly; where their models are too
    large for the time, the neighbourhoods get what is left. In large ones local search
    finds the assignment and the order of tasks, and neighbourhoods of that plan are then solved
    exactly: for the makespan those of its partial order, for bytes those of what stays where.
    """
    first = problem.objective.first
    makes_short = first is Quantity.MAKESPAN
    moves_little = first in (Quantity.DRAM_TRAFFIC, Quantity.ENERGY)
    if len(problem.tasks) <= SMALL[makes_short]:
        exact = Member(name="cpsat", until=1.0, make=_cpsat)
        start = Member(name="search", until=0.1 if moves_little else 0.15, make=_search)
        if makes_short:
            some, rest = (Member(name="lns", until=until, make=_lns) for until in (0.3, 1.0))
            return (start, some, exact, rest)
        if moves_little:
            return (start, Member(name="residency", until=0.6, make=_residency), exact)
        return (start, exact)
    if makes_short:
        return (
            Member(name="search", until=0.3, make=_search),
            Member(name="lns", until=1.0, make=_lns),
        )
    if moves_little:
        return (
            Member(name="search", until=0.5, make=_search),
            Member(name="residency", until=1.0, make=_residency),
        )
    return (Member(name="search", until=1.0, make=_search),)


def _search(options: SolveOptions) -> Solver:
    from spmilp.solvers.local_search.solver import LocalSearch

    return LocalSearch()


def _lns(options: SolveOptions) -> Solver:
    from spmilp.solvers.lns.solver import LnsSolver

    return LnsSolver()


def _residency(options: SolveOptions) -> Solver:
    from spmilp.solvers.residency.solver import Residency

    return Residency(patience=WITHOUT_LIMIT)


def _cpsat(options: SolveOptions) -> Solver:
    from spmilp.solvers.cpsat.options import CpSatOptions
    from spmilp.solvers.cpsat.solver import CpSatSolver

    limit = WITHOUT_LIMIT if options.time_limit is None else None
    return CpSatSolver(CpSatOptions(deterministic_limit=limit))
