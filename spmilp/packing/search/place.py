"""The first state, placing one item, and taking it back."""

from spmilp.compiled import kernel, part
from spmilp.packing.search.arrays import Ints, State, Tables
from spmilp.packing.search.fit import next_free
from spmilp.packing.search.rules import STACKED, TRAIL


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


@kernel
def fill_state(
    tables: Tables, state: State, order: Ints, section_from: int, section_until: int
) -> None:
    """Count the units in each section and the items across each cut; nothing is placed yet."""
    for item in order:
        for k in range(tables.run_start[item], tables.run_start[item + 1]):
            for section in range(tables.run_from[k], tables.run_until[k]):
                state.remaining[section] += tables.run_units[k]
        for cut in range(tables.hull_from[item] + 1, tables.hull_until[item]):
            state.spanning[cut] += 1
    for section in range(section_from, section_until):
        if tables.member_start[section] < tables.member_start[section + 1]:
            state.witness[section] = tables.member[tables.member_start[section]]
