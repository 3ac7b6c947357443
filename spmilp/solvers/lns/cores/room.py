"""How full memories are when times are given."""

from collections.abc import Iterable

import numpy as np

from spmilp.solvers.kernels.records import NEVER, NONE, Ints
from spmilp.solvers.lns.cores.moving import Times
from spmilp.solvers.lns.draft import Draft
from spmilp.units import Bytes, MemoryIdx


def overfull(
    draft: Draft, times: Times, limit: Ints, memories: Iterable[MemoryIdx]
) -> dict[MemoryIdx, Bytes]:
    """Return the most bytes at any cycle in those of some memories that hold more than ``limit``.

    Parameters
    ----------
    limit
        Bytes of each memory; ``NEVER`` for no limit.
    """
    found = {}
    for memory in memories:
        if limit[memory] != NEVER:
            most = _most_bytes(draft, times, memory)
            if most > limit[memory]:
                found[memory] = most
    return found


def _most_bytes(draft: Draft, times: Times, memory: MemoryIdx) -> Bytes:
    start, begins, ends = times
    held = np.flatnonzero((draft.memory == memory) & (begins < ends))
    size, parent, filler = draft.bytes[held], draft.parent[held], draft.filler[held]
    # What takes over bytes counts from the end of the task that writes it.
    shared = np.where(parent == NONE, 0, np.minimum(size, draft.bytes[parent]))
    filled = np.where(filler == NONE, 0, (start + draft.cycles)[filler])
    at = np.concatenate((begins[held], filled, ends[held]))
    change = np.concatenate((size - shared, shared, -size))
    # What ends makes room for what begins at the same cycle.
    return int(np.cumsum(change[np.lexsort((change, at))]).max(initial=0))
