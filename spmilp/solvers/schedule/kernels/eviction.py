"""Bytes for new residencies: what to clear, and how. Compiled.

The contents of each scratchpad are known at every step, so eviction looks ahead: what is needed
last goes first (Belady, IBM Systems Journal 5(2), 1966), weighed against how soon its bytes are
free and how long it takes to bring back. A buffer that DRAM has no copy of is stored before its
bytes are given away; the store may run as soon as the buffer is valid, long before. Engines and
links may keep either waiting: bytes that are free while a load cannot run yet save it nothing.
"""

from typing import NamedTuple

from spmilp.compiled import part
from spmilp.solvers.schedule.kernels.memories import (
    close,
    free_by,
    is_last_copy,
    new_residency,
    next_use,
    padded_size,
    take,
)
from spmilp.solvers.schedule.kernels.records import NEVER, NONE, ONE, ZERO
from spmilp.solvers.schedule.kernels.schedule_state import (
    DOES_NOT_FIT,
    DONE,
    FREE,
    UNREACHABLE,
    ScheduleState,
)
from spmilp.solvers.schedule.kernels.transfers import (
    cycles_on_idle_hardware,
    earliest_transfer,
    store,
    transfer,
)

TO_BE_TIMED = NONE
"""In place of the end of a store for which no gap has been looked for."""


class Request(NamedTuple):
    """Bytes wanted in a memory while a task is being placed.

    Parameters
    ----------
    need
        Cycle at which the task could start but for these bytes.
    lead
        Cycles from the moment the bytes are free until the task can use them.
    ready
        Cycle from which a load into them could run: its source is valid, engine and links have a
        gap. ``NEVER`` for bytes that the task itself writes, which prefer bytes that have not been
        idle for long (others are left for loads).
    """

    memory: int
    size: int
    need: int
    lead: int
    ready: int
    task: int


@part
def allocate(state: ScheduleState, slice_: int, request: Request) -> tuple[int, int]:
    """Clear the cheapest bytes and give them to a new residency of a slice.

    Returns
    -------
    tuple
        The residency, which starts when its bytes are free, and why it stopped.
    """
    count = _cheapest_to_evict(state, request, ZERO)
    for i in range(count):
        stop = evict(state, state.chosen[0, i], request.task)
        if stop != DONE:
            return NONE, stop
    return _allocate_cleared(state, slice_, request)


@part
def _allocate_cleared(state: ScheduleState, slice_: int, request: Request) -> tuple[int, int]:
    limit = free_by(state, request.memory, padded_size(state, request.memory, request.size))
    if limit == NEVER:
        return NONE, DOES_NOT_FIT
    # What is free sooner than it can be used is left for others.
    limit = max(limit, request.need if request.ready == NEVER else request.ready)
    new = new_residency(state, slice_, request.memory, request.size)
    state.residencies[new].pinned = request.task
    take(state, new, limit)
    return new, DONE


@part
def _cheapest_to_evict(state: ScheduleState, request: Request, row: int) -> int:
    """Choose residencies whose bytes, with those that are free, cost the least.

    What bytes cost depends on when the last of them is free. So one such cycle after another is
    tried, with the blocks that can be cleared by then, until waiting alone costs more than that.

    Returns
    -------
    int
        Their number in a row of ``state.chosen``; 0 also if not enough can be cleared.
    """
    memory, prices = request.memory, state.prices
    size, blocks = padded_size(state, memory, request.size), state.blocks[memory]
    _price_all_blocks(state, memory, request.task)
    count = _sort_by_time(state, memory)
    free, evictable = ZERO, ZERO
    best, best_cost = NONE, 0.0
    for place in range(count):
        block = prices[place].in_turn
        by = prices[block].free_from
        if blocks[block].holder == FREE:
            free += blocks[block].bytes
        else:
            evictable += blocks[block].bytes
        others_follow = place + 1 < count and prices[prices[place + 1].in_turn].free_from == by
        if free + evictable < size or others_follow:
            continue
        waiting = _with_waiting(state, request, 0.0, by)
        if best != NONE and waiting >= best_cost:
            return best
        if free >= size:
            return ZERO
        cost, until = _choose_cheapest(state, memory, place + 1, size - free)
        cost = _with_waiting(state, request, cost, max(by, until))
        if best == NONE or cost < best_cost:
            best, best_cost = ZERO, cost
            for i in range(place + 1):
                if prices[prices[i].in_turn].is_chosen:
                    state.chosen[row, best] = blocks[prices[i].in_turn].holder
                    best += ONE
    return max(best, ZERO)


@part
def _price_all_blocks(state: ScheduleState, memory: int, task: int) -> None:
    """Find for each block from when it could be free and what that costs.

    A store that has to come before is timed only when it matters.
    """
    for block in range(state.memories[memory].blocks):
        there, price = state.blocks[memory, block], state.prices[block]
        price.free_from, price.cost, price.store = there.free_from, 0.0, ZERO
        if there.holder != FREE:
            price.free_from = NEVER
            if _is_evictable(state, there.holder, task):
                price.free_from, price.cost, price.store = _eviction_price(
                    state, there.holder, task
                )


@part
def _is_evictable(state: ScheduleState, held: int, task: int) -> bool:
    """Say whether a residency may be evicted while ``task`` is being placed."""
    residency = state.residencies[held]
    if residency.slice == NONE or residency.pinned == task:
        return False
    if residency.pinned != NONE and not state.tasks[residency.pinned].placed:
        return False
    entry = state.buffers[state.slices[residency.slice].buffer]
    if entry.home != held:
        return True
    if entry.ends == residency.memory:
        return False
    return entry.in_dram != NONE or state.memories[residency.memory].parent != NONE


@part
def _eviction_price(state: ScheduleState, held: int, task: int) -> tuple[int, float, int]:
    """Return what evicting a residency costs.

    Returns
    -------
    tuple
        From when its bytes could be free but for a store; the cost in cycles; ``TO_BE_TIMED`` where
        it must be stored before, or 0.
    """
    residency = state.residencies[held]
    weights = state.weights
    gone = max(residency.end, residency.valid)
    memory = residency.memory
    parent = state.memories[memory].parent
    if parent == NONE:
        return gone, 0.0, ZERO
    back = cycles_on_idle_hardware(state, parent, memory, residency.bytes)
    away = next_use(state, held) - state.tasks[task].position
    tasks_of_a_core = max(0.0, away / state.cores.size)
    price = weights.evict * back * weights.horizon / (weights.horizon + tasks_of_a_core)
    if is_last_copy(state, held):
        out = cycles_on_idle_hardware(state, memory, parent, residency.bytes)
        return gone, price + weights.evict * out, TO_BE_TIMED
    return gone, price, ZERO


@part
def _sort_by_time(state: ScheduleState, memory: int) -> int:
    """Sort the blocks that can be cleared by when they are free; return how many there are."""
    prices, count = state.prices, ZERO
    for block in range(state.memories[memory].blocks):
        if prices[block].free_from == NEVER:
            continue
        place = count
        while place > 0 and prices[prices[place - 1].in_turn].free_from > prices[block].free_from:
            prices[place].in_turn = prices[place - 1].in_turn
            place -= ONE
        prices[place].in_turn = block
        count += ONE
    return count


@part
def _choose_cheapest(
    state: ScheduleState, memory: int, count: int, missing: int
) -> tuple[float, int]:
    """Choose residencies with so many bytes; return what they cost, and from when they are free.

    Of the first ``count`` blocks in order of time it is one alone that has enough, or the cheapest
    for their bytes, one after another.
    """
    prices, blocks = state.prices, state.blocks[memory]
    alone, cost_alone = NONE, 0.0
    for place in range(count):
        block = prices[place].in_turn
        prices[block].is_chosen = ZERO
        is_enough = blocks[block].holder != FREE and blocks[block].bytes >= missing
        if is_enough and (alone == NONE or prices[block].cost < cost_alone):
            alone, cost_alone = block, prices[block].cost
    together, cost = ZERO, 0.0
    while together < missing and (alone == NONE or cost < cost_alone):
        cheapest, least = NONE, 0.0
        for place in range(count):
            block = prices[place].in_turn
            if blocks[block].holder != FREE and not prices[block].is_chosen:
                rate = prices[block].cost / min(blocks[block].bytes, missing - together)
                if cheapest == NONE or rate < least:
                    cheapest, least = block, rate
        if cheapest == NONE:
            break
        prices[cheapest].is_chosen = ONE
        together += blocks[cheapest].bytes
        cost += prices[cheapest].cost
    if alone != NONE and (together < missing or cost_alone <= cost):
        for place in range(count):
            prices[prices[place].in_turn].is_chosen = ZERO
        prices[alone].is_chosen = ONE
        cost = cost_alone
    until = ZERO
    for place in range(count):
        block = prices[place].in_turn
        if prices[block].is_chosen and prices[block].store != ZERO:
            until = max(until, _end_of_store(state, memory, block))
    return cost, until


@part
def _end_of_store(state: ScheduleState, memory: int, block: int) -> int:
    """Return when what a block holds could be stored; it is timed once."""
    price = state.prices[block]
    if price.store == TO_BE_TIMED:
        held = state.blocks[memory, block].holder
        ready, slice_ = state.residencies[held].valid, state.residencies[held].slice
        parent = state.memories[memory].parent
        _, _, price.store = earliest_transfer(state, slice_, held, parent, ready, NEVER)
    return price.store


@part
def _with_waiting(state: ScheduleState, request: Request, cost: float, free: int) -> float:
    """Return a cost with what it costs that bytes are free from a cycle on, not sooner or later."""
    weights, in_time = state.weights, request.need - request.lead
    if request.ready == NEVER:
        return cost + max(0, free - in_time) + weights.idle * max(0, request.need - free)
    # Bytes that are free while the load cannot run yet are of no use.
    in_time = max(in_time, request.ready)
    return cost + max(0, free - in_time) + weights.early * max(0, free - request.ready)


@part
def evict(state: ScheduleState, held: int, task: int) -> int:
    """End a residency; the last copy of a buffer moves one memory closer to DRAM first."""
    if is_last_copy(state, held):
        parent = state.memories[state.residencies[held].memory].parent
        if state.memories[parent].is_dram:
            stop = store(state, held, parent)
        else:
            stop = _move_to_shared_memory(state, held, parent, task)
        if stop != DONE:
            return stop
    close(state, held)
    return DONE


@part
def _move_to_shared_memory(state: ScheduleState, held: int, parent: int, task: int) -> int:
    """Copy the last copy of a buffer to a memory next to DRAM; what lies there goes to DRAM.

    Compiled code cannot recurse, so a machine has at most one memory between a scratchpad and DRAM.
    """
    slice_, ready = state.residencies[held].slice, state.residencies[held].valid
    request = Request(parent, state.residencies[held].bytes, ready, ZERO, ready, task)
    count = _cheapest_to_evict(state, request, ONE)
    for i in range(count):
        other = state.chosen[1, i]
        if is_last_copy(state, other):
            stop = store(state, other, state.memories[parent].parent)
            if stop != DONE:
                return stop
        close(state, other)
    new, stop = _allocate_cleared(state, slice_, request)
    if stop != DONE:
        return stop
    ready = max(ready, state.residencies[new].start)
    option, start, end = earliest_transfer(state, slice_, held, parent, ready, NEVER)
    if option == NONE:
        return UNREACHABLE
    state.buffers[state.slices[slice_].buffer].home = new
    transfer(state, slice_, held, new, option, start, end)
    return DONE
