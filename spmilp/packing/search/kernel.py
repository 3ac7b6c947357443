"""The depth-first search itself: flat arrays, explicit frames, an undo trail.

The idea is that of MiniMalloc (Moffitt, ASPLOS 2023, doi 10.1145/3623278.3624752): items in order
of offset, so that a partial packing is a skyline; split at cuts in time; prune by sections. What
is new here: bars instead of a canonical order of ties, watched witnesses and the look-ahead on
them, and the order of preference learnt from failures.
"""

from spmilp.compiled import part, standalone
from spmilp.packing.search.arrays import Agenda, Frames, Memo, Settings, State, Tables
from spmilp.packing.search.frames import choice_failed, next_choice, open_frame, remember
from spmilp.packing.search.place import fill_state, lift_neighbours, put, sections_fit
from spmilp.packing.search.rules import (
    AGENDA_HEAD,
    DEPTH,
    EXHAUSTED,
    NODES,
    PACKED,
    PAUSED,
    POOL,
    SPLIT,
    STARTED,
    TRAIL,
)


@part
def move_behind(state: State, item: int, last: int) -> None:
    """Exchange an item with the one at ``last - 1`` in the order of items."""
    here = state.position[item]
    other = state.order[last - 1]
    state.order[here] = other
    state.position[other] = here
    state.order[last - 1] = item
    state.position[item] = last - 1


@part
def split_at_cuts(
    tables: Tables, state: State, frames: Frames, agenda: Agenda, frame: int, last: int
) -> None:
    """Put the independent parts of ``order[first:last]`` on the agenda, the earliest first."""
    counters = state.counters
    first = frames.first[frame]
    section_until = frames.section_until[frame]
    lives = False
    # From late to early: each part moves behind what is left, and becomes the agenda's head.
    for cut in range(section_until - 1, frames.section_from[frame] - 1, -1):
        lives = lives or state.remaining[cut] > 0
        if cut > frames.section_from[frame] and state.spanning[cut] > 0:
            continue
        if lives:
            part_last = last
            k = first
            while k < last:
                item = state.order[k]
                if tables.hull_from[item] >= cut:
                    move_behind(state, item, last)
                    last -= 1
                else:
                    k += 1
            slot = counters[POOL]
            agenda.first[slot] = last
            agenda.last[slot] = part_last
            agenda.section_from[slot] = cut
            agenda.section_until[slot] = section_until
            agenda.bound[slot] = state.offset[frames.placed[frame]]
            agenda.back_to[slot] = frame
            agenda.rest[slot] = counters[AGENDA_HEAD]
            counters[AGENDA_HEAD] = slot
            counters[POOL] = slot + 1
        section_until = cut
        lives = False


@part
def take_from_agenda(state: State, frames: Frames, agenda: Agenda) -> None:
    """Make the agenda's head the next frame's sub-problem."""
    slot = state.counters[AGENDA_HEAD]
    frame = state.counters[DEPTH]
    frames.first[frame] = agenda.first[slot]
    frames.last[frame] = agenda.last[slot]
    frames.section_from[frame] = agenda.section_from[slot]
    frames.section_until[frame] = agenda.section_until[slot]
    frames.bound[frame] = agenda.bound[slot]
    frames.back_to[frame] = agenda.back_to[slot]
    state.counters[AGENDA_HEAD] = agenda.rest[slot]


@part
def place_next(
    tables: Tables,
    state: State,
    frames: Frames,
    agenda: Agenda,
    item: int,
    settings: Settings,
) -> bool:
    """Place an item in the top frame and set up what follows; False if that cannot succeed."""
    counters = state.counters
    frame = counters[DEPTH] - 1
    last = frames.last[frame] - 1
    frames.placed[frame] = item
    frames.mark[frame] = counters[TRAIL]
    move_behind(state, item, last + 1)
    opened = put(tables, state, item, state.low[item])
    if not lift_neighbours(tables, state, item, settings.rules) or not sections_fit(
        tables,
        state,
        item,
        frames.section_from[frame],
        frames.section_until[frame],
        frames.step[frame],
        settings,
    ):
        return False
    if opened and settings.rules & SPLIT:
        split_at_cuts(tables, state, frames, agenda, frame, last)
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


@standalone
def search(
    tables: Tables,
    state: State,
    frames: Frames,
    agenda: Agenda,
    memo: Memo,
    settings: Settings,
    node_limit: int,
) -> int:
    """Run until packed, exhausted or out of nodes; it may be called again then.

    The caller sets up frame 0 with the whole sub-problem. What is returned is one of ``PACKED``
    (offsets in ``state.offset``), ``EXHAUSTED`` (there is no packing) and ``PAUSED``.
    """
    counters = state.counters
    items = frames.last[0] - frames.first[0]
    if counters[STARTED] == 0:
        counters[STARTED] = 1
        fill_state(tables, state, items, frames.section_from[0], frames.section_until[0])
        open_frame(tables, state, frames, memo, settings)
        counters[DEPTH] = 1
    while counters[NODES] < node_limit:
        frame = counters[DEPTH] - 1
        item = next_choice(state, frames, frame)
        failed = frame
        if item < 0:
            remember(memo, frames, frame, settings.rules)
            failed = frames.back_to[frame]
        else:
            counters[NODES] += 1
            if place_next(tables, state, frames, agenda, item, settings):
                if counters[DEPTH] == items:
                    return PACKED
                if open_frame(tables, state, frames, memo, settings):
                    counters[DEPTH] += 1
                    continue
                # What is known to fail may come from the agenda and not follow this frame's choice.
                failed = frames.back_to[counters[DEPTH]]
        if not choice_failed(tables, state, frames, memo, failed, settings):
            return EXHAUSTED
    return PAUSED
