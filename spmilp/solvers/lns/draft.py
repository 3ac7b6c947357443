"""A plan as flat arrays: what is decided, apart from times, and what its order follows from.

An *activity* is a task or a transfer, tasks first. It reads residencies and fills others; a task
fills its scratch, too. A residency lasts from the start of the activity that fills it (or from
cycle 0) until the last activity has ended that reads or fills it, or until all ends if it has to.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.solvers.kernels.records import NONE, Ints

Flags: TypeAlias = NDArray[np.bool_]


class Rows(NamedTuple):
    """A list of numbers for each of many things: ``items[begin[i]:begin[i + 1]]``."""

    begin: Ints
    items: Ints


class Draft(NamedTuple):
    """The decisions of a plan; see the module.

    Attributes
    ----------
    cycles
        Of each activity; 0 for a transfer that was dropped, which reads nothing.
    demands, amounts
        The resources of each activity and how much of them it holds; first come pools of equal
        cores, then engines, then links.
    capacity
        Of each resource; rates in a unit of which all are whole multiples.
    reads, fills
        Residencies that each activity reads and fills.
    before, after
        Tasks that each activity follows without data, and those that follow it.
    users
        Activities that read each residency.
    filler
        The activity that fills each residency; -1 when it is there at cycle 0.
    memory, offset, bytes
        Of each residency.
    lasting
        Whether each residency stays until all ends.
    slice
        Of each residency; -1 for scratch.
    part
        The slice that each activity moves; -1 for tasks.
    parent, heir
        The residency whose bytes each takes over in place, and the one that it hands them to; -1
        for none.
    """

    cycles: Ints
    demands: Rows
    amounts: Ints
    capacity: Ints
    reads: Rows
    fills: Rows
    before: Rows
    after: Rows
    users: Rows
    filler: Ints
    memory: Ints
    offset: Ints
    bytes: Ints
    lasting: Ints
    slice: Ints
    part: Ints
    parent: Ints
    heir: Ints


class Tenants(NamedTuple):
    """Which residencies had the bytes of each just before, and which have them just after."""

    earlier: Rows
    later: Rows


def is_alive(draft: Draft) -> Flags:
    """Say which residencies there are: not those that dropped transfers filled."""
    alive: Flags = (draft.filler == NONE) | (draft.cycles[draft.filler] > 0)
    return alive
