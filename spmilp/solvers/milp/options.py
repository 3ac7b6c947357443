"""Settings of the MILP solver."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MilpOptions:
    """Settings beside :class:`~spmilp.solvers.base.SolveOptions`.

    Parameters
    ----------
    backend
        The name of a solver in PuLP: ``HiGHS``, ``CBC``, ``GUROBI``, ``CPLEX_PY`` ...
    most_whole
        The largest model that is tried, in variables that have to be integers.
    most_candidates
        How often a slice may be brought into one memory at the most, where a proof asks for it.
    energy
        Rows that say that work, traffic and contents need time on what they use.
    heads
        Bounds of the tasks' starts from the paths before and after them.
    used
        A candidate that a transfer fills exists only if something uses it.
    log
        Let the backend print its own log.
    """

    backend: str = "HiGHS"
    most_whole: int = 20_000
    most_candidates: int = 6
    energy: bool = True
    heads: bool = True
    used: bool = True
    log: bool = False
