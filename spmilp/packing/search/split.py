"""Independent sub-problems: found at cuts in time, kept on the agenda."""

from spmilp.compiled import part
from spmilp.packing.search.arrays import Agenda, Frames, Given, State
from spmilp.packing.search.rules import AGENDA_HEAD, DEPTH, POOL


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
    given: Given, state: State, frames: Frames, agenda: Agenda, frame: int, last: int
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
                if given.hull_from[item] >= cut:
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
