"""Sparing DRAM: slices come from scratchpads that hold them, and wait in some that have room.

What most plans of whole networks wait for are the ports of DRAM, while a third or more of all
scratchpad bytes, and most of the links between scratchpads, are idle. Only transfers change, within
the cycles that they have, so no plan gets longer; the next passes use what has become free.
"""

import numpy as np

from spmilp.solvers.kernels.records import NONE, Ints
from spmilp.solvers.lns.draft import Draft
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.lifetimes import lifetimes
from spmilp.solvers.lns.reloads import read_again, without_needless
from spmilp.solvers.lns.rerouting import Changes, Scene, reroute
from spmilp.solvers.lns.rows import owners_of, rows_from_pairs
from spmilp.solvers.lns.timelines import line_of_memories, line_of_resources

MOST_CHANGES = 1000
"""In one go: step functions need room for each."""


def sparing_dram(
    ground: Ground, draft: Draft, start: Ints, last: int, limit: Ints
) -> tuple[Draft, Ints]:
    """Return a draft with less traffic to and from DRAM, and its start cycles.

    Only what moved to or from a DRAM starts at another cycle than before, and is there in time.
    """
    if not ground.spares_dram:
        return draft, start
    begins, ends = lifetimes(draft, start, last)
    is_there = (draft.slice != NONE) & (ends > begins)
    held = np.flatnonzero(is_there)
    scene = Scene(
        draft=draft,
        copies=ground.copies,
        limit=limit,
        start=start,
        holders=rows_from_pairs(draft.slice[held], held, ground.copies.slices.size),
        is_dram=ground.is_dram,
        may_leave=is_there & (ground.homes == NONE) & (draft.lasting == 0),
        line=line_of_resources(draft, MOST_CHANGES),
        room=line_of_memories(draft, limit.size, MOST_CHANGES),
        changes=_no_changes(draft, start, begins, ends),
    )
    moves = np.flatnonzero((draft.part != NONE) & (draft.cycles > 0))
    moves = moves[np.argsort(start[moves], kind="stable")]
    if reroute(scene, moves, MOST_CHANGES) == 0:
        return draft, start
    return without_needless(ground, _changed(scene)), scene.changes.start


def _no_changes(draft: Draft, start: Ints, begins: Ints, ends: Ints) -> Changes:
    read = np.full(start.size, NONE, np.int64)
    reads_some = np.flatnonzero(np.diff(draft.reads.begin) > 0)
    read[reads_some] = draft.reads.items[draft.reads.begin[reads_some]]
    filled = draft.filler != NONE
    first_use = np.full(draft.filler.size, np.iinfo(np.int64).max)
    np.minimum.at(first_use, owners_of(draft.users), start[draft.users.items])
    return Changes(
        start=start.copy(),
        cycles=draft.cycles.copy(),
        source=read,
        pair=np.full(start.size, NONE, np.int64),
        way=np.full(start.size, NONE, np.int64),
        begins=begins,
        valid=np.where(filled, start[draft.filler] + draft.cycles[draft.filler], 0),
        first_use=first_use,
        ends=ends,
        memory=draft.memory.copy(),
    )


def _changed(scene: Scene) -> Draft:
    """Return a draft with the new sources, ways and memories."""
    draft, copies, changes = scene.draft, scene.copies, scene.changes
    acts = np.flatnonzero(changes.pair != NONE)
    source = draft.reads.items.copy()
    source[draft.reads.begin[acts]] = changes.source[acts]
    owners = owners_of(draft.demands)
    stays = changes.pair[owners] == NONE
    who, which, amounts = [owners[stays]], [draft.demands.items[stays]], [draft.amounts[stays]]
    for act in acts.tolist():
        pair, way = copies.pairs[changes.pair[act]], copies.ways[changes.way[act]]
        links = copies.links[pair.links_from : pair.links_to]
        which.append(copies.first_engine + np.concatenate(([way.engine], links)))
        amounts.append(np.concatenate(([1], np.full(links.size, way.rate))))
        who.append(np.full(links.size + 1, act))
    owner = np.concatenate(who)
    return read_again(
        draft._replace(
            cycles=changes.cycles,
            reads=draft.reads._replace(items=source),
            memory=changes.memory,
            demands=rows_from_pairs(owner, np.concatenate(which), draft.cycles.size),
            amounts=np.concatenate(amounts)[np.argsort(owner, kind="stable")],
        )
    )
