"""Points of the search space: decisions from which the scheduler makes one schedule."""

from dataclasses import dataclass

from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.kernels.schedule_state import ScheduleState, Weights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """Decisions from which the list scheduler makes one schedule. The arrays are never changed.

    Parameters
    ----------
    order
        Every task once, each after all that it follows.
    cores
        For each task its core.
    leads
        For each read of each task, how many tasks of the same memory before its reader bytes are
        set aside for it; 0 for none. Where it is negative, the slice is loaded at once, so many
        tasks before.
    weights
        Of the scheduler.
    """

    order: Ints
    cores: Ints
    leads: Ints
    weights: Weights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """A candidate, the schedule made from it, and its value.

    Parameters
    ----------
    score
        The quantities in the problem's order; less is better.
    source
        What made the candidate, in words for people.
    exact
        Whether the candidate leads to this very schedule. If not, the scheduler chose cores on its
        way, and with these cores from the start it would have decided otherwise here and there.
    """

    candidate: Candidate
    score: tuple[int, ...]
    state: ScheduleState
    source: str
    exact: bool = True
