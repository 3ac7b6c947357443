"""Addresses for new bytes: which range of a memory to clear, and how. Compiled.

The contents of each scratchpad are known at every step, so eviction looks ahead: what is needed
last goes first (Belady, IBM Systems Journal 5(2), 1966), weighed against how soon its bytes are
free and how long it takes to bring back. A buffer that DRAM has no copy of is stored before its
bytes are given away; the store may run as soon as the buffer is valid, long before. Engines and
links may keep either waiting: bytes that are free while a load cannot run yet save it nothing.
"""

from typing import NamedTuple

import cython

from spmilp.solvers.schedule.kernels.records import Table, row_of
from spmilp.solvers.schedule.kernels.schedule_state import AddressSpace, ScheduleState


class Request(NamedTuple):
    """Bytes wanted in a memory while a task is being placed.

    Without these bytes the task could start at the cycle ``need``; they must be free ``lead``
    cycles before it can use them. A load into them could run from the cycle ``ready`` on: its
    source is valid, engine and links have a gap. That is ``NEVER`` for bytes that the task itself
    writes, which prefer addresses that have not been idle for long (others are left for loads). A
    ``compact`` request takes the lowest addresses that can be cleared, whatever that costs.
    """

    memory: int
    size: int
    need: int
    lead: int
    ready: int
    task: int
    compact: bool


if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from spmilp.compiled import whole as space_in
    from spmilp.solvers.schedule.kernels.memories import (
        block_at,
        blocks_of,
        close,
        free_by,
        gathered,
        is_last_copy,
        next_use,
        residency_in,
        take,
    )
    from spmilp.solvers.schedule.kernels.records import NEVER, NONE
    from spmilp.solvers.schedule.kernels.schedule_state import (
        BLOCKS_FULL,
        DOES_NOT_FIT,
        DONE,
        FREE,
        RESERVED,
        UNREACHABLE,
    )
    from spmilp.solvers.schedule.kernels.transfers import (
        copy_to,
        cycles_on_idle_hardware,
        earliest_transfer,
        spill,
        transfer,
    )

    CRequest = Request
    buffer_at = memory_at = residency_at = row_of
    # In place of the end of a store for which no gap has been looked for.
    TO_BE_TIMED = NONE


def allocate(state: ScheduleState, slice_: int, request: Request) -> tuple[int, int, int]:
    """Clear the cheapest range of addresses and give it to a new residency of a slice.

    Returns the residency, the cycle from which its bytes are free, and why it stopped.
    """
    if state.is_open:
        address, stop = _with_room_made(state, request)
        if stop != DONE:
            return NONE, 0, stop
        return take(state, slice_, request.memory, request.size, address, request.task)
    address = cheapest_range(state, request)
    while address != NONE:
        held = _holder_in(space_in(state.space), request.memory, address, request.size)
        if held == NONE:
            return take(state, slice_, request.memory, request.size, address, request.task)
        stop = evict(state, held, request.task)
        if stop == DOES_NOT_FIT:
            # No memory has room for it now: while the task is placed, it stays.
            state.residencies[held].pinned = request.task
            address = cheapest_range(state, request)
        elif stop != DONE:
            return NONE, 0, stop
    return NONE, 0, DOES_NOT_FIT


def _with_room_made(state: ScheduleState, request: Request) -> tuple[int, int]:
    """Clear the cheapest bytes of a memory without addresses; return where they are put together.

    Returns the address, and why it stopped.
    """
    memory = request.memory
    alignment = state.memories[memory].alignment
    size = (request.size + alignment - 1) // alignment * alignment
    count = _cheapest_to_evict(state, request, size)
    if count == NONE:
        return NONE, DOES_NOT_FIT
    for i in range(count):
        stop = evict(state, state.chosen[i], request.task)
        if stop != DONE:
            return NONE, stop
    limit = free_by(state, memory, size)
    if limit == NEVER:
        return NONE, DOES_NOT_FIT
    # What is free sooner than it can be used is left for others.
    limit = max(limit, request.need if request.ready == NEVER else request.ready)
    address = gathered(state, memory, size, limit)
    return address, BLOCKS_FULL if address == NONE else DONE


def _cheapest_to_evict(state: ScheduleState, request: Request, size: int) -> int:
    """Choose residencies whose bytes, with those that are free, cost the least.

    What bytes cost depends on when the last of them is free. So one such cycle after another is
    tried, with the blocks that can be cleared by then, until waiting alone costs more than that.
    Returns their number in ``state.chosen``; -1 if not enough can be cleared.
    """
    memory, prices = request.memory, state.prices
    blocks = blocks_of(space_in(state.space), memory)
    _price_all_blocks(state, memory, request.task)
    count = _sort_by_time(state, memory)
    free, evictable = 0, 0
    best, best_cost = NONE, 0.0
    for place in range(count):
        block = prices[place].in_turn
        by = prices[block].free_from
        if blocks[block].holder == FREE:
            free += _length(blocks, block)
        else:
            evictable += _length(blocks, block)
        others_follow = place + 1 < count and prices[prices[place + 1].in_turn].free_from == by
        if free + evictable < size or others_follow:
            continue
        waiting = _with_waiting(state, request, 0.0, by)
        if best != NONE and waiting >= best_cost:
            return best
        if free >= size:
            return 0
        cost, until = _choose_cheapest(state, request, place + 1, size - free)
        cost = _with_waiting(state, request, cost, max(by, until))
        if best == NONE or cost < best_cost:
            best, best_cost = 0, cost
            for i in range(place + 1):
                if prices[prices[i].in_turn].is_chosen:
                    state.chosen[best] = blocks[prices[i].in_turn].holder
                    best += 1
    return best


def _length(blocks: Table, block: int) -> int:
    return blocks[block + 1].start - blocks[block].start


def _sort_by_time(state: ScheduleState, memory: int) -> int:
    """Sort the blocks that can be cleared by when they are free; return how many there are."""
    prices, count = state.prices, 0
    for block in range(state.space.length[memory]):
        if prices[block].free_from == NEVER:
            continue
        place = count
        while place > 0 and prices[prices[place - 1].in_turn].free_from > prices[block].free_from:
            prices[place].in_turn = prices[place - 1].in_turn
            place -= 1
        prices[place].in_turn = block
        count += 1
    return count


def _choose_cheapest(
    state: ScheduleState, request: Request, count: int, missing: int
) -> tuple[float, int]:
    """Choose residencies with so many bytes; return what they cost, and from when they are free.

    Of the first ``count`` blocks in order of time it is one alone that has enough, or the cheapest
    for their bytes, one after another.
    """
    prices, blocks = state.prices, blocks_of(space_in(state.space), request.memory)
    alone, cost_alone = NONE, 0.0
    for place in range(count):
        block = prices[place].in_turn
        prices[block].is_chosen = 0
        is_enough = blocks[block].holder != FREE and _length(blocks, block) >= missing
        if is_enough and (alone == NONE or prices[block].cost < cost_alone):
            alone, cost_alone = block, prices[block].cost
    together, cost = 0, 0.0
    while together < missing and (alone == NONE or cost < cost_alone):
        cheapest, least = NONE, 0.0
        for place in range(count):
            block = prices[place].in_turn
            if blocks[block].holder != FREE and not prices[block].is_chosen:
                rate = prices[block].cost / min(_length(blocks, block), missing - together)
                if cheapest == NONE or rate < least:
                    cheapest, least = block, rate
        if cheapest == NONE:
            break
        prices[cheapest].is_chosen = 1
        together += _length(blocks, cheapest)
        cost += prices[cheapest].cost
    if alone != NONE and (together < missing or cost_alone <= cost):
        for place in range(count):
            prices[prices[place].in_turn].is_chosen = 0
        prices[alone].is_chosen = 1
        cost = cost_alone
    until = 0
    for place in range(count):
        block = prices[place].in_turn
        if prices[block].is_chosen and prices[block].store != 0:
            until = max(until, _end_of_stores(state, request.memory, block, block + 1))
    return cost, until


def cheapest_range(state: ScheduleState, request: Request) -> int:
    """Return the address of the cheapest range of bytes to clear; -1 when none can be cleared."""
    memory = request.memory
    blocks = blocks_of(space_in(state.space), memory)
    count = state.space.length[memory]
    alignment = state.memories[memory].alignment
    prices = state.prices
    _price_all_blocks(state, memory, request.task)
    best, best_cost = NONE, 0.0
    for first in range(count):
        address = (blocks[first].start + alignment - 1) // alignment * alignment
        end = address + request.size
        if address >= blocks[first + 1].start:
            continue
        if end > blocks[count].start:
            break
        free, cost, block, has_stores = 0, 0.0, first, False
        # Costs only grow: a range that is already dearer than the best one is left.
        while blocks[block].start < end and prices[block].free_from != NEVER:
            if best != NONE and cost >= best_cost:
                break
            free = max(free, prices[block].free_from)
            cost += prices[block].cost
            has_stores = has_stores or prices[block].store != 0
            block += 1
        if blocks[block].start < end:
            continue
        if request.compact:
            return address
        if has_stores:
            # To look for gaps takes long; with them the bytes are free no sooner than without.
            is_load = request.ready != NEVER
            at_least = _with_waiting(state, request, cost, free) if is_load else cost
            if best != NONE and at_least >= best_cost:
                continue
            free = max(free, _end_of_stores(state, memory, first, block))
        cost = _with_waiting(state, request, cost, free)
        # Among equals, the range that leaves the smallest gap behind it.
        cost += 1e-9 * (blocks[block].start - end)
        if best == NONE or cost < best_cost:
            best, best_cost = address, cost
    return best


def _with_waiting(state: ScheduleState, request: Request, cost: float, free: int) -> float:
    """Return a cost with what it costs that bytes are free from a cycle on, not sooner or later."""
    weights, in_time = state.weights, request.need - request.lead
    if request.ready == NEVER:
        return cost + max(0, free - in_time) + weights.idle * max(0, request.need - free)
    # Bytes that are free while the load cannot run yet are of no use.
    in_time = max(in_time, request.ready)
    return cost + max(0, free - in_time) + weights.early * max(0, free - request.ready)


def _end_of_stores(state: ScheduleState, memory: int, first: int, last: int) -> int:
    """Return when all that must be stored of the blocks from ``first`` to ``last`` could be."""
    blocks, prices, end = blocks_of(space_in(state.space), memory), state.prices, 0
    there = _spilled_to(state, memory)
    for block in range(first, last):
        if prices[block].store == TO_BE_TIMED:
            holder = blocks[block].holder
            held = residency_at(state.residencies, holder)
            option, _, until = earliest_transfer(
                state, held.slice, holder, there, held.valid, NEVER
            )
            if option != NONE:
                until -= state.options[option].latency
            prices[block].store = until
        end = max(end, prices[block].store)
    return end


def _price_all_blocks(state: ScheduleState, memory: int, task: int) -> None:
    """Find for each block from when it could be free and what that costs.

    A store that has to come before is timed only when it matters.
    """
    blocks = blocks_of(space_in(state.space), memory)
    for block in range(state.space.length[memory]):
        holder = blocks[block].holder
        free_from, cost, store = blocks[block].free_from, 0.0, 0
        if holder == RESERVED or (holder != FREE and not _is_evictable(state, holder, task)):
            free_from = NEVER
        elif holder != FREE:
            free_from, cost, store = _eviction_price(state, holder, task)
        state.prices[block].free_from = free_from
        state.prices[block].cost = cost
        state.prices[block].store = store


def _spilled_to(state: ScheduleState, memory: int) -> int:
    """Return the memory to which what is evicted goes; -1 if there is none."""
    here = memory_at(state.memories, memory)
    return here.parent if here.aside == NONE else here.aside


def _is_evictable(state: ScheduleState, held: int, task: int) -> bool:
    """Say whether a residency may be evicted while ``task`` is being placed.

    While buffers are put where they begin there is no task yet, and all of them stay.
    """
    residency = residency_at(state.residencies, held)
    if task == NONE or residency.slice == NONE or residency.pinned == task:
        return False
    if residency.pinned != NONE and not state.tasks[residency.pinned].placed:
        return False
    buffer = state.slices[residency.slice].buffer
    entry = buffer_at(state.buffers, buffer)
    if entry.home != held:
        return True
    if entry.ends == residency.memory:
        return False
    return entry.in_dram != NONE or state.memories[residency.memory].parent != NONE


def _eviction_price(state: ScheduleState, held: int, task: int) -> tuple[int, float, int]:
    """Return what evicting a residency costs.

    Returns from when its bytes could be free but for a store; the cost in cycles; and
    ``TO_BE_TIMED`` where it must be stored before, or 0.
    """
    residency = residency_at(state.residencies, held)
    weights = state.weights
    gone = max(residency.end, residency.valid)
    memory = residency.memory
    parent = _spilled_to(state, memory)
    if parent == NONE:
        return gone, 0.0, 0
    back = cycles_on_idle_hardware(state, parent, memory, residency.bytes)
    away = next_use(state, held) - state.tasks[task].position
    tasks_of_a_core = max(0.0, away / state.rows.cores)
    price = weights.evict * back * weights.horizon / (weights.horizon + tasks_of_a_core)
    if is_last_copy(state, held):
        out = cycles_on_idle_hardware(state, memory, parent, residency.bytes)
        return gone, price + weights.evict * out, TO_BE_TIMED
    return gone, price, 0


def _holder_in(space: AddressSpace, memory: int, address: int, size: int) -> int:
    """Return a residency that lies in a range of addresses; -1 when the range is free."""
    blocks = blocks_of(space, memory)
    block = block_at(space, memory, address)
    while blocks[block].start < address + size:
        if blocks[block].holder != FREE:
            return blocks[block].holder
        block += 1
    return NONE


def evict(state: ScheduleState, held: int, task: int) -> int:
    """End a residency; the last copy of a buffer moves aside or closer to DRAM first.

    What would have to move has to stay where no such memory has room.
    """
    here = memory_at(state.memories, state.residencies[held].memory)
    if is_last_copy(state, held):
        if here.parent == NONE:
            return DOES_NOT_FIT
        if state.memories[here.parent].is_dram:
            stop = spill(state, held, here.parent)
        else:
            stop = _move_to_shared_memory(state, held, here.parent, task)
        if stop != DONE:
            return stop
    elif here.aside != NONE:
        stop = _keep_aside(state, held, here.aside)
        if stop != DONE:
            return stop
    close(state, held)
    return DONE


def _keep_aside(state: ScheduleState, held: int, aside: int) -> int:
    """Copy what only DRAM has besides to a shared memory, if tasks need it and nothing waits."""
    residency = residency_at(state.residencies, held)
    if residency.slice == NONE or next_use(state, held) == NEVER:
        return DONE
    buffer = buffer_at(state.buffers, state.slices[residency.slice].buffer)
    if buffer.home != NONE or residency_in(state, residency.slice, aside) != NONE:
        return DONE
    _, stop = copy_to(state, held, aside, residency.end + 1)
    return DONE if stop in (UNREACHABLE, DOES_NOT_FIT) else stop


def _move_to_shared_memory(state: ScheduleState, held: int, parent: int, task: int) -> int:
    """Copy the last copy of a buffer to a memory next to DRAM; what lies there goes to DRAM.

    No machine has more than one memory between a scratchpad and DRAM.
    """
    slice_ = state.residencies[held].slice
    ready = state.residencies[held].valid
    request = CRequest(parent, state.residencies[held].bytes, ready, 0, ready, task, False)
    new, free, stop = allocate(state, slice_, request)
    if stop != DONE:
        return stop
    option, start, end = earliest_transfer(state, slice_, held, parent, max(free, ready), NEVER)
    if option == NONE:
        return UNREACHABLE
    state.buffers[state.slices[slice_].buffer].home = new
    return transfer(state, slice_, held, new, option, start, end)
