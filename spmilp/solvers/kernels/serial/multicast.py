"""One transfer of a slice to several memories, those of other tasks that will read it. Compiled.

The further memories get it only where bytes are free by then, and only while the transfer does not
end much later for them.
"""

from typing import NamedTuple

from spmilp.compiled import part
from spmilp.solvers.kernels.address_space import FREE
from spmilp.solvers.kernels.records import NEVER, NO, NONE, ONE, YES, ZERO
from spmilp.solvers.kernels.schedule_state import (
    BLOCKS_FULL,
    COUNT_RESIDENCIES,
    DONE,
    RESIDENCIES_FULL,
    TIMELINE_FULL,
    ScheduleState,
)
from spmilp.solvers.kernels.serial.gathering import gathered
from spmilp.solvers.kernels.serial.residencies import new_residency, residency_in, settle_at
from spmilp.solvers.kernels.serial.transfers import (
    can_make,
    cycles_on_idle_hardware,
    earliest_transfer,
    fill,
    transfer,
    write_down,
)
from spmilp.solvers.kernels.timeline import earliest_gap, occupy

LATER = 4
"""A multicast may end later than the transfer to one memory alone by this part of its cycles."""

MOST_RELAYS = 4
"""Other memories at most to which a slice may be loaded in place of the one that needs it first."""


class _Multicast(NamedTuple):
    """A transfer over the first ``links`` of ``state.cast_links``; all cycles without a rate."""

    engine: int
    fixed: int
    rate: int
    links: int
    start: int
    end: int


@part
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

    Parameters
    ----------
    option, start, end
        Of the transfer to ``destination`` alone.
    """
    if state.reach > 0:
        there = state.residencies[source].memory
        pair = state.pairs[state.pair_at[there, state.residencies[destination].memory]]
        for other in range(pair.options_from, pair.options_to):
            engine = state.resources[state.options[other].engine]
            if engine.multicast and can_make(state, other, slice_, source, destination):
                first = state.counts[COUNT_RESIDENCIES]
                found, stop = _found(state, slice_, source, destination, other, end)
                if stop != DONE:
                    return stop
                if state.counts[COUNT_RESIDENCIES] > first:
                    return _write(state, slice_, source, destination, first, found)
    return transfer(state, slice_, source, destination, option, start, end)


@part
def _found(
    state: ScheduleState, slice_: int, source: int, destination: int, option: int, end: int
) -> tuple[_Multicast, int]:
    """Return a multicast with the residencies that it fills, made last; and why it stopped."""
    there, here = state.residencies[source].memory, state.residencies[destination].memory
    ready = max(state.residencies[destination].start, state.residencies[source].valid)
    taken = state.options[option]
    alone = _Multicast(taken.engine, taken.fixed, taken.rate, ZERO, ready, ready)
    found = _with_route(state, slice_, alone, state.pair_at[there, here], option)
    latest = end + (found.end - found.start) // LATER
    if found.end > latest:
        return found, DONE
    readers = state.slices[slice_]
    now = NONE
    for entry in range(readers.next_reader, readers.readers_to):
        reader = state.tasks[state.readers[entry]]
        if reader.placed:
            continue
        if now == NONE:
            now = reader.position
        if reader.position > now + state.reach:
            break
        memory = _memory_that_lacks(state, slice_, entry, here)
        if memory == NONE or state.pair_at[there, memory] == NONE:
            continue
        pair = state.pair_at[there, memory]
        other = _option_of(state, pair, taken.engine)
        if other == NONE:
            continue
        longer = _with_route(state, slice_, found, pair, other)
        if longer.end > latest:
            continue
        address = _free_range(state, memory, state.slices[slice_].bytes, longer.start)
        if address == NONE:
            continue
        new = new_residency(state, slice_, memory, state.slices[slice_].bytes)
        if new == NONE:
            return found, RESIDENCIES_FULL
        if not settle_at(state, new, address):
            return found, BLOCKS_FULL
        found = longer
    return found, DONE


@part
def _memory_that_lacks(state: ScheduleState, slice_: int, entry: int, here: int) -> int:
    """Return a reader's memory, if it is not ``here`` and a slice has yet to come there; or -1."""
    reader = state.tasks[state.readers[entry]]
    if reader.placed or reader.core == NONE:
        return NONE
    memory: int = state.cores[reader.core].memory
    if memory == here or state.memories[memory].is_dram:
        return NONE
    if residency_in(state, slice_, memory) != NONE:
        return NONE
    return memory


@part
def relayed(
    state: ScheduleState, slice_: int, source: int, destination: int, end: int
) -> tuple[int, int]:
    """Load a slice to another reader's memory first, if it comes sooner from there.

    Links into one memory are slower than a DRAM: what all read is loaded to several memories.

    Parameters
    ----------
    source
        In a DRAM.
    end
        Of the transfer from there to ``destination``.

    Returns
    -------
    tuple
        The residency there, or -1; and why it stopped.
    """
    size, here = state.slices[slice_].bytes, state.residencies[destination].memory
    ready, tried = state.residencies[source].valid, ZERO
    best, best_option, best_start, best_end, best_address = NONE, NONE, ZERO, end, NONE
    readers = state.slices[slice_]
    for entry in range(readers.next_reader, readers.readers_to):
        memory = _memory_that_lacks(state, slice_, entry, here)
        if memory == NONE or state.pair_at[memory, here] == NONE:
            continue
        tried += ONE
        if tried > MOST_RELAYS:
            break
        option, start, there = earliest_transfer(state, slice_, source, memory, ready, best_end)
        there += cycles_on_idle_hardware(state, memory, here, size)
        if option == NONE or there >= best_end:
            continue
        address = _free_range(state, memory, size, start)
        if address != NONE:
            best, best_option, best_start, best_end = memory, option, start, there
            best_address = address
    if best == NONE:
        return NONE, DONE
    new = new_residency(state, slice_, best, size)
    if new == NONE:
        return NONE, RESIDENCIES_FULL
    if not settle_at(state, new, best_address):
        return NONE, BLOCKS_FULL
    arrives = best_end - cycles_on_idle_hardware(state, best, here, size)
    return new, transfer(state, slice_, source, new, best_option, best_start, arrives)


@part
def _option_of(state: ScheduleState, pair: int, engine: int) -> int:
    for option in range(state.pairs[pair].options_from, state.pairs[pair].options_to):
        if state.options[option].engine == engine:
            return option
    return NONE


@part
def _with_route(
    state: ScheduleState, slice_: int, before: _Multicast, pair: int, option: int
) -> _Multicast:
    """Return a multicast that goes along one more route, as soon as all of its links are free."""
    timeline, links = state.timeline, before.links
    for entry in range(state.pairs[pair].links_from, state.pairs[pair].links_to):
        link = state.links[entry]
        is_new = YES
        for i in range(links):
            if state.cast_links[i] == link:
                is_new = NO
                break
        if is_new:
            state.cast_links[links] = link
            links += 1
    fixed = max(before.fixed, state.options[option].fixed)
    rate = min(before.rate, state.options[option].rate)
    cycles = fixed + (state.slices[slice_].bytes * state.scale + rate - ONE) // rate
    channels = state.resources[before.engine].capacity
    start = before.start
    while True:
        asked = start
        start = earliest_gap(timeline, before.engine, start, cycles, channels - ONE)
        for i in range(links):
            link = state.cast_links[i]
            start = earliest_gap(
                timeline, link, start, cycles, state.resources[link].capacity - rate
            )
        if start == asked:
            return _Multicast(before.engine, fixed, rate, links, start, start + cycles)


@part
def _free_range(state: ScheduleState, memory: int, size: int, by: int) -> int:
    """Return the address of the smallest gap that is free by a cycle; -1 if there is none."""
    alignment = state.memories[memory].alignment
    if state.is_open:
        return gathered(state, memory, (size + alignment - 1) // alignment * alignment, by)
    blocks, count = state.space.blocks[memory], state.space.length[memory]
    best, best_left = NONE, NEVER
    block = ZERO
    while block < count:
        if blocks[block].holder != FREE or blocks[block].free_from > by:
            block += ONE
            continue
        address = (blocks[block].start + alignment - 1) // alignment * alignment
        while block < count and blocks[block].holder == FREE and blocks[block].free_from <= by:
            block += ONE
        left = blocks[block].start - address - size
        if 0 <= left < best_left:
            best, best_left = address, left
    return best


@part
def _write(
    state: ScheduleState, slice_: int, source: int, destination: int, first: int, found: _Multicast
) -> int:
    """Write down a multicast to a residency and to those made since ``first``."""
    new, stop = write_down(state, slice_, source, destination, found.engine, found.start, found.end)
    if stop != DONE:
        return stop
    for i in range(found.links):
        if not occupy(state.timeline, state.cast_links[i], found.start, found.end, found.rate):
            return TIMELINE_FULL
    for one in range(first, state.counts[COUNT_RESIDENCIES]):
        fill(state, one, new)
    return DONE
