"""Placing an item and taking it back, where it can still lie, and whether sections still fit."""

from spmilp.compiled import part, standalone
from spmilp.packing.search.arrays import Places, Settings, State, Tables
from spmilp.packing.search.rules import CANONICAL, FLOORS, STACKED, TRAIL


@part
def put(tables: Tables, state: State, item: int, offset: int) -> bool:
    """Fix an item's offset; return whether a cut in time became free of unplaced items."""
    state.offset[item] = offset
    for k in range(tables.run_start[item], tables.run_start[item + 1]):
        units = tables.run_units[k]
        for section in range(tables.run_from[k], tables.run_until[k]):
            state.remaining[section] -= units
            leave(tables, state, section, tables.incidence_start[k] + section - tables.run_from[k])
    opened = False
    for cut in range(tables.hull_from[item] + 1, tables.hull_until[item]):
        state.spanning[cut] -= 1
        if state.spanning[cut] == 0:
            opened = True
    return opened


@part
def leave(tables: Tables, state: State, section: int, incidence: int) -> None:
    """Move an incidence behind those of the unplaced items; counting up again undoes it."""
    state.alive[section] -= 1
    here = state.incidence_position[incidence]
    last = tables.member_start[section] + state.alive[section]
    other = state.member_incidence[last]
    state.member[here], state.member[last] = state.member[last], state.member[here]
    state.member_incidence[here], state.member_incidence[last] = other, incidence
    state.incidence_position[other], state.incidence_position[incidence] = here, last


@part
def lift_neighbours(tables: Tables, state: State, item: int, rules: int) -> bool:
    """Raise the lowest offsets of unplaced items above a placed one; False if one is too high."""
    trail = state.counters[TRAIL]
    offset = state.offset[item]
    top = offset + tables.units[item]
    own = tables.exchange_class[item] if rules & STACKED else -1
    uniform = tables.pair_extent.size == 0
    fits = True
    for k in range(tables.pair_start[item], tables.pair_start[item + 1]):
        other = tables.pair_item[k]
        bottom = top if uniform else offset + tables.pair_extent[k]
        low = state.low[other]
        if state.offset[other] >= 0 or bottom <= low:
            continue
        barred = state.barred[other]
        state.trail_item[trail] = other
        state.trail_low[trail] = 2 * low + barred
        trail += 1
        bottom = next_free(tables, other, bottom)
        state.low[other] = bottom
        stacked = own >= 0 and tables.exchange_class[other] == own and low == offset
        state.barred[other] = 1 if barred and stacked else 0
        if bottom > state.latest[other]:
            fits = False
            break
    state.counters[TRAIL] = trail
    return fits


@part
def bar(state: State, item: int) -> None:
    """Forbid an unplaced item its lowest offset until it is lifted."""
    trail = state.counters[TRAIL]
    state.trail_item[trail] = item
    state.trail_low[trail] = 2 * state.low[item] + state.barred[item]
    state.counters[TRAIL] = trail + 1
    state.barred[item] = 1


@part
def take_back(tables: Tables, state: State, item: int, mark: int) -> None:
    """Undo ``put`` and the lifts and bars that followed it, down to the mark on the trail."""
    for k in range(state.counters[TRAIL] - 1, mark - 1, -1):
        other = state.trail_item[k]
        state.low[other] = state.trail_low[k] >> 1
        state.barred[other] = state.trail_low[k] & 1
    state.counters[TRAIL] = mark
    state.offset[item] = -1
    for k in range(tables.run_start[item], tables.run_start[item + 1]):
        units = tables.run_units[k]
        for section in range(tables.run_from[k], tables.run_until[k]):
            state.remaining[section] += units
            state.alive[section] += 1
    for cut in range(tables.hull_from[item] + 1, tables.hull_until[item]):
        state.spanning[cut] += 1


@part
def fill_state(
    tables: Tables, state: State, items: int, section_from: int, section_until: int
) -> None:
    """Count the units in each section and the items across each cut; nothing is placed yet."""
    for slot in range(items):
        item = state.order[slot]
        for k in range(tables.run_start[item], tables.run_start[item + 1]):
            for section in range(tables.run_from[k], tables.run_until[k]):
                state.remaining[section] += tables.run_units[k]
        for cut in range(tables.hull_from[item] + 1, tables.hull_until[item]):
            state.spanning[cut] += 1
    for section in range(section_from, section_until):
        if tables.member_start[section] < tables.member_start[section + 1]:
            state.witness[section] = tables.member[tables.member_start[section]]


@part
def next_free(tables: Places, item: int, offset: int) -> int:
    """Return the lowest offset from ``offset`` on that is aligned and clear of obstacles."""
    alignment = tables.alignment[item]
    if alignment > 1:
        offset = -(-offset // alignment) * alignment
    for k in range(tables.blocked_start[item], tables.blocked_start[item + 1]):
        if offset < tables.blocked_from[k]:
            break
        if offset < tables.blocked_until[k]:
            offset = tables.blocked_until[k]
            if alignment > 1:
                offset = -(-offset // alignment) * alignment
    return offset


@standalone
def fill_lowest(tables: Tables) -> None:
    """Set ``tables.lowest``: the lowest offset of each item in an empty memory."""
    for item in range(tables.lowest.size):
        tables.lowest[item] = next_free(tables, item, 0)


@part
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


@part
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


@part
def can_be_lifted(
    tables: Tables, state: State, item: int, section: int, bound: int, step: int, highest: int
) -> bool:
    """Return whether an unplaced item that does not live in the section can lift one so far.

    An item of the section would itself be the next one there.
    """
    uniform = tables.pair_extent.size == 0
    for k in range(tables.pair_start[item], tables.pair_start[item + 1]):
        other = tables.pair_item[k]
        if state.offset[other] >= 0:
            continue
        low = max(state.low[other], bound)
        if low > highest:
            continue
        extent = tables.units[other] if uniform else 1
        if state.barred[other] or state.low[other] < bound:
            low += step
        if low + extent <= highest and not lives_in(tables, other, section):
            return True
    return False


@part
def lives_in(tables: Tables, item: int, section: int) -> bool:
    """Return whether the section is one of the item's."""
    for k in range(tables.run_start[item], tables.run_start[item + 1]):
        if tables.run_from[k] <= section < tables.run_until[k]:
            return True
    return False


@part
def section_fits(
    tables: Tables, state: State, section: int, bound: int, step: int, capacity: int
) -> bool:
    """Return whether the section's remaining units fit above the item that can lie lowest.

    An item that can lie low enough is witness of that, and is kept in mind until it no longer is.
    """
    remaining = state.remaining[section]
    if tables.obstacle_start[section] == tables.obstacle_start[section + 1]:
        highest = capacity - remaining
    else:
        highest = highest_floor(tables, section, remaining, capacity)
    if bound > highest:
        return False
    if can_lie(tables, state, state.witness[section], section, bound, step, highest):
        return True
    first = tables.member_start[section]
    for k in range(first, first + state.alive[section]):
        item = state.member[k]
        if can_lie(tables, state, item, section, bound, step, highest):
            state.witness[section] = item
            return True
    return False


@part
def blame(tables: Tables, state: State, section: int) -> None:
    """Raise the weight of the unplaced items of a section that no longer fits.

    Preferring them later is the failure-directed ordering of Boussemart et al. (ECAI 2004).
    """
    first = tables.member_start[section]
    for k in range(first, first + state.alive[section]):
        state.weight[state.member[k]] += 1


@part
def items_sections_fit(
    tables: Tables, state: State, item: int, bound: int, step: int, capacity: int
) -> bool:
    """Return whether every section that the item lives in still fits."""
    for k in range(tables.run_start[item], tables.run_start[item + 1]):
        for section in range(tables.run_from[k], tables.run_until[k]):
            if state.remaining[section] > 0 and not section_fits(
                tables, state, section, bound, step, capacity
            ):
                blame(tables, state, section)
                return False
    return True


@part
def sections_fit(
    tables: Tables,
    state: State,
    item: int,
    section_from: int,
    section_until: int,
    step: int,
    settings: Settings,
) -> bool:
    """Return whether the sections still fit after an item was placed; stop at the first misfit."""
    capacity = settings.capacity
    bound = state.offset[item] if settings.rules & CANONICAL else 0
    if not settings.rules & FLOORS:
        return items_sections_fit(tables, state, item, bound, step, capacity)
    for section in range(section_from, section_until):
        if state.remaining[section] > 0 and not section_fits(
            tables, state, section, bound, step, capacity
        ):
            blame(tables, state, section)
            return False
    return True
