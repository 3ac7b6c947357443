"""Room in a draft for transfers that its plan does not have.

A spare is a transfer that was dropped from the beginning: it takes no time and fills a residency
that is never there. A copy that becomes necessary takes the place of the next spare.
"""

import numpy as np

from spmilp.solvers.kernels.records import NONE, Ints
from spmilp.solvers.lns.draft import Draft, Rows

MOST_SPARES = 1000
"""In a draft; spares that were used and dropped again are used again."""


def with_spares(draft: Draft, start: Ints, count: int) -> tuple[Draft, Ints]:
    """Return a draft with so many spares behind its transfers, and its start cycles."""
    nothing, none, one = (np.full(count, value, np.int64) for value in (0, NONE, 1))
    activities, residencies = draft.cycles.size, draft.filler.size
    fills = Rows(
        np.concatenate((draft.fills.begin, draft.fills.items.size + 1 + np.arange(count))),
        np.concatenate((draft.fills.items, residencies + np.arange(count))),
    )
    longer = draft._replace(
        cycles=np.concatenate((draft.cycles, nothing)),
        part=np.concatenate((draft.part, none)),
        demands=_with_empty(draft.demands, count),
        reads=_with_empty(draft.reads, count),
        fills=fills,
        before=_with_empty(draft.before, count),
        after=_with_empty(draft.after, count),
        users=_with_empty(draft.users, count),
        filler=np.concatenate((draft.filler, activities + np.arange(count))),
        memory=np.concatenate((draft.memory, nothing)),
        offset=np.concatenate((draft.offset, nothing)),
        bytes=np.concatenate((draft.bytes, one)),
        lasting=np.concatenate((draft.lasting, nothing)),
        slice=np.concatenate((draft.slice, none)),
        parent=np.concatenate((draft.parent, none)),
        heir=np.concatenate((draft.heir, none)),
    )
    return longer, np.concatenate((start, nothing))


def _with_empty(rows: Rows, count: int) -> Rows:
    return Rows(np.concatenate((rows.begin, np.full(count, rows.begin[-1]))), rows.items)
