"""Where an item can still lie, and whether a section's items still have room."""

from spmilp.compiled import kernel, part
from spmilp.packing.search.arrays import Given, Places, State
from spmilp.packing.search.rules import CANONICAL, FLOORS


@part
def next_free(given: Places, item: int, offset: int) -> int:
    """Return the lowest offset from ``offset`` on that is aligned and clear of obstacles."""
    alignment = given.alignment[item]
    if alignment > 1:
        offset = -(-offset // alignment) * alignment
    for k in range(given.blocked_start[item], given.blocked_start[item + 1]):
        if offset < given.blocked_from[k]:
            break
        if offset < given.blocked_until[k]:
            offset = given.blocked_until[k]
            if alignment > 1:
                offset = -(-offset // alignment) * alignment
    return offset


@kernel
def fill_lowest(given: Given) -> None:
    """Set ``given.lowest``: the lowest offset of each item in an empty memory."""
    for item in range(given.lowest.size):
        given.lowest[item] = next_free(given, item, 0)


@part
def highest_floor(given: Given, section: int, remaining: int, capacity: int) -> int:
    """Return the highest offset above which ``remaining`` units of the section are still free."""
    top = capacity
    for k in range(given.obstacle_start[section + 1] - 1, given.obstacle_start[section] - 1, -1):
        gap = top - given.obstacle_until[k]
        if gap >= remaining:
            return top - remaining
        if gap > 0:
            remaining -= gap
        top = min(top, given.obstacle_from[k])
    return top - remaining


@part
def can_lie(
    given: Given, state: State, item: int, section: int, bound: int, step: int, highest: int
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
    return step == 0 or can_be_lifted(given, state, item, section, bound, step, highest)


@part
def can_be_lifted(
    given: Given, state: State, item: int, section: int, bound: int, step: int, highest: int
) -> bool:
    """Return whether an unplaced item that does not live in the section can lift one so far.

    An item of the section would itself be the next one there.
    """
    uniform = given.pair_extent.size == 0
    for k in range(given.pair_start[item], given.pair_start[item + 1]):
        other = given.pair_item[k]
        if state.offset[other] >= 0:
            continue
        low = max(state.low[other], bound)
        if low > highest:
            continue
        extent = given.units[other] if uniform else 1
        if state.barred[other] or state.low[other] < bound:
            low += step
        if low + extent <= highest and not lives_in(given, other, section):
            return True
    return False


@part
def lives_in(given: Given, item: int, section: int) -> bool:
    """Return whether the section is one of the item's."""
    for k in range(given.run_start[item], given.run_start[item + 1]):
        if given.run_from[k] <= section < given.run_until[k]:
            return True
    return False


@part
def section_fits(
    given: Given, state: State, section: int, bound: int, step: int, capacity: int
) -> bool:
    """Return whether the section's remaining units fit above the item that can lie lowest.

    An item that can lie low enough is witness of that, and is kept in mind until it no longer is.
    """
    remaining = state.remaining[section]
    if given.obstacle_start[section] == given.obstacle_start[section + 1]:
        highest = capacity - remaining
    else:
        highest = highest_floor(given, section, remaining, capacity)
    if bound > highest:
        return False
    if can_lie(given, state, state.witness[section], section, bound, step, highest):
        return True
    first = given.member_start[section]
    for k in range(first, first + state.alive[section]):
        item = state.member[k]
        if can_lie(given, state, item, section, bound, step, highest):
            state.witness[section] = item
            return True
    return False


@part
def blame(given: Given, state: State, section: int) -> None:
    """Raise the weight of the unplaced items of a section that has no room.

    Preferring them later is the failure-directed ordering of Boussemart et al. (ECAI 2004).
    """
    first = given.member_start[section]
    for k in range(first, first + state.alive[section]):
        state.weight[state.member[k]] += 1


@part
def items_sections_fit(
    given: Given, state: State, item: int, bound: int, step: int, capacity: int
) -> bool:
    """Return whether every section that the item lives in has room."""
    for k in range(given.run_start[item], given.run_start[item + 1]):
        for section in range(given.run_from[k], given.run_until[k]):
            if state.remaining[section] > 0 and not section_fits(
                given, state, section, bound, step, capacity
            ):
                blame(given, state, section)
                return False
    return True


@part
def sections_fit(
    given: Given,
    state: State,
    item: int,
    section_from: int,
    section_until: int,
    step: int,
    capacity: int,
    rules: int,
) -> bool:
    """Return whether the sections have room after an item was placed; stop at the first without."""
    bound = state.offset[item] if rules & CANONICAL else 0
    if not rules & FLOORS:
        return items_sections_fit(given, state, item, bound, step, capacity)
    for section in range(section_from, section_until):
        if state.remaining[section] > 0 and not section_fits(
            given, state, section, bound, step, capacity
        ):
            blame(given, state, section)
            return False
    return True
