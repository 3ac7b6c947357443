"""Settings of the CP-SAT solver beside those of the model."""

from dataclasses import dataclass
from typing import TypeAlias

from spmilp.solvers.exact.formulation.state import SearchState
from spmilp.solvers.exact.formulation.strengthen import ModelOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class CpSatOptions(ModelOptions):
    """Settings of the search: what it may spend, and a switch for each of its phases.

    Parameters
    ----------
    retime
        First keep the decisions of the list scheduler's plan, and choose all times anew.
    relax
        Prove with open candidates where the number of residencies limits the model.
    load_relaxation
        First prove with the small relaxation of :mod:`~spmilp.solvers.exact.cpsat.relaxation`.
    retention
        Then with that relaxation and what memories keep for later readers.
    round_robin
        With few workers several strategies alternate in proofs, and none looks for solutions.
    neighbourhoods
        Improve the best plan with most of it kept (:mod:`~spmilp.solvers.exact.cpsat.phases`).
    literals
        The largest model that is tried.
    deterministic_limit
        Limit on the solver's own deterministic time, all models together; ``None`` for none.
    tie_breaks
        Deterministic time for each objective behind the first.
    log
        Print the solver's own log.
    """

    retime: bool = True
    relax: bool = True
    load_relaxation: bool = True
    retention: bool = True
    round_robin: bool = True
    neighbourhoods: bool = True
    literals: int = 2_000_000
    deterministic_limit: float | None = None
    tie_breaks: float = 3.0
    log: bool = False


CpSatState: TypeAlias = SearchState[CpSatOptions]
"""What every step of one search reads and changes."""
