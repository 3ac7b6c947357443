"""The depth-first search: flat arrays, explicit frames, an undo trail.

The idea is that of MiniMalloc (Moffitt, ASPLOS 2023, doi 10.1145/3623278.3624752): items in order
of offset, so that a partial packing is a skyline; split at cuts in time; prune by sections. What
is new here: bars instead of a canonical order of ties, watched witnesses and the look-ahead on
them, and the order of preference learnt from failures.

**Why no solution is lost.** Call a packing of unplaced items on top of placed ones *settled* when,
among all such packings inside the capacity, the sum of ``units * offset`` is least. If there is a
packing, there is a settled one, and in it no item can be moved down with the others left where they
are: each lies at 0 or directly on an item it conflicts with, rounded up to its alignment and past
obstacles. So, when the items of a settled packing are sorted by offset, each lies at the lowest
offset that the items before it allow (``State.low``). The search places items one at a time at this
offset, at each step the open item that can lie lowest first; it reaches every settled packing.

A *bar* forbids an item its present lowest offset until it is lifted. Take, of all settled packings
that keep a node's bars and bound, the one that the search would reach first. The rules below never
cut its path off, so a node that holds one succeeds. (With packings of part of the items on top of
placed ones that part of a settled packing is settled again, so the argument holds at every node.)

*Tried.* An item that was tried at a node and failed is barred for the node's later choices. A
settled packing that has it at this offset next to a later choice of equal or higher offset has it
among the items that come next, and was looked for when it was tried.

*Canonical.* Offsets never decrease from one placed item to the next (``Frames.bound``): a settled
packing sorted by offset is such a sequence.

*Dominance.* No item is placed at or above the lowest possible top of an unplaced item ``u``
(``Frames.highest``). All later items of the sub-problem would lie at or above that top, so ``u``
could be moved down to its lowest offset: the packing would not be settled.

*Floors.* After each placement every section of the sub-problem is looked at, for an item may be
lifted in sections that it does not share with the one just placed. A section's remaining units must
fit above the least offset that its unplaced items can have: they lie side by side, at or above the
item just placed.

*Memo.* A state that failed once is not searched again under the same or a higher bound. What can
follow depends on the unplaced items, the lowest offset of each, their bars and the bound; a higher
bound allows a subset. The order of preference does not matter, so runs share what failed: wherever
the state is met again, its bars are items that were tried and failed there too, and a packing that
one of them excludes was looked for. States are compared by 128-bit hashes: among a billion states
the chance that any two collide is below 1e-20.

*Twins.* With an item that was tried and failed, the items that nothing tells apart from it are
barred. Exchanging two of them in a settled packing gives a settled packing, which was looked for.

*Stacked.* Of two items that live in the same sections, the barred one does not go directly on the
other. Exchanging the two leaves all others where they are and changes the sum by ``units * units' -
units' * units = 0``: the result is settled too, and has the barred item at the offset that was
tried. (The exchange of W. E. Smith, 1956, doi 10.1002/nav.3800030106.)

*Split.* Where no unplaced item spans a cut in time, the two sides are searched apart. Neither side
restricts the other, so when one fails no other packing of the first can help.

*Look-ahead.* An item that cannot have its lowest offset, because it is barred or below the bound,
counts as lying higher when sections are looked at. In a settled packing it then lies on an item
that is yet to be placed, at or above the bound, thus above it by at least what unplaced items raise
others by (``Tables.lift``). A section's next item lies on one that does not live there, which would
itself be the next: where no such item can lie low enough, it is not the next one.
"""

import cython

from spmilp.compiled import address, in_c
from spmilp.packing.arrays import Agenda, Arrays, Frames, Memo, Outline, State, Tables

if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from spmilp.compiled import whole
    from spmilp.packing.arrays import (
        AGENDA_HEAD,
        DEPTH,
        EXHAUSTED,
        NODES,
        PACKED,
        PAUSED,
        POOL,
        STARTED,
        TRAIL,
        agenda_in,
        arrays_at,
        frames_in,
        memo_at,
        memo_in,
        outline_in,
        state_in,
        tables_in,
    )

    NO_LIMIT = 2**62
    WORTH_REMEMBERING = 3
    """Sub-problems of fewer items take less time to search again than to look up."""
    PROBES = 4
    """Slots of the table of failed states that a state may take: a power of 2."""

    # Multipliers of splitmix64 (Steele, Lea, Flood: OOPSLA 2014, doi 10.1145/2660193.2660195).
    MULTIPLIER_1 = 0xBF58476D1CE4E5B9
    MULTIPLIER_2 = 0x94D049BB133111EB
    STRIDE_1 = 0x9E3779B97F4A7C15
    STRIDE_2 = 0xD1342543DE82EF95

    def wrapped(value: int) -> int:
        """Return the lowest 64 bits, which are all that C has."""
        return int(value) & (2**64 - 1)


def put(tables: Tables, state: State, item: int, offset: int) -> bool:
    """Fix an item's offset; return whether a cut in time became free of unplaced items."""
    state.offset[item] = offset
    for k in range(tables.outline.run_start[item], tables.outline.run_start[item + 1]):
        units = tables.outline.run_units[k]
        for section in range(tables.outline.run_from[k], tables.outline.run_until[k]):
            state.remaining[section] -= units
            leave(
                tables,
                state,
                section,
                tables.incidence_start[k] + section - tables.outline.run_from[k],
            )
    opened = False
    for cut in range(tables.hull_from[item] + 1, tables.hull_until[item]):
        state.spanning[cut] -= 1
        if state.spanning[cut] == 0:
            opened = True
    return opened


def leave(tables: Tables, state: State, section: int, incidence: int) -> None:
    """Move an incidence behind those of the unplaced items; counting up again undoes it."""
    state.alive[section] -= 1
    here = state.incidence_position[incidence]
    last = tables.member_start[section] + state.alive[section]
    other = state.member_incidence[last]
    state.member[here], state.member[last] = state.member[last], state.member[here]
    state.member_incidence[here], state.member_incidence[last] = other, incidence
    state.incidence_position[other], state.incidence_position[incidence] = here, last


def lift_neighbours(tables: Tables, state: State, item: int) -> bool:
    """Raise the lowest offsets of unplaced items above a placed one; False if one is too high."""
    trail = state.counters[TRAIL]
    offset = state.offset[item]
    top = offset + tables.outline.units[item]
    own = tables.exchange_class[item]
    fits = True
    for k in range(tables.pair_start[item], tables.pair_start[item + 1]):
        other = tables.pair_item[k]
        bottom = top if tables.is_uniform else offset + tables.pair_extent[k]
        low = state.low[other]
        if state.offset[other] >= 0 or bottom <= low:
            continue
        barred = state.barred[other]
        state.trail_item[trail] = other
        state.trail_low[trail] = 2 * low + barred
        trail += 1
        bottom = next_free(outline_in(tables.outline), other, bottom)
        state.low[other] = bottom
        stacked = own >= 0 and tables.exchange_class[other] == own and low == offset
        state.barred[other] = 1 if barred and stacked else 0
        if bottom > state.latest[other]:
            fits = False
            break
    state.counters[TRAIL] = trail
    return fits


def bar(state: State, item: int) -> None:
    """Forbid an unplaced item its lowest offset until it is lifted."""
    trail = state.counters[TRAIL]
    state.trail_item[trail] = item
    state.trail_low[trail] = 2 * state.low[item] + state.barred[item]
    state.counters[TRAIL] = trail + 1
    state.barred[item] = 1


def take_back(tables: Tables, state: State, item: int, mark: int) -> None:
    """Undo ``put`` and the lifts and bars that followed it, down to the mark on the trail."""
    for k in range(state.counters[TRAIL] - 1, mark - 1, -1):
        other = state.trail_item[k]
        state.low[other] = state.trail_low[k] >> 1
        state.barred[other] = state.trail_low[k] & 1
    state.counters[TRAIL] = mark
    state.offset[item] = -1
    for k in range(tables.outline.run_start[item], tables.outline.run_start[item + 1]):
        units = tables.outline.run_units[k]
        for section in range(tables.outline.run_from[k], tables.outline.run_until[k]):
            state.remaining[section] += units
            state.alive[section] += 1
    for cut in range(tables.hull_from[item] + 1, tables.hull_until[item]):
        state.spanning[cut] += 1


def fill_state(
    tables: Tables, state: State, items: int, section_from: int, section_until: int
) -> None:
    """Count the units in each section and the items across each cut; nothing is placed yet."""
    for slot in range(items):
        item = state.order[slot]
        for k in range(tables.outline.run_start[item], tables.outline.run_start[item + 1]):
            for section in range(tables.outline.run_from[k], tables.outline.run_until[k]):
                state.remaining[section] += tables.outline.run_units[k]
        for cut in range(tables.hull_from[item] + 1, tables.hull_until[item]):
            state.spanning[cut] += 1
    for section in range(section_from, section_until):
        if tables.member_start[section] < tables.member_start[section + 1]:
            state.witness[section] = tables.member[tables.member_start[section]]


def next_free(outline: Outline, item: int, offset: int) -> int:
    """Return the lowest offset from ``offset`` on that is aligned and clear of obstacles."""
    alignment = outline.alignment[item]
    if alignment > 1:
        offset = -(-offset // alignment) * alignment
    for k in range(outline.blocked_start[item], outline.blocked_start[item + 1]):
        if offset < outline.blocked_from[k]:
            break
        if offset < outline.blocked_until[k]:
            offset = outline.blocked_until[k]
            if alignment > 1:
                offset = -(-offset // alignment) * alignment
    return offset


def highest_floor(tables: Tables, section: int, remaining: int, capacity: int) -> int:
    """Return the highest offset above which ``remaining`` units of the section are still free."""
    top = capacity
    for k in range(tables.obstacle_start[section + 1] - 1, tables.obstacle_start[section] - 1, -1):
        gap = top - tables.obstacle_until[k]
        if gap >= remaining:
            return top - remaining
        if gap > 0:
            remaining -= gap
        top = min(top, tables.obstacle_from[k])
    return top - remaining


def can_lie(
    tables: Tables, state: State, item: int, section: int, bound: int, step: int, highest: int
) -> bool:
    """Return whether an unplaced item can be the next of a section, at or below ``highest``.

    ``step`` is the least height by which an item is lifted; 0 asks about lowest offsets alone.
    """
    if state.offset[item] >= 0:
        return False
    low = state.low[item]
    if low >= bound and not state.barred[item]:
        return bool(low <= highest)
    if max(low, bound) + step > highest:
        return False
    return step == 0 or can_be_lifted(tables, state, item, section, bound, step, highest)


def can_be_lifted(
    tables: Tables, state: State, item: int, section: int, bound: int, step: int, highest: int
) -> bool:
    """Return whether an unplaced item that does not live in the section can lift one so far.

    An item of the section would itself be the next one there.
    """
    for k in range(tables.pair_start[item], tables.pair_start[item + 1]):
        other = tables.pair_item[k]
        if state.offset[other] >= 0:
            continue
        low = max(state.low[other], bound)
        if low > highest:
            continue
        extent = tables.outline.units[other] if tables.is_uniform else 1
        if state.barred[other] or state.low[other] < bound:
            low += step
        if low + extent <= highest and not lives_in(tables, other, section):
            return True
    return False


def lives_in(tables: Tables, item: int, section: int) -> bool:
    """Return whether the section is one of the item's."""
    for k in range(tables.outline.run_start[item], tables.outline.run_start[item + 1]):
        if tables.outline.run_from[k] <= section < tables.outline.run_until[k]:
            return True
    return False


def section_fits(
    tables: Tables, state: State, section: int, bound: int, step: int, capacity: int
) -> bool:
    """Return whether the section's remaining units fit above the item that can lie lowest.

    An item that can lie low enough is witness of that, and is kept in mind until it no longer is.
    Where nothing fits, the weight of the unplaced items rises: preferring them later is the
    failure-directed ordering of Boussemart et al. (ECAI 2004).
    """
    remaining = state.remaining[section]
    if remaining == 0:
        return True
    highest = highest_floor(tables, section, remaining, capacity)
    first = tables.member_start[section]
    until = first + state.alive[section]
    if bound <= highest:
        if can_lie(tables, state, state.witness[section], section, bound, step, highest):
            return True
        for k in range(first, until):
            item = state.member[k]
            if can_lie(tables, state, item, section, bound, step, highest):
                state.witness[section] = item
                return True
    for k in range(first, until):
        state.weight[state.member[k]] += 1
    return False


def items_sections_fit(
    tables: Tables, state: State, item: int, bound: int, step: int, capacity: int
) -> bool:
    """Return whether every section that the item lives in still fits."""
    for k in range(tables.outline.run_start[item], tables.outline.run_start[item + 1]):
        for section in range(tables.outline.run_from[k], tables.outline.run_until[k]):
            if not section_fits(tables, state, section, bound, step, capacity):
                return False
    return True


def scramble(value: int) -> int:
    """Return a 64-bit permutation of ``value`` in which every bit depends on every bit."""
    value = wrapped((value ^ (value >> 30)) * MULTIPLIER_1)
    value = wrapped((value ^ (value >> 27)) * MULTIPLIER_2)
    return value ^ (value >> 31)


def is_in_slot(memo: Memo, slot: int, key: int, check: int) -> bool:
    """Return whether a slot holds the state of a hash; an empty one holds that of zeros."""
    return wrapped(memo.key[slot]) == key and wrapped(memo.check[slot]) == check


def is_known_to_fail(memo: Memo, key: int, check: int, bound: int) -> bool:
    """Return whether the state failed under a bound that allowed at least as much."""
    last = memo.size - 1
    start = whole(key) & last
    for probe in range(PROBES):
        slot = (start + probe) & last
        if is_in_slot(memo, slot, key, check):
            return bool(memo.bound[slot] <= bound)
    return False


def remember(memo: Memo, frames: Frames, frame: int) -> None:
    """Note that the frame's state failed."""
    if frames.last[frame] - frames.first[frame] >= WORTH_REMEMBERING:
        key, check = wrapped(frames.key[frame]), wrapped(frames.check[frame])
        keep(memo, key, check, frames.bound[frame])


def keep(memo: Memo, key: int, check: int, bound: int) -> None:
    """Keep a state that failed; forget another one when all probed slots are taken."""
    last = memo.size - 1
    start = whole(key) & last
    chosen = (start + (whole(check) & (PROBES - 1))) & last
    for probe in range(PROBES):
        slot = (start + probe) & last
        if is_in_slot(memo, slot, key, check) or is_in_slot(memo, slot, 0, 0):
            chosen = slot
            break
    memo.key[chosen] = key
    memo.check[chosen] = check
    memo.bound[chosen] = bound


def keep_all(memo: Memo, failed: Memo) -> None:
    """Keep the states of another table."""
    for slot in range(failed.size):
        if not is_in_slot(failed, slot, 0, 0):
            key, check = wrapped(failed.key[slot]), wrapped(failed.check[slot])
            keep(memo, key, check, failed.bound[slot])


def open_frame(tables: Tables, state: State, frames: Frames, memo: Memo) -> bool:
    """Fill in the next frame, whose items and sections are set; False if it is known to fail."""
    frame = state.counters[DEPTH]
    lowest_top = NO_LIMIT
    step = NO_LIMIT
    key = wrapped(0)
    check = wrapped(0)
    for k in range(frames.first[frame], frames.last[frame]):
        item = state.order[k]
        low = state.low[item]
        step = min(step, tables.lift[item])
        lowest_top = min(lowest_top, low + tables.outline.units[item])
        mixed = wrapped(item + 1) * STRIDE_1
        mixed = wrapped(mixed + wrapped(2 * low + state.barred[item]) * STRIDE_2)
        key = wrapped(key + scramble(mixed))
        check = wrapped(check + scramble(mixed ^ STRIDE_2))
    frames.highest[frame] = lowest_top - 1
    frames.step[frame] = step
    frames.placed[frame] = -1
    frames.key[frame] = key
    frames.check[frame] = check
    frames.agenda[frame] = state.counters[AGENDA_HEAD]
    frames.pool[frame] = state.counters[POOL]
    large = frames.last[frame] - frames.first[frame] >= WORTH_REMEMBERING
    return not (large and is_known_to_fail(memo, key, check, frames.bound[frame]))


def next_choice(state: State, frames: Frames, frame: int) -> int:
    """Return the open item that can lie lowest; of equal ones by weight, then rank; or -1."""
    bound = frames.bound[frame]
    best = -1
    best_offset = frames.highest[frame]
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


def bar_with_twins(tables: Tables, state: State, frames: Frames, frame: int, item: int) -> None:
    """Bar an item that failed and the unplaced ones that nothing tells apart from it."""
    bar(state, item)
    twins = tables.twin_class[item]
    if twins < 0:
        return
    for k in range(frames.first[frame], frames.last[frame]):
        other = state.order[k]
        if other != item and tables.twin_class[other] == twins and not state.barred[other]:
            bar(state, other)


def choice_failed(
    tables: Tables, state: State, frames: Frames, memo: Memo, frame: int, capacity: int
) -> bool:
    """Take a frame's choice back for good; fail on down as far as it follows; False at the root.

    When the item was the last one that could lie low enough in one of its sections, no other
    choice of the frame can succeed.
    """
    while frame >= 0:
        item = frames.placed[frame]
        back_to(tables, state, frames, frame)
        bar_with_twins(tables, state, frames, frame, item)
        bound, step = frames.bound[frame], frames.step[frame]
        if items_sections_fit(tables, state, item, bound, step, capacity):
            return True
        remember(memo, frames, frame)
        frame = frames.back_to[frame]
    return False


def move_behind(state: State, item: int, last: int) -> None:
    """Exchange an item with the one at ``last - 1`` in the order of items."""
    here = state.position[item]
    other = state.order[last - 1]
    state.order[here] = other
    state.position[other] = here
    state.order[last - 1] = item
    state.position[item] = last - 1


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


def place_next(
    tables: Tables, state: State, frames: Frames, agenda: Agenda, item: int, capacity: int
) -> bool:
    """Place an item in the top frame and set up what follows; False if that cannot succeed."""
    counters = state.counters
    frame = counters[DEPTH] - 1
    last = frames.last[frame] - 1
    frames.placed[frame] = item
    frames.mark[frame] = counters[TRAIL]
    move_behind(state, item, last + 1)
    bound, step = state.low[item], frames.step[frame]
    opened = put(tables, state, item, bound)
    if not lift_neighbours(tables, state, item):
        return False
    for section in range(frames.section_from[frame], frames.section_until[frame]):
        if not section_fits(tables, state, section, bound, step, capacity):
            return False
    if opened:
        split_at_cuts(tables, state, frames, agenda, frame, last)
    elif last > frames.first[frame]:
        following = frame + 1
        frames.first[following] = frames.first[frame]
        frames.last[following] = last
        frames.section_from[following] = frames.section_from[frame]
        frames.section_until[following] = frames.section_until[frame]
        frames.bound[following] = bound
        frames.back_to[following] = frame
        return True
    if counters[AGENDA_HEAD] >= 0:
        take_from_agenda(state, frames, agenda)
    return True


def _search(
    tables: Tables,
    state: State,
    frames: Frames,
    agenda: Agenda,
    memo: Memo,
    capacity: int,
    node_limit: int,
) -> int:
    counters = state.counters
    items = frames.last[0] - frames.first[0]
    if counters[STARTED] == 0:
        counters[STARTED] = 1
        fill_state(tables, state, items, frames.section_from[0], frames.section_until[0])
        open_frame(tables, state, frames, memo)
        counters[DEPTH] = 1
    while counters[NODES] < node_limit:
        frame = counters[DEPTH] - 1
        item = next_choice(state, frames, frame)
        failed = frame
        if item < 0:
            remember(memo, frames, frame)
            failed = frames.back_to[frame]
        else:
            counters[NODES] += 1
            if place_next(tables, state, frames, agenda, item, capacity):
                if counters[DEPTH] == items:
                    return PACKED
                if open_frame(tables, state, frames, memo):
                    counters[DEPTH] += 1
                    continue
                # What is known to fail may come from the agenda and not follow this frame's choice.
                failed = frames.back_to[counters[DEPTH]]
        if not choice_failed(tables, state, frames, memo, failed, capacity):
            return EXHAUSTED
    return PAUSED


def search(arrays: Arrays, node_limit: int) -> int:
    """Run until packed, exhausted or out of nodes; it may be called again then.

    The caller sets up frame 0 with the whole sub-problem. What is returned is one of ``PACKED``
    (offsets in ``state.offset``), ``EXHAUSTED`` (there is no packing) and ``PAUSED``.
    """
    kept = in_c(arrays)
    here, most = arrays_at(address(kept)), whole(node_limit)
    tables, state, frames = tables_in(here.tables), state_in(here.state), frames_in(here.frames)
    agenda, memo, capacity = agenda_in(here.agenda), memo_in(here.memo), whole(here.capacity)
    with cython.nogil:
        result = _search(tables, state, frames, agenda, memo, capacity, most)
    return int(result)


def move_states(failed: Memo, memo: Memo) -> None:
    """Copy the states of a table to a larger one, which is empty."""
    kept, kept_memo = in_c(failed), in_c(memo)
    smaller, larger = memo_at(address(kept)), memo_at(address(kept_memo))
    with cython.nogil:
        keep_all(larger, smaller)
