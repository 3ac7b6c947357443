"""The depth-first search itself: flat arrays, explicit frames, an undo trail.

The idea is that of MiniMalloc (Moffitt, ASPLOS 2023, doi 10.1145/3623278.3624752): items in order
of offset, so that a partial packing is a skyline; split at cuts in time; prune by sections. What
is new here: bars instead of a canonical order of ties, watched witnesses and the look-ahead on
them, and the order of preference learnt from failures.
"""

from spmilp.compiled import kernel, part
from spmilp.packing.search.arrays import Agenda, Frames, Given, Memo, State
from spmilp.packing.search.frames import choice_failed, next_choice, open_frame, remember
from spmilp.packing.search.place import lift_neighbours, put
from spmilp.packing.search.room import sections_fit
from spmilp.packing.search.rules import (
    AGENDA_HEAD,
    DEPTH,
    EXHAUSTED,
    NODES,
    PACKED,
    PAUSED,
    SPLIT,
    STARTED,
    TRAIL,
)
from spmilp.packing.search.split import move_behind, split_at_cuts, take_from_agenda


@part
def place_next(
    given: Given,
    state: State,
    frames: Frames,
    agenda: Agenda,
    item: int,
    capacity: int,
    rules: int,
) -> bool:
    """Place an item in the top frame and set up what follows; False if that cannot succeed."""
    counters = state.counters
    frame = counters[DEPTH] - 1
    last = frames.last[frame] - 1
    frames.placed[frame] = item
    frames.mark[frame] = counters[TRAIL]
    move_behind(state, item, last + 1)
    opened = put(given, state, item, state.low[item])
    if not lift_neighbours(given, state, item, rules) or not sections_fit(
        given,
        state,
        item,
        frames.section_from[frame],
        frames.section_until[frame],
        frames.step[frame],
        capacity,
        rules,
    ):
        return False
    if opened and rules & SPLIT:
        split_at_cuts(given, state, frames, agenda, frame, last)
    elif last > frames.first[frame]:
        following = frame + 1
        frames.first[following] = frames.first[frame]
        frames.last[following] = last
        frames.section_from[following] = frames.section_from[frame]
        frames.section_until[following] = frames.section_until[frame]
        frames.bound[following] = state.offset[item]
        frames.back_to[following] = frame
        return True
    if counters[AGENDA_HEAD] >= 0:
        take_from_agenda(state, frames, agenda)
    return True


@kernel
def search(
    given: Given,
    state: State,
    frames: Frames,
    agenda: Agenda,
    memo: Memo,
    capacity: int,
    node_limit: int,
    rules: int,
) -> int:
    """Run until packed, exhausted or out of nodes; it may be called again then.

    The caller sets up frame 0 with the whole sub-problem. What is returned is one of ``PACKED``
    (offsets in ``state.offset``), ``EXHAUSTED`` (there is no packing) and ``PAUSED``.
    """
    counters = state.counters
    items = frames.last[0] - frames.first[0]
    if counters[STARTED] == 0:
        counters[STARTED] = 1
        open_frame(given, state, frames, memo, capacity, rules)
        counters[DEPTH] = 1
    while counters[NODES] < node_limit:
        frame = counters[DEPTH] - 1
        item = next_choice(state, frames, frame)
        failed = frame
        if item < 0:
            remember(memo, frames, frame, rules)
            failed = frames.back_to[frame]
        else:
            counters[NODES] += 1
            if place_next(given, state, frames, agenda, item, capacity, rules):
                if counters[DEPTH] == items:
                    return PACKED
                if open_frame(given, state, frames, memo, capacity, rules):
                    counters[DEPTH] += 1
                    continue
                # What is known to fail may come from the agenda and not follow this frame's choice.
                failed = frames.back_to[counters[DEPTH]]
        if not choice_failed(given, state, frames, memo, failed, capacity, rules):
            return EXHAUSTED
    return PAUSED
