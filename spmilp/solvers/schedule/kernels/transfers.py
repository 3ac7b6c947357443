"""Transfers: engine, cycles and what they hold when; one for several memories. Compiled.

What an engine can copy, and in how many cycles, is decided here for all kernels. Further memories,
those of other tasks that will read a slice, get it by the same transfer only where bytes are free
by then, and only while the transfer does not end much later for them.
"""

from typing import Any, NamedTuple

import cython

from spmilp.solvers.schedule.kernels.schedule_state import ScheduleState

LATER = 4
"""A multicast may end later than the transfer to one memory alone by this part of its cycles."""


class _Multicast(NamedTuple):
    """A transfer over the first ``links`` of ``state.cast_links``; all cycles without a rate."""

    engine: int
    setup: int
    latency: int
    rate: int
    links: int
    start: int
    end: int


if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from spmilp.compiled import whole
    from spmilp.solvers.schedule.kernels.memories import (
        free_range,
        is_counted,
        new_residency,
        residency_in,
        take,
    )
    from spmilp.solvers.schedule.kernels.records import NEVER, NONE, row_of
    from spmilp.solvers.schedule.kernels.schedule_state import (
        COUNT_RESIDENCIES,
        COUNT_TRANSFERS,
        DOES_NOT_FIT,
        DONE,
        RESIDENCIES_FULL,
        TIMELINE_FULL,
        TRANSFERS_FULL,
        UNREACHABLE,
    )
    from spmilp.solvers.schedule.kernels.timeline import earliest_gap, occupy

    CMulticast = _Multicast
    task_at = slice_at = core_at = memory_at = pair_row_at = option_at = row_of
    resource_at = residency_at = transfer_at = row_of
    timeline_in = whole


def can_copy(engine: Any, size: int, shape: int, offset: int) -> bool:
    """Say whether an engine can make a copy.

    This is the one place where that is decided for all that works on these tables. Of an ``engine``
    it has the row in the table of resources, of the slice its bytes and, as it is copied, ``shape``
    and ``offset``: packed at both ends (``packed``, 0), out of its parent's residency
    (``from_parent``), or to or from its place in DRAM (``at_place``).
    """
    if size > engine.longest or shape & engine.shapes > engine.dimensions:
        return False
    fits: bool = offset % engine.congruence == 0
    return fits


def cycles_of_copy(option: Any, size: int, scale: int) -> int:
    """Return the cycles of a copy by a transfer option, a row of the table of options."""
    sending: int = (size * scale + option.rate - 1) // option.rate
    return option.setup + sending + option.latency


def busy_for(engine: Any, cycles: int, latency: int) -> int:
    """Return for how long a transfer keeps a channel of an engine, its row, busy."""
    return cycles - latency if engine.pipelined else cycles


def cycles_on_idle_hardware(state: ScheduleState, source: int, target: int, size: int) -> int:
    """Return the cycles of a transfer between two memories; 0 when nothing connects them.

    The source may be the parent of a memory that has none, -1.
    """
    pair = _pair(state, source, target)
    if pair == NONE:
        return 0
    option = option_at(state.options, state.pairs[pair].options_from)
    return cycles_of_copy(option, size, state.scale)


def _pair(state: ScheduleState, source: int, target: int) -> int:
    """Return the row of a pair of memories; -1 when nothing connects them, or one is none."""
    if source == NONE or target == NONE:
        return NONE
    pair: int = state.pair_at[source * state.rows.memories + target]
    return pair


def earliest_transfer(
    state: ScheduleState, slice_: int, source: int, memory: int, ready: int, before: int
) -> tuple[int, int, int]:
    """Return option, start and end of the transfer that ends first.

    If none ends in time, or no engine can make it, the option is -1, and ``before`` is the end. It
    is copied from the residency ``source`` from the cycle ``ready`` on, and has to end before the
    cycle ``before`` to be of use.
    """
    residency = residency_at(state.residencies, source)
    pair = _pair(state, residency.memory, memory)
    best, best_start, best_end = NONE, 0, before
    if pair == NONE:
        return best, best_start, best_end
    size = state.slices[slice_].bytes
    shape, offset = _layout(state, slice_, source, memory)
    for option in range(state.pairs[pair].options_from, state.pairs[pair].options_to):
        taken = option_at(state.options, option)
        if not can_copy(resource_at(state.resources, taken.engine), size, shape, offset):
            continue
        cycles = cycles_of_copy(taken, size, state.scale)
        start = _first_start(state, pair, option, ready, cycles, best_end - cycles)
        if start + cycles < best_end:
            best, best_start, best_end = option, start, start + cycles
    return best, best_start, best_end


def _layout(state: ScheduleState, slice_: int, source: int, memory: int) -> tuple[int, int]:
    """Return the shape of a copy, and the bytes by which one end lies behind an aligned one.

    Both ends are packed, or one lies inside something larger: the slice's parent, or its tensor.
    """
    residency = residency_at(state.residencies, source)
    entry = slice_at(state.slices, slice_)
    if state.memories[memory].is_dram or state.memories[residency.memory].is_dram:
        return entry.at_place, entry.offset_at_place
    if residency.slice == slice_:
        return entry.packed, 0
    return entry.from_parent, entry.offset_in_parent


def _first_start(
    state: ScheduleState, pair: int, option: int, ready: int, cycles: int, too_late: int
) -> int:
    """Return the first cycle at which engine and links of the route can carry the transfer.

    They are asked in turn until all agree, or until it is sure to be too late: then any such cycle
    is returned.
    """
    timeline = timeline_in(state.timeline)
    taken, route = option_at(state.options, option), pair_row_at(state.pairs, pair)
    resources = route.links_to - route.links_from + 1
    busy = busy_for(resource_at(state.resources, taken.engine), cycles, taken.latency)
    setup, sending = taken.setup, cycles - taken.setup - taken.latency
    start, asked, agreed = ready, 0, 0
    while agreed < resources and start < too_late:
        if asked == 0:
            spare = state.resources[taken.engine].capacity - 1
            found = earliest_gap(timeline, taken.engine, start, busy, spare)
        else:
            resource = state.links[route.links_from + asked - 1]
            spare = state.resources[resource].capacity - taken.rate
            found = earliest_gap(timeline, resource, start + setup, sending, spare) - setup
        agreed = agreed + 1 if found == start else 1
        start = found
        asked = asked + 1 if asked + 1 < resources else 0
    return start


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
    route = pair_row_at(state.pairs, _pair(state, there, here))
    taken = option_at(state.options, option)
    begin, sent = start + taken.setup, end - taken.latency
    _, stop = write_down(state, slice_, source, destination, taken.engine, start, sent, end)
    if stop != DONE:
        return stop
    for entry in range(route.links_from, route.links_to):
        if not occupy(timeline_in(state.timeline), state.links[entry], begin, sent, taken.rate):
            return TIMELINE_FULL
    return DONE


def write_down(
    state: ScheduleState,
    slice_: int,
    source: int,
    destination: int,
    engine: int,
    start: int,
    sent: int,
    end: int,
) -> tuple[int, int]:
    """Write a transfer down, but not what it holds on the links; return it, and why it stopped."""
    new = state.counts[COUNT_TRANSFERS]
    if new == state.rows.transfers:
        return NONE, TRANSFERS_FULL
    state.counts[COUNT_TRANSFERS] = new + 1
    busy = busy_for(resource_at(state.resources, engine), end - start, end - sent)
    if not occupy(timeline_in(state.timeline), engine, start, start + busy, 1):
        return NONE, TIMELINE_FULL
    moved = transfer_at(state.transfers, new)
    moved.slice = slice_
    moved.source = source
    moved.destination = destination
    moved.engine = engine
    moved.start = start
    moved.sent = sent
    moved.end = end
    fill(state, destination, new)
    came_from = residency_at(state.residencies, source)
    came_from.end = max(came_from.end, sent)
    return new, DONE


def fill(state: ScheduleState, residency: int, move: int) -> None:
    """Let a transfer that is written down fill a residency."""
    filled, by = residency_at(state.residencies, residency), transfer_at(state.transfers, move)
    filled.start = by.start
    filled.valid = by.end
    filled.end = by.end
    filled.filled_by_transfer = move


def spill(state: ScheduleState, held: int, dram: int) -> int:
    """Copy a whole buffer to the shared memory beside, or to DRAM if bytes there are not free."""
    aside = state.memories[state.residencies[held].memory].aside
    if aside != NONE:
        new, stop = copy_to(state, held, aside, NEVER)
        if stop == DONE:
            state.buffers[state.slices[state.residencies[held].slice].buffer].home = new
        if stop != UNREACHABLE and stop != DOES_NOT_FIT:
            return stop
    return store(state, held, dram)


def store(state: ScheduleState, held: int, dram: int) -> int:
    """Copy a whole buffer to DRAM as soon as it is valid and there is room."""
    new, stop = copy_to(state, held, dram, NEVER)
    if stop == DONE:
        state.buffers[state.slices[state.residencies[held].slice].buffer].in_dram = new
    return stop


def copy_to(state: ScheduleState, held: int, memory: int, before: int) -> tuple[int, int]:
    """Copy a residency to another memory as soon as it is valid; return the copy, and why not.

    In a shared memory the bytes must be free by then; only those of a DRAM are waited for. If the
    bytes are free, it must have been copied before the cycle ``before``.
    """
    slice_, ready = state.residencies[held].slice, state.residencies[held].valid
    size = state.slices[slice_].bytes
    option, start, end = earliest_transfer(state, slice_, held, memory, ready, before)
    if option == NONE:
        return NONE, UNREACHABLE
    if not is_counted(state, slice_, memory):
        new = new_residency(state, slice_, memory, size)
        if new == NONE:
            return NONE, RESIDENCIES_FULL
        return new, transfer(state, slice_, held, new, option, start, end)
    address = free_range(state, memory, size, start)
    if address == NONE and state.memories[memory].is_dram:
        address = free_range(state, memory, size, NEVER)
    if address == NONE:
        return NONE, DOES_NOT_FIT
    new, free, stop = take(state, slice_, memory, size, address, NONE)
    if stop != DONE:
        return NONE, stop
    if free > start:
        option, start, end = earliest_transfer(state, slice_, held, memory, free, NEVER)
    return new, transfer(state, slice_, held, new, option, start, end)


def earliest_finish_core(state: ScheduleState, task: int) -> int:
    """Return the core on which a task would end first, with loads on idle hardware.

    What each memory holds is counted once for all cores: the time for one more core does not depend
    on how much the task reads.
    """
    _count_loads_saved(state, task)
    reads = state.tasks[task].reads_to - state.tasks[task].reads_from
    ready = end_of_predecessors(state, task)
    best, best_end = NONE, 0
    rate, moving = 0, 0
    for core in range(state.rows.cores):
        there = core_at(state.cores, core)
        cycles = state.cycles[task * state.rows.kinds + there.kind]
        if cycles == NONE:
            continue
        memory = memory_at(state.memories, there.memory)
        loads = 0
        pair = _pair(state, memory.parent, there.memory)
        if pair != NONE:
            option = option_at(state.options, state.pairs[pair].options_from)
            if option.rate != rate:
                rate = option.rate
                moving = _cycles_of_all_reads(state, task, rate)
            loads = reads * (option.setup + option.latency) + moving - memory.loads_saved
        end = max(max(ready, there.free), ready + loads) + cycles
        if best == NONE or end < best_end:
            best, best_end = core, end
    return best


def end_of_predecessors(state: ScheduleState, task: int) -> int:
    """Return the cycle from which a task could start for what it follows."""
    end = 0
    follower = task_at(state.tasks, task)
    for entry in range(follower.before_from, follower.before_to):
        end = max(end, state.tasks[state.lists[entry]].end)
    return end


def _count_loads_saved(state: ScheduleState, task: int) -> None:
    """Add up, for each memory, the cycles of loads that its contents spare a task."""
    for memory in range(state.rows.memories):
        state.memories[memory].loads_saved = 0
    for entry in range(state.tasks[task].reads_from, state.tasks[task].reads_to):
        slice_ = state.reads[entry].slice
        _count_copies(state, slice_, state.slices[slice_].bytes, entry + 1)
        buffer = state.slices[slice_].buffer
        if buffer != slice_:
            _count_copies(state, buffer, state.slices[slice_].bytes, entry + 1)


def _count_copies(state: ScheduleState, held: int, size: int, now: int) -> None:
    """Count a load of ``size`` bytes for each memory that holds a slice and was not counted now."""
    one = state.slices[held].first
    while one != NONE:
        residency = residency_at(state.residencies, one)
        memory = memory_at(state.memories, residency.memory)
        if residency.alive and memory.counted_for != now:
            memory.counted_for = now
            memory.loads_saved += cycles_on_idle_hardware(
                state, memory.parent, residency.memory, size
            )
        one = residency.following


def _cycles_of_all_reads(state: ScheduleState, task: int, rate: int) -> int:
    """Return the cycles in which all that a task reads passes at a scaled rate."""
    cycles = 0
    for entry in range(state.tasks[task].reads_from, state.tasks[task].reads_to):
        size = state.slices[state.reads[entry].slice].bytes
        cycles += (size * state.scale + rate - 1) // rate
    return cycles


def transfer_to_all(
    state: ScheduleState,
    slice_: int,
    source: int,
    destination: int,
    option: int,
    start: int,
    end: int,
) -> int:
    """Write a transfer down that fills residencies for other readers, too, where that is possible.

    Option, start and end are those of the transfer to ``destination`` alone.
    """
    if state.reach > 0:
        there, here = state.residencies[source].memory, state.residencies[destination].memory
        pair = pair_row_at(state.pairs, _pair(state, there, here))
        size = state.slices[slice_].bytes
        shape, offset = _layout(state, slice_, source, here)
        for other in range(pair.options_from, pair.options_to):
            engine = resource_at(state.resources, state.options[other].engine)
            if engine.multicast and can_copy(engine, size, shape, offset):
                first = state.counts[COUNT_RESIDENCIES]
                found, stop = _found(state, slice_, source, destination, other, end)
                if stop != DONE:
                    return stop
                if state.counts[COUNT_RESIDENCIES] > first:
                    return _write(state, slice_, source, destination, first, found)
    return transfer(state, slice_, source, destination, option, start, end)


def _found(
    state: ScheduleState, slice_: int, source: int, destination: int, option: int, end: int
) -> tuple[_Multicast, int]:
    """Return a multicast with the residencies that it fills, made last; and why it stopped."""
    there, here = state.residencies[source].memory, state.residencies[destination].memory
    ready = max(state.residencies[destination].start, state.residencies[source].valid)
    taken = option_at(state.options, option)
    alone = CMulticast(taken.engine, taken.setup, taken.latency, taken.rate, 0, ready, ready)
    found = _with_route(state, slice_, alone, _pair(state, there, here), option)
    latest = end + (found.end - found.start) // LATER
    if found.end > latest:
        return found, DONE
    readers = slice_at(state.slices, slice_)
    now = NONE
    for entry in range(readers.next_reader, readers.readers_to):
        reader = task_at(state.tasks, state.readers[entry])
        if reader.placed:
            continue
        if now == NONE:
            now = reader.position
        if reader.position > now + state.reach:
            break
        memory = _memory_that_lacks(state, slice_, entry, here)
        pair = _pair(state, there, memory)
        if pair == NONE:
            continue
        other = _option_of(state, pair, taken.engine)
        if other == NONE:
            continue
        longer = _with_route(state, slice_, found, pair, other)
        if longer.end > latest:
            continue
        address = free_range(state, memory, state.slices[slice_].bytes, longer.start)
        if address == NONE:
            continue
        _, _, stop = take(state, slice_, memory, state.slices[slice_].bytes, address, NONE)
        if stop != DONE:
            return found, stop
        found = longer
    return found, DONE


def _memory_that_lacks(state: ScheduleState, slice_: int, entry: int, here: int) -> int:
    """Return a reader's memory, if it is not ``here`` and a slice has yet to come there; or -1."""
    reader = task_at(state.tasks, state.readers[entry])
    if reader.placed or reader.core == NONE:
        return NONE
    memory: int = state.cores[reader.core].memory
    if memory == here or state.memories[memory].is_dram:
        return NONE
    if residency_in(state, slice_, memory) != NONE:
        return NONE
    return memory


def _option_of(state: ScheduleState, pair: int, engine: int) -> int:
    for option in range(state.pairs[pair].options_from, state.pairs[pair].options_to):
        if state.options[option].engine == engine:
            return option
    return NONE


def _with_route(
    state: ScheduleState, slice_: int, before: _Multicast, pair: int, option: int
) -> _Multicast:
    """Return a multicast that goes along one more route, as soon as all of its links are free."""
    timeline, links = timeline_in(state.timeline), before.links
    for entry in range(state.pairs[pair].links_from, state.pairs[pair].links_to):
        link = state.links[entry]
        is_new = True
        for i in range(links):
            if state.cast_links[i] == link:
                is_new = False
                break
        if is_new:
            state.cast_links[links] = link
            links += 1
    setup, latency = before.setup, max(before.latency, state.options[option].latency)
    rate = min(before.rate, state.options[option].rate)
    sending = (state.slices[slice_].bytes * state.scale + rate - 1) // rate
    cycles = setup + sending + latency
    engine = resource_at(state.resources, before.engine)
    busy = busy_for(engine, cycles, latency)
    start = before.start
    while True:
        asked = start
        start = earliest_gap(timeline, before.engine, start, busy, engine.capacity - 1)
        for i in range(links):
            link = state.cast_links[i]
            spare = state.resources[link].capacity - rate
            start = earliest_gap(timeline, link, start + setup, sending, spare) - setup
        if start == asked:
            end = start + cycles
            return CMulticast(before.engine, setup, latency, rate, links, start, end)


def _write(
    state: ScheduleState, slice_: int, source: int, destination: int, first: int, found: _Multicast
) -> int:
    """Write down a multicast to a residency and to those made since ``first``."""
    start, sent, end = found.start, found.end - found.latency, found.end
    new, stop = write_down(state, slice_, source, destination, found.engine, start, sent, end)
    if stop != DONE:
        return stop
    begin, timeline = start + found.setup, timeline_in(state.timeline)
    for i in range(found.links):
        if not occupy(timeline, state.cast_links[i], begin, sent, found.rate):
            return TIMELINE_FULL
    for one in range(first, state.counts[COUNT_RESIDENCIES]):
        fill(state, one, new)
    return DONE
