"""Frames: opening one, choosing in it, leaving it; and the failed states that were met."""

import numpy as np

from spmilp.compiled import part
from spmilp.packing.search.arrays import Frames, Memo, Settings, State, Tables
from spmilp.packing.search.place import bar, highest_floor, items_sections_fit, take_back
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

# Multipliers and shifts of splitmix64 (Steele, Lea, Flood: OOPSLA 2014, doi
# 10.1145/2660193.2660195).
MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
STRIDE_1 = np.uint64(0x9E3779B97F4A7C15)
STRIDE_2 = np.uint64(0xD1342543DE82EF95)
SHIFT_1 = np.uint64(30)
SHIFT_2 = np.uint64(27)
SHIFT_3 = np.uint64(31)
PROBES = 4


@part
def scramble(value: np.uint64) -> np.uint64:
    """Return a 64-bit permutation of ``value`` in which every bit depends on every bit."""
    value = (value ^ (value >> SHIFT_1)) * MULTIPLIER_1
    value = (value ^ (value >> SHIFT_2)) * MULTIPLIER_2
    return value ^ (value >> SHIFT_3)


@part
def is_known_to_fail(memo: Memo, key: np.uint64, check: np.uint64, bound: int) -> bool:
    """Return whether the state failed under a bound that allowed at least as much."""
    size = memo.key.size
    start = np.int64(key & np.uint64(size - 1))
    for probe in range(PROBES):
        slot = (start + probe) & (size - 1)
        if memo.key[slot] == key and memo.check[slot] == check:
            return bool(memo.bound[slot] <= bound)
    return False


@part
def remember_failure(memo: Memo, key: np.uint64, check: np.uint64, bound: int) -> None:
    """Store a failed state; forget another one when all probed slots are taken."""
    size = memo.key.size
    start = np.int64(key & np.uint64(size - 1))
    chosen = (start + np.int64(check & np.uint64(PROBES - 1))) & (size - 1)
    for probe in range(PROBES):
        slot = (start + probe) & (size - 1)
        same = memo.key[slot] == key and memo.check[slot] == check
        empty = memo.key[slot] == 0 and memo.check[slot] == 0
        if same or empty:
            chosen = slot
            break
    memo.key[chosen] = key
    memo.check[chosen] = check
    memo.bound[chosen] = bound


@part
def open_frame(
    tables: Tables, state: State, frames: Frames, memo: Memo, settings: Settings
) -> bool:
    """Fill in the next frame, whose items and sections are set; False if it is known to fail."""
    rules = settings.rules
    frame = state.counters[DEPTH]
    lowest_top = NO_LIMIT
    step = NO_LIMIT
    key = np.uint64(0)
    check = np.uint64(0)
    for k in range(frames.first[frame], frames.last[frame]):
        item = state.order[k]
        low = state.low[item]
        step = min(step, tables.lift[item])
        lowest_top = min(lowest_top, low + tables.units[item])
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
                cut_off = min(cut_off, highest_floor(tables, section, remaining, settings.capacity))
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
def back_to(tables: Tables, state: State, frames: Frames, frame: int) -> None:
    """Take back all that was placed since ``frame`` chose, its own choice included."""
    counters = state.counters
    for above in range(counters[DEPTH] - 1, frame - 1, -1):
        if frames.placed[above] >= 0:
            take_back(tables, state, frames.placed[above], frames.mark[above])
            frames.placed[above] = -1
    counters[DEPTH] = frame + 1
    counters[AGENDA_HEAD] = frames.agenda[frame]
    counters[POOL] = frames.pool[frame]


@part
def bar_with_twins(tables: Tables, state: State, frames: Frames, frame: int, item: int) -> None:
    """Bar an item that failed and the unplaced ones that nothing tells apart from it."""
    twins = tables.twin_class[item]
    for k in range(frames.first[frame], frames.last[frame]):
        other = state.order[k]
        if other != item and tables.twin_class[other] == twins and not state.barred[other]:
            bar(state, other)


@part
def choice_failed(
    tables: Tables, state: State, frames: Frames, memo: Memo, frame: int, settings: Settings
) -> bool:
    """Take a frame's choice back for good; fail on down as far as it follows; False at the root.

    When the item was the last one that could lie low enough in one of its sections, no other
    choice of the frame can succeed.
    """
    rules = settings.rules
    while frame >= 0:
        item = frames.placed[frame]
        back_to(tables, state, frames, frame)
        bar(state, item)
        if rules & TWINS and tables.twin_class[item] >= 0:
            bar_with_twins(tables, state, frames, frame, item)
        if not rules & LOOKAHEAD:
            return True
        if items_sections_fit(
            tables, state, item, frames.bound[frame], frames.step[frame], settings.capacity
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
