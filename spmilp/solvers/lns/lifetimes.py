"""How long residencies last."""

import numpy as np

from spmilp.solvers.kernels.records import NONE, Ints
from spmilp.solvers.lns.draft import Draft
from spmilp.solvers.lns.rows import owners_of


def makespan_of(draft: Draft, start: Ints) -> int:
    """Return the end of the last activity."""
    return int((start + draft.cycles).max(initial=0))


def lifetimes(draft: Draft, start: Ints, last: int) -> tuple[Ints, Ints]:
    """Return the first and the last cycle of each residency, ``[start, end)``.

    What nothing fills and nobody reads is there for one cycle; what lasts, until cycle ``last``;
    what a dropped transfer filled, for none.
    """
    filled = draft.filler != NONE
    begins = np.where(filled, start[draft.filler], 0)
    ends = np.where(filled, begins + draft.cycles[draft.filler], 1)
    np.maximum.at(ends, owners_of(draft.users), (start + draft.cycles)[draft.users.items])
    return begins, np.where(draft.lasting, np.maximum(ends, last), ends)
