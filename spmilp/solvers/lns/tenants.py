"""Which residencies follow each other on the same bytes."""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from spmilp.compiled import compiled
from spmilp.solvers.kernels.records import NONE, Ints, numbers
from spmilp.solvers.lns.draft import Draft, Flags, Tenants
from spmilp.solvers.lns.rows import rows_from_pairs, turned_round
from spmilp.units import ResidencyIdx

Pairs: TypeAlias = Iterable[tuple[ResidencyIdx, ResidencyIdx]]


def tenants_of(draft: Draft, start: Ints, where: Flags, extra: Pairs = ()) -> Tenants:
    """Return who has whose bytes next, by the times of a valid plan.

    Parameters
    ----------
    where
        The residencies whose addresses count; the others follow nothing.
    extra
        Further pairs of residencies, one before the other.
    """
    count = draft.filler.size
    begins = np.where(draft.filler == NONE, -1, start[draft.filler])
    held = np.flatnonzero(where)
    held = held[np.lexsort((held, begins[held], draft.memory[held]))]
    before, after = _follow(held, draft.memory, draft.offset, draft.bytes)
    before = np.concatenate((before, numbers(pair[0] for pair in extra)))
    after = np.concatenate((after, numbers(pair[1] for pair in extra)))
    earlier = rows_from_pairs(after, before, count)
    return Tenants(earlier=earlier, later=turned_round(earlier, count))


@compiled
def _follow(held: Ints, memory: Ints, offset: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Sweep each memory in time, with the last tenant of each run of bytes."""
    low = np.zeros(2 * held.size + 2, np.int64)
    owner = np.zeros(2 * held.size + 2, np.int64)
    runs = 0
    before = np.zeros(4 * held.size + 16, np.int64)
    after = np.zeros(4 * held.size + 16, np.int64)
    count = 0
    last_memory = NONE
    for one in held:
        if memory[one] != last_memory:
            last_memory = memory[one]
            low[0], owner[0], runs = 0, NONE, 1
        first, last = offset[one], offset[one] + size[one]
        # The runs that meet [first, last) are those from i to j - 1.
        i = np.searchsorted(low[:runs], first, side="right") - 1
        j = i
        while j < runs and low[j] < last:
            if owner[j] != NONE:
                seen = False
                for k in range(i, j):
                    seen = seen or owner[k] == owner[j]
                if not seen:
                    if count == before.size:
                        before = np.concatenate((before, np.zeros_like(before)))
                        after = np.concatenate((after, np.zeros_like(after)))
                    before[count], after[count] = owner[j], one
                    count += 1
            j += 1
        tail = owner[j - 1]
        keeps_head = low[i] < first
        ends_inside = j == runs or low[j] > last
        new = i + (1 if keeps_head else 0)
        kept = new + 1 + (1 if ends_inside else 0)
        shift = kept - j
        if shift > 0:
            for k in range(runs - 1, j - 1, -1):
                low[k + shift], owner[k + shift] = low[k], owner[k]
        elif shift < 0:
            for k in range(j, runs):
                low[k + shift], owner[k + shift] = low[k], owner[k]
        runs += shift
        low[new], owner[new] = first, one
        if ends_inside:
            low[new + 1], owner[new + 1] = last, tail
    return before[:count].copy(), after[:count].copy()
