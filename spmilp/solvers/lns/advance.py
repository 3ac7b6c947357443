"""Some loads go first: they move to where there is room for them among all that goes on."""

import numpy as np

from spmilp.compiled import kernel
from spmilp.solvers.kernels.records import NEVER, NONE, Ints
from spmilp.solvers.kernels.timeline import Timeline, occupy
from spmilp.solvers.lns.draft import Draft, Rows
from spmilp.solvers.lns.ground import Ground
from spmilp.solvers.lns.lifetimes import lifetimes
from spmilp.solvers.lns.loose import room_before
from spmilp.solvers.lns.sequence import earliest
from spmilp.solvers.lns.timelines import (
    first_room,
    hold,
    line_of_memories,
    line_of_resources,
    release,
)


def loads_of(ground: Ground, draft: Draft) -> Ints:
    """Return the transfers that bring something from a DRAM to another memory."""
    moves = np.flatnonzero((draft.part != NONE) & (draft.cycles > 0))
    comes = ground.is_dram[draft.memory[draft.reads.items[draft.reads.begin[moves]]]]
    goes = ground.is_dram[draft.memory[draft.fills.items[draft.fills.begin[moves]]]]
    return moves[comes & ~goes]


def advanced(
    ground: Ground, draft: Draft, start: Ints, last: int, limit: Ints, chosen: Ints
) -> Ints:
    """Return start cycles in which some activities start as early as they can next to all others.

    Those keep theirs. Activities are moved in the order given.
    """
    found = start.copy()
    begins, ends = lifetimes(draft, start, last)
    filled = draft.filler != NONE
    valid = np.where(filled, start[draft.filler] + draft.cycles[draft.filler], 0)
    line = line_of_resources(draft, chosen.size)
    room = line_of_memories(draft, limit.size, chosen.size)
    _advance(draft, ground.kept.earlier, limit, line, room, begins, valid, ends, chosen, found)
    return found


@kernel
def _advance(
    draft: Draft,
    earlier: Rows,
    limit: Ints,
    line: Timeline,
    room: Timeline,
    begins: Ints,
    valid: Ints,
    ends: Ints,
    chosen: Ints,
    found: Ints,
) -> None:
    for act in range(found.size):
        if draft.cycles[act] > 0:
            hold(draft, line, act, found[act])
    for held in range(ends.size):
        if limit[draft.memory[held]] != NEVER and ends[held] > begins[held]:
            occupy(room, draft.memory[held], begins[held], ends[held], draft.bytes[held])
    for act in chosen:
        old = found[act]
        release(draft, line, act, old)
        ready = earliest(draft, earlier, act, found, valid, ends)
        ready = room_before(draft, limit, room, act, ready, old)
        begin = min(old, first_room(draft, line, act, ready))
        hold(draft, line, act, begin)
        found[act] = begin
        for i in range(draft.fills.begin[act], draft.fills.begin[act + 1]):
            held = draft.fills.items[i]
            valid[held] = begin + draft.cycles[act]
            if begin < old and limit[draft.memory[held]] != NEVER:
                occupy(room, draft.memory[held], begin, old, draft.bytes[held])
