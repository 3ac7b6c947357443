"""How long residencies last, and which of them take over the bytes of another."""

from typing import NamedTuple

import numpy as np

from spmilp.compiled import compiled
from spmilp.solvers.list_scheduler.records import NONE, Ints
from spmilp.solvers.lns.draft import Draft
from spmilp.solvers.lns.rows import owners_of


class Kin(NamedTuple):
    """For each residency the one whose bytes it takes over in place, and the one it hands them to.

    -1 where there is none.
    """

    parent: Ints
    heir: Ints


def makespan_of(draft: Draft, start: Ints) -> int:
    """Return the end of the last activity."""
    return int((start + draft.cycles).max(initial=0))


def lifetimes(draft: Draft, start: Ints, last: int) -> tuple[Ints, Ints]:
    """Return the first and the last cycle of each residency, ``[start, end)``.

    What nothing fills and nobody reads is there for one cycle; what lasts, until cycle ``last``.
    """
    filled = draft.filler != NONE
    begins = np.where(filled, start[draft.filler], 0)
    ends = np.where(filled, begins + draft.cycles[draft.filler], 1)
    np.maximum.at(ends, owners_of(draft.users), (start + draft.cycles)[draft.users.items])
    return begins, np.where(draft.lasting, np.maximum(ends, last), ends)


def kin_of(draft: Draft) -> Kin:
    """Find what a task writes over an operand of its own: the only bytes that two may share."""
    kin = Kin(np.full(draft.filler.size, NONE), np.full(draft.filler.size, NONE))
    _find_kin(draft, kin)
    return kin


@compiled
def _find_kin(draft: Draft, kin: Kin) -> None:
    for act in range(draft.cycles.size):
        for i in range(draft.reads.begin[act], draft.reads.begin[act + 1]):
            old = draft.reads.items[i]
            for j in range(draft.fills.begin[act], draft.fills.begin[act + 1]):
                new = draft.fills.items[j]
                below = draft.offset[old] < draft.offset[new] + draft.bytes[new]
                above = draft.offset[new] < draft.offset[old] + draft.bytes[old]
                if draft.memory[old] == draft.memory[new] and below and above:
                    kin.heir[old], kin.parent[new] = new, old
