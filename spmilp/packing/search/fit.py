"""Where an item can still lie, and whether a section's unplaced items still fit."""

from spmilp.compiled import kernel, part
from spmilp.packing.search.arrays import Places, Settings, State, Tables
from spmilp.packing.search.rules import CANONICAL, FLOORS


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


@kernel
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
