"""What resources carry and memories hold over time, step functions: when there is room for more.

And what has the same bytes of a memory one after the other.
"""

from typing import Any

import cython
import numpy as np

from spmilp.compiled import address, in_c
from spmilp.solvers.justify.schedule import Demands, PartialOrderSchedule
from spmilp.solvers.justify.transfer_options import Booking, Copy, EngineUse, OptionTables
from spmilp.solvers.schedule.kernels.records import Ints, row_of, table
from spmilp.solvers.schedule.kernels.timeline import Timeline

if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from spmilp.compiled import longs_at, whole
    from spmilp.solvers.justify.transfer_options import AT_PLACE, PART
    from spmilp.solvers.schedule.kernels.records import NONE
    from spmilp.solvers.schedule.kernels.timeline import earliest_gap, occupy, step_at
    from spmilp.solvers.schedule.kernels.transfers import can_copy, cycles_of_copy

    CBooking = Booking
    profile_at = pair_row_at = option_at = resource_at = slice_at = row_of
    options_at = use_at = whole


def profiles_of_resources(schedule: PartialOrderSchedule, changes: int = 0) -> Timeline:
    """Return empty profiles of cores, engines and links, with room for some changes."""
    most = 2 * np.bincount(schedule.demands.items, minlength=schedule.capacity.size)
    return _profiles(most + 2 * changes)


def profiles_of_memories(
    schedule: PartialOrderSchedule, memories: int, changes: int = 0
) -> Timeline:
    """Return empty profiles of the bytes in use, with room for some changes."""
    most = 6 * np.bincount(schedule.memory, minlength=memories) + 2 * schedule.readers.items.size
    return _profiles(most + 2 * changes)


def _profiles(breakpoints: Ints) -> Timeline:
    most = breakpoints + 4
    rows = table(most.size, "begin", "length", "slots")
    rows["begin"] = np.cumsum(most) - most
    rows["length"] = 1
    rows["slots"] = most
    steps = table(int(most.sum()), "time", "load")
    used = np.array([steps.size], np.int64)
    return Timeline(steps=steps, resources=rows, used=used, pool=steps.size)


def taken(schedule: PartialOrderSchedule, residency: int, memory: int) -> int:
    """Return the bytes that a residency takes in a memory, with those up to the next offset.

    The size is rounded up to the memory's alignment. Residencies whose rounded sizes fit together
    are never kept from having addresses by alignment.
    """
    unit = schedule.alignment[memory]
    size: int = (schedule.bytes[residency] + unit - 1) // unit * unit
    return size


def has_capacity(
    occupancy: Timeline, limit: Ints, memory: int, first: int, until: int, need: int
) -> bool:
    """Say whether so many bytes of a memory are free from ``first`` to ``until``."""
    steps, row = occupancy.steps, profile_at(occupancy.resources, memory)
    step = step_at(occupancy, memory, first)
    past = row.begin + row.length
    while step < past and steps[step].time < until:
        if steps[step].load + need > limit[memory]:
            return False
        step += 1
    return True


def earliest_start(
    demands: Demands, capacity: Ints, usage: Timeline, one: int, cycles: int, ready: int
) -> int:
    """Return the first cycle from ``ready`` on at which all is free that an activity demands."""
    first, past = demands.begin[one], demands.begin[one + 1]
    start, asked, agreed = ready, first, 0
    # They are asked in turn until all agree.
    while agreed < past - first:
        resource = demands.items[asked]
        late, spare = demands.late[asked], capacity[resource] - demands.amounts[asked]
        held = cycles - late - demands.early[asked]
        found = earliest_gap(usage, resource, start + late, held, spare) - late
        agreed = agreed + 1 if found == start else 1
        start = found
        asked = asked + 1 if asked + 1 < past else first
    return start


def hold(demands: Demands, usage: Timeline, one: int, start: int, end: int, sign: int) -> None:
    """Take what an activity demands between its start and end, or give it back: ``sign`` -1."""
    for i in range(demands.begin[one], demands.begin[one + 1]):
        first, until = start + demands.late[i], end - demands.early[i]
        occupy(usage, demands.items[i], first, until, sign * demands.amounts[i])


def earliest_option(tables: OptionTables, capacity: Ints, usage: Timeline, copy: Copy) -> Booking:
    """Return the option by which a copy ends first; option -1 if none is in time."""
    best = CBooking(NONE, 0, copy.by + 1)
    pair = pair_row_at(tables.pairs, copy.pair)
    for option in range(pair.options_from, pair.options_to):
        cycles = _cycles(tables, option_at(tables.options, option), copy.what, copy.form)
        if cycles == 0 or copy.ready + cycles >= best.end:
            continue
        start = earliest_start(tables.demands, capacity, usage, option, cycles, copy.ready)
        if start + cycles < best.end:
            best = CBooking(option, start, start + cycles)
    return best


def cycles_by(use: EngineUse, tables: OptionTables, what: int, form: int) -> int:
    """Return the cycles that an engine takes for a slice; 0 if it cannot send it."""
    kept, kept_use = in_c(tables), in_c(use)
    return _cycles(options_at(address(kept)), use_at(address(kept_use)), what, form)


def _cycles(tables: OptionTables, option: Any, what: int, form: int) -> int:
    """Return the same for an option, a row of the table of options."""
    engine, entry = resource_at(tables.limits, option.engine), slice_at(tables.slices, what)
    shape, offset = entry.packed, 0
    if form == PART:
        shape, offset = entry.from_parent, entry.offset_in_parent
    elif form == AT_PLACE:
        shape, offset = entry.at_place, entry.offset_at_place
    if not can_copy(engine, entry.bytes, shape, offset):
        return 0
    return cycles_of_copy(option, entry.bytes, tables.scale)


def successions(residencies: Ints, first: Ints, past: Ints, cells: int) -> tuple[Ints, Ints]:
    """Return residencies, and for each another one that next has one of its cells.

    Each residency divides the runs of cells with one owner anew, and adds two of them at most: so
    there are less than three such pairs for each. ``residencies`` come in the order in which they
    have their cells, of which there are ``cells``: those from ``first`` to ``past`` of each.
    """
    owner = np.full(cells, NONE)
    before = np.zeros(3 * residencies.size + 1, np.int64)
    after = before.copy()
    count = _pass_on(
        longs_at(address(residencies)),
        residencies.size,
        longs_at(address(first)),
        longs_at(address(past)),
        longs_at(address(owner)),
        longs_at(address(before)),
        longs_at(address(after)),
    )
    return before[:count].copy(), after[:count].copy()


def _pass_on(
    sequence: Ints, size: int, first: Ints, past: Ints, owner: Ints, before: Ints, after: Ints
) -> int:
    """Note who has each cell before whom; return the number of notes."""
    count = 0
    for place in range(size):
        one, last = sequence[place], NONE
        for cell in range(first[one], past[one]):
            if owner[cell] != last and owner[cell] != NONE:
                before[count], after[count] = owner[cell], one
                count += 1
            last = owner[cell]
            owner[cell] = one
    return count
