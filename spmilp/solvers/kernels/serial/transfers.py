"""Transfers: engine, cycles and what they hold on the links. Compiled.

And the core on which a task would end first by them, when none has been chosen for it.
"""

from spmilp.compiled import part
from spmilp.solvers.kernels.records import NEVER, NO, NONE, ONE, ZERO
from spmilp.solvers.kernels.schedule_state import (
    COUNT_TRANSFERS,
    DONE,
    RESIDENCIES_FULL,
    TIMELINE_FULL,
    TRANSFERS_FULL,
    UNREACHABLE,
    ScheduleState,
)
from spmilp.solvers.kernels.serial.residencies import new_residency
from spmilp.solvers.kernels.timeline import earliest_gap, occupy


@part
def cycles_on_idle_hardware(state: ScheduleState, source: int, target: int, size: int) -> int:
    """Return the cycles of a transfer between two memories; 0 when nothing connects them."""
    pair = state.pair_at[source, target]
    if pair == NONE:
        return ZERO
    return _cycles(state, state.pairs[pair].options_from, size)


@part
def _cycles(state: ScheduleState, option: int, size: int) -> int:
    taken = state.options[option]
    return taken.fixed + (size * state.scale + taken.rate - 1) // taken.rate


@part
def earliest_transfer(
    state: ScheduleState, slice_: int, source: int, memory: int, ready: int, before: int
) -> tuple[int, int, int]:
    """Return option, start and end of the transfer that ends first.

    If none ends in time, or no engine can make it, the option is -1, and ``before`` is the end.

    Parameters
    ----------
    source
        The residency that it is copied from.
    ready
        Cycle before which it cannot start.
    before
        Cycle before which it has to end to be of use.
    """
    residency = state.residencies[source]
    pair = state.pair_at[residency.memory, memory]
    best, best_start, best_end = NONE, ZERO, before
    if pair == NONE:
        return best, best_start, best_end
    size = state.slices[slice_].bytes
    shape, offset = _layout(state, slice_, source, memory)
    for option in range(state.pairs[pair].options_from, state.pairs[pair].options_to):
        if not _can_make(state, option, size, shape, offset):
            continue
        cycles = _cycles(state, option, size)
        start = _first_start(state, pair, option, ready, cycles, best_end - cycles)
        if start + cycles < best_end:
            best, best_start, best_end = option, start, start + cycles
    return best, best_start, best_end


@part
def _can_make(state: ScheduleState, option: int, size: int, shape: int, offset: int) -> bool:
    """Say whether an engine can make a copy of a shape."""
    limits = state.resources[state.options[option].engine]
    if size > limits.longest or shape & limits.shapes > limits.dimensions:
        return NO
    fits: bool = offset % limits.congruence == 0
    return fits


@part
def can_make(state: ScheduleState, option: int, slice_: int, source: int, destination: int) -> bool:
    """Say whether the engine of an option can copy a slice from one residency to another."""
    shape, offset = _layout(state, slice_, source, state.residencies[destination].memory)
    return _can_make(state, option, state.slices[slice_].bytes, shape, offset)


@part
def _layout(state: ScheduleState, slice_: int, source: int, memory: int) -> tuple[int, int]:
    """Return the shape of a copy, and the bytes by which one end lies behind an aligned one.

    Both ends are packed, or one lies inside something larger: the slice's parent, or its tensor.
    """
    residency = state.residencies[source]
    entry = state.slices[slice_]
    if state.memories[memory].is_dram or state.memories[residency.memory].is_dram:
        return entry.at_place, entry.offset_at_place
    if residency.slice == slice_:
        return entry.packed, ZERO
    return entry.from_parent, entry.offset_in_parent


@part
def _first_start(
    state: ScheduleState, pair: int, option: int, ready: int, cycles: int, too_late: int
) -> int:
    """Return the first cycle at which engine and links of the route can carry the transfer.

    They are asked in turn until all agree, or until it is sure to be too late: then any such cycle
    is returned.
    """
    timeline = state.timeline
    taken, route = state.options[option], state.pairs[pair]
    resources = route.links_to - route.links_from + 1
    start, asked, agreed = ready, ZERO, ZERO
    while agreed < resources and start < too_late:
        if asked == 0:
            resource = taken.engine
            spare = state.resources[resource].capacity - 1
        else:
            resource = state.links[route.links_from + asked - 1]
            spare = state.resources[resource].capacity - taken.rate
        found = earliest_gap(timeline, resource, start, cycles, spare)
        agreed = agreed + 1 if found == start else ONE
        start = found
        asked = asked + 1 if asked + 1 < resources else ZERO
    return start


@part
def transfer(
    state: ScheduleState,
    slice_: int,
    source: int,
    destination: int,
    option: int,
    start: int,
    end: int,
) -> int:
    """Make a transfer by one of the options; its destination holds the slice from ``start`` on."""
    there, here = state.residencies[source].memory, state.residencies[destination].memory
    route = state.pairs[state.pair_at[there, here]]
    taken = state.options[option]
    _, stop = write_down(state, slice_, source, destination, taken.engine, start, end)
    if stop != DONE:
        return stop
    for entry in range(route.links_from, route.links_to):
        if not occupy(state.timeline, state.links[entry], start, end, taken.rate):
            return TIMELINE_FULL
    return DONE


@part
def write_down(
    state: ScheduleState,
    slice_: int,
    source: int,
    destination: int,
    engine: int,
    start: int,
    end: int,
) -> tuple[int, int]:
    """Write a transfer down, but not what it holds on the links; return it, and why it stopped."""
    new = state.counts[COUNT_TRANSFERS]
    if new == state.transfers.size:
        return NONE, TRANSFERS_FULL
    state.counts[COUNT_TRANSFERS] = new + 1
    if not occupy(state.timeline, engine, start, end, ONE):
        return NONE, TIMELINE_FULL
    moved = state.transfers[new]
    moved.slice = slice_
    moved.source = source
    moved.destination = destination
    moved.engine = engine
    moved.start = start
    moved.end = end
    fill(state, destination, new)
    came_from = state.residencies[source]
    came_from.end = max(came_from.end, end)
    return new, DONE


@part
def fill(state: ScheduleState, residency: int, move: int) -> None:
    """Let a transfer that is written down fill a residency."""
    filled, by = state.residencies[residency], state.transfers[move]
    filled.start = by.start
    filled.valid = by.end
    filled.end = by.end
    filled.filled_by_transfer = move


@part
def store(state: ScheduleState, held: int, dram: int) -> int:
    """Copy a whole buffer to DRAM as soon as it is valid."""
    slice_ = state.residencies[held].slice
    ready = state.residencies[held].valid
    option, start, end = earliest_transfer(state, slice_, held, dram, ready, NEVER)
    if option == NONE:
        return UNREACHABLE
    new = new_residency(state, slice_, dram, state.slices[slice_].bytes)
    if new == NONE:
        return RESIDENCIES_FULL
    state.buffers[state.slices[slice_].buffer].in_dram = new
    return transfer(state, slice_, held, new, option, start, end)


@part
def earliest_finish_core(state: ScheduleState, task: int) -> int:
    """Return the core on which a task would end first, with loads on idle hardware.

    What each memory holds is counted once for all cores: the time for one more core does not depend
    on how much the task reads.
    """
    _count_loads_saved(state, task)
    reads = state.tasks[task].reads_to - state.tasks[task].reads_from
    ready = end_of_predecessors(state, task)
    best, best_end = NONE, ZERO
    rate, moving = ZERO, ZERO
    for core in range(state.cores.size):
        there = state.cores[core]
        cycles = state.cycles[task, there.kind]
        if cycles == NONE:
            continue
        memory = state.memories[there.memory]
        loads = ZERO
        pair = state.pair_at[memory.parent, there.memory]
        if pair != NONE:
            option = state.options[state.pairs[pair].options_from]
            if option.rate != rate:
                rate = option.rate
                moving = _cycles_of_all_reads(state, task, rate)
            loads = reads * option.fixed + moving - memory.loads_saved
        end = max(max(ready, there.free), ready + loads) + cycles
        if best == NONE or end < best_end:
            best, best_end = core, end
    return best


@part
def end_of_predecessors(state: ScheduleState, task: int) -> int:
    """Return the cycle from which a task could start for what it follows."""
    end = ZERO
    follower = state.tasks[task]
    for entry in range(follower.before_from, follower.before_to):
        end = max(end, state.tasks[state.lists[entry]].end)
    return end


@part
def _count_loads_saved(state: ScheduleState, task: int) -> None:
    """Add up, for each memory, the cycles of loads that its contents spare a task."""
    for memory in range(state.memories.size):
        state.memories[memory].loads_saved = ZERO
    for entry in range(state.tasks[task].reads_from, state.tasks[task].reads_to):
        slice_ = state.reads[entry].slice
        _count_copies(state, slice_, state.slices[slice_].bytes, entry + ONE)
        buffer = state.slices[slice_].buffer
        if buffer != slice_:
            _count_copies(state, buffer, state.slices[slice_].bytes, entry + ONE)


@part
def _count_copies(state: ScheduleState, held: int, size: int, now: int) -> None:
    """Count a load of ``size`` bytes for each memory that holds a slice and was not counted now."""
    one = state.slices[held].first
    while one != NONE:
        residency = state.residencies[one]
        memory = state.memories[residency.memory]
        if residency.alive and memory.counted_for != now:
            memory.counted_for = now
            memory.loads_saved += cycles_on_idle_hardware(
                state, memory.parent, residency.memory, size
            )
        one = residency.following


@part
def _cycles_of_all_reads(state: ScheduleState, task: int, rate: int) -> int:
    """Return the cycles in which all that a task reads passes at a scaled rate."""
    cycles = ZERO
    for entry in range(state.tasks[task].reads_from, state.tasks[task].reads_to):
        size = state.slices[state.reads[entry].slice].bytes
        cycles += (size * state.scale + rate - ONE) // rate
    return cycles
