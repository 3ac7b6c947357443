"""Frames: opening one, choosing in it, leaving it."""

import numpy as np

from spmilp.compiled import part
from spmilp.packing.search.arrays import Frames, Given, Memo, State
from spmilp.packing.search.memo import (
    STRIDE_1,
    STRIDE_2,
    is_known_to_fail,
    remember_failure,
    scramble,
)
from spmilp.packing.search.place import bar, take_back
from spmilp.packing.search.room import highest_floor, items_sections_fit
from spmilp.packing.search.rules import (
    AGENDA_HEAD,
    CANONICAL,
    CUT_OFF,
    DEPTH,
    DOMINANCE,
    LOOKAHEAD,
    MEMO,
    MEMO_HITS,
    POOL,
    TWINS,
)

NO_LIMIT = 2**62
WORTH_REMEMBERING = 3
"""Sub-problems of fewer items are searched again sooner than looked up."""


@part
def open_frame(
    given: Given, state: State, frames: Frames, memo: Memo, capacity: int, rules: int
) -> bool:
    """Fill in the next frame, whose items and sections are set; False if it is known to fail."""
    frame = state.counters[DEPTH]
    lowest_top = NO_LIMIT
    step = NO_LIMIT
    key = np.uint64(0)
    check = np.uint64(0)
    for k in range(frames.first[frame], frames.last[frame]):
        item = state.order[k]
        low = state.low[item]
        step = min(step, given.lift[item])
        lowest_top = min(lowest_top, low + given.units[item])
        if rules & MEMO:
            mixed = np.uint64(item + 1) * STRIDE_1
            mixed += np.uint64(2 * low + state.barred[item]) * STRIDE_2
            key += scramble(mixed)
            check += scramble(mixed ^ STRIDE_2)
    cut_off = NO_LIMIT
    if rules & CUT_OFF:
        for section in range(frames.section_from[frame], frames.section_until[frame]):
            remaining = state.remaining[section]
            if remaining > 0:
                cut_off = min(cut_off, highest_floor(given, section, remaining, capacity))
    frames.dominated_from[frame] = lowest_top if rules & DOMINANCE else NO_LIMIT
    frames.cut_off[frame] = cut_off
    frames.step[frame] = step if rules & LOOKAHEAD else 0
    frames.placed[frame] = -1
    frames.key[frame] = key
    frames.check[frame] = check
    frames.agenda[frame] = state.counters[AGENDA_HEAD]
    frames.pool[frame] = state.counters[POOL]
    if not rules & CANONICAL:
        frames.bound[frame] = 0
    if is_worth_remembering(frames, frame, rules) and is_known_to_fail(
        memo, key, check, frames.bound[frame]
    ):
        state.counters[MEMO_HITS] += 1
        return False
    return True


@part
def is_worth_remembering(frames: Frames, frame: int, rules: int) -> bool:
    """Return whether the memo is used for this sub-problem."""
    large = frames.last[frame] - frames.first[frame] >= WORTH_REMEMBERING
    return (rules & MEMO) != 0 and large


@part
def next_choice(state: State, frames: Frames, frame: int) -> int:
    """Return the open item that can lie lowest; of equal ones by weight, then rank; or -1."""
    bound = frames.bound[frame]
    best = -1
    best_offset = min(frames.dominated_from[frame] - 1, frames.cut_off[frame])
    for k in range(frames.first[frame], frames.last[frame]):
        item = state.order[k]
        low = state.low[item]
        if low > best_offset or low < bound or state.barred[item]:
            continue
        if best >= 0 and low == best_offset:
            if state.weight[item] < state.weight[best]:
                continue
            if state.weight[item] == state.weight[best] and state.rank[item] > state.rank[best]:
                continue
        best, best_offset = item, low
    return best


@part
def back_to(given: Given, state: State, frames: Frames, frame: int) -> None:
    """Take back all that was placed since ``frame`` chose, its own choice included."""
    counters = state.counters
    for above in range(counters[DEPTH] - 1, frame - 1, -1):
        if frames.placed[above] >= 0:
            take_back(given, state, frames.placed[above], frames.mark[above])
            frames.placed[above] = -1
    counters[DEPTH] = frame + 1
    counters[AGENDA_HEAD] = frames.agenda[frame]
    counters[POOL] = frames.pool[frame]


@part
def bar_with_twins(given: Given, state: State, frames: Frames, frame: int, item: int) -> None:
    """Bar an item that failed and the unplaced ones that nothing tells apart from it."""
    likeness = given.likeness[item]
    for k in range(frames.first[frame], frames.last[frame]):
        other = state.order[k]
        if other != item and given.likeness[other] == likeness and not state.barred[other]:
            bar(state, other)


@part
def choice_failed(
    given: Given, state: State, frames: Frames, memo: Memo, frame: int, capacity: int, rules: int
) -> bool:
    """Take a frame's choice back for good; fail on down as far as it follows; False at the root.

    When the item was the last one that could lie low enough in one of its sections, no other
    choice of the frame can succeed.
    """
    while frame >= 0:
        item = frames.placed[frame]
        back_to(given, state, frames, frame)
        bar(state, item)
        if rules & TWINS and given.likeness[item] >= 0:
            bar_with_twins(given, state, frames, frame, item)
        if not rules & LOOKAHEAD:
            return True
        if items_sections_fit(
            given, state, item, frames.bound[frame], frames.step[frame], capacity
        ):
            return True
        remember(memo, frames, frame, rules)
        frame = frames.back_to[frame]
    return False


@part
def remember(memo: Memo, frames: Frames, frame: int, rules: int) -> None:
    """Note that the frame's state failed."""
    if is_worth_remembering(frames, frame, rules):
        remember_failure(memo, frames.key[frame], frames.check[frame], frames.bound[frame])
