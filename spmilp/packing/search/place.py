"""Placing one item, and taking it back."""

from spmilp.compiled import part
from spmilp.packing.search.arrays import Given, State
from spmilp.packing.search.room import next_free
from spmilp.packing.search.rules import STACKED, TRAIL


@part
def put(given: Given, state: State, item: int, offset: int) -> bool:
    """Fix an item's offset; return whether a cut in time became free of unplaced items."""
    state.offset[item] = offset
    for k in range(given.run_start[item], given.run_start[item + 1]):
        units = given.run_units[k]
        for section in range(given.run_from[k], given.run_until[k]):
            state.remaining[section] -= units
            leave(given, state, section, given.stay_start[k] + section - given.run_from[k])
    opened = False
    for cut in range(given.hull_from[item] + 1, given.hull_until[item]):
        state.spanning[cut] -= 1
        if state.spanning[cut] == 0:
            opened = True
    return opened


@part
def leave(given: Given, state: State, section: int, stay: int) -> None:
    """Move a stay behind those of the section's unplaced items; counting up again undoes it."""
    state.alive[section] -= 1
    here = state.stay_position[stay]
    last = given.member_start[section] + state.alive[section]
    other = state.member_stay[last]
    state.member[here], state.member[last] = state.member[last], state.member[here]
    state.member_stay[here], state.member_stay[last] = other, stay
    state.stay_position[other], state.stay_position[stay] = here, last


@part
def lift_neighbours(given: Given, state: State, item: int, rules: int) -> bool:
    """Raise the lowest offsets of unplaced items above a placed one; False if one has no room."""
    trail = state.counters[TRAIL]
    offset = state.offset[item]
    top = offset + given.units[item]
    kin = given.kin[item] if rules & STACKED else -1
    uniform = given.pair_extent.size == 0
    fits = True
    for k in range(given.pair_start[item], given.pair_start[item + 1]):
        other = given.pair_item[k]
        bottom = top if uniform else offset + given.pair_extent[k]
        low = state.low[other]
        if state.offset[other] >= 0 or bottom <= low:
            continue
        barred = state.barred[other]
        state.trail_item[trail] = other
        state.trail_low[trail] = 2 * low + barred
        trail += 1
        bottom = next_free(given, other, bottom)
        state.low[other] = bottom
        stays_barred = barred and kin >= 0 and given.kin[other] == kin and low == offset
        state.barred[other] = 1 if stays_barred else 0
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
def take_back(given: Given, state: State, item: int, mark: int) -> None:
    """Undo ``put`` and the lifts and bars that followed it, down to the mark on the trail."""
    for k in range(state.counters[TRAIL] - 1, mark - 1, -1):
        other = state.trail_item[k]
        state.low[other] = state.trail_low[k] >> 1
        state.barred[other] = state.trail_low[k] & 1
    state.counters[TRAIL] = mark
    state.offset[item] = -1
    for k in range(given.run_start[item], given.run_start[item + 1]):
        units = given.run_units[k]
        for section in range(given.run_from[k], given.run_until[k]):
            state.remaining[section] += units
            state.alive[section] += 1
    for cut in range(given.hull_from[item] + 1, given.hull_until[item]):
        state.spanning[cut] += 1
