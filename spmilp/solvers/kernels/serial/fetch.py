"""Loads of slices to where they are read, and of outputs to where they must end. Compiled.

A load may be prefetched: bytes are set aside for a slice long before the task that reads it. The
bytes are chosen in the order of decisions. The transfer into them is timed only when its task
is placed: more urgent ones have taken their cycles by then, and this load takes what is left since
its bytes have been free. Or it is timed at once: then a long load need not find a gap between short
ones.
"""

from spmilp.compiled import part
from spmilp.solvers.kernels.records import NEVER, NO, NONE, SET_ASIDE, ZERO
from spmilp.solvers.kernels.schedule_state import (
    COUNT_FAILED_MEMORY,
    COUNT_FAILED_SLICE,
    COUNT_TRANSFERS,
    DOES_NOT_FIT,
    DONE,
    UNREACHABLE,
    ScheduleState,
)
from spmilp.solvers.kernels.serial.eviction import Request, allocate
from spmilp.solvers.kernels.serial.multicast import relayed, transfer_to_all
from spmilp.solvers.kernels.serial.residencies import close, residency_in
from spmilp.solvers.kernels.serial.transfers import (
    cycles_on_idle_hardware,
    earliest_transfer,
    store,
)

MOST_SOURCES = 12


@part
def fetch(
    state: ScheduleState, slice_: int, memory: int, need: int, task: int, compact: bool
) -> tuple[int, int]:
    """Bring a slice into a memory, through DRAM or a shared one where no engine connects them.

    Returns
    -------
    tuple
        The residency in ``memory``, and why it stopped.
    """
    here, stop = _fetch_directly(state, slice_, memory, need, task, compact)
    if stop != UNREACHABLE:
        return here, stop
    parent = state.memories[memory].parent
    if parent == NONE:
        return here, stop
    if state.memories[parent].is_dram:
        stop = _store_home(state, slice_)
        if stop != DONE:
            return here, stop
        return _fetch_directly(state, slice_, memory, need, task, compact)
    if residency_in(state, slice_, parent) == NONE:
        staged, stop = _fetch_directly(state, slice_, parent, need, task, NO)
        if stop != DONE:
            return staged, stop
    return _fetch_directly(state, slice_, memory, need, task, compact)


@part
def _store_home(state: ScheduleState, slice_: int) -> int:
    """Copy a slice's buffer to DRAM, unless it is there already and cannot be had even so."""
    entry = state.buffers[state.slices[slice_].buffer]
    if entry.home == NONE or entry.in_dram != NONE:
        return UNREACHABLE
    parent = state.memories[state.residencies[entry.home].memory].parent
    if parent == NONE or not state.memories[parent].is_dram:
        return UNREACHABLE
    return store(state, entry.home, parent)


@part
def _fetch_directly(
    state: ScheduleState, slice_: int, memory: int, need: int, task: int, compact: bool
) -> tuple[int, int]:
    """Copy a slice from where the copy ends first, with a surcharge on DRAM."""
    source, option, start, end = best_source(state, slice_, memory, ZERO)
    if source == NONE:
        state.counts[COUNT_FAILED_SLICE] = slice_
        state.counts[COUNT_FAILED_MEMORY] = memory
        return NONE, UNREACHABLE
    size, made = state.slices[slice_].bytes, state.counts[COUNT_TRANSFERS]
    request = Request(memory, size, need, end - start, start, task, compact)
    new, free, stop = allocate(state, slice_, request)
    if stop != DONE:
        return NONE, stop
    # Where nothing was moved for the bytes, and they are free by then, the best copy is the same.
    if start < free or made < state.counts[COUNT_TRANSFERS] or not state.residencies[source].alive:
        source, option, start, end = best_source(state, slice_, memory, free)
    if source == NONE:
        # Clearing the bytes may have cleared the last source near by. What has been filled by
        # nothing must not be one.
        close(state, new)
        state.counts[COUNT_FAILED_SLICE] = slice_
        state.counts[COUNT_FAILED_MEMORY] = memory
        return NONE, UNREACHABLE
    if state.reach > 0 and state.memories[state.residencies[source].memory].is_dram:
        relay, stop = relayed(state, slice_, source, new, end)
        if stop != DONE:
            return new, stop
        if relay != NONE:
            ready = max(free, state.residencies[relay].valid)
            other, begins, ends = earliest_transfer(state, slice_, relay, memory, ready, NEVER)
            if other != NONE:
                source, option, start, end = relay, other, begins, ends
    return new, transfer_to_all(state, slice_, source, new, option, start, end)


@part
def best_source(
    state: ScheduleState, slice_: int, memory: int, free: int
) -> tuple[int, int, int, int]:
    """Return residency, option, start and end of the best copy of a slice into ``memory``.

    At most ``MOST_SOURCES`` residencies outside DRAM are asked, the youngest first.
    """
    best, best_option, best_start, best_end, best_cost = NONE, NONE, ZERO, ZERO, 0.0
    buffer = state.slices[slice_].buffer
    one = state.slices[slice_].first
    in_parent = slice_ == buffer
    asked = 0
    while True:
        while one != NONE:
            residency = state.residencies[one]
            following = residency.following
            is_dram = state.memories[residency.memory].is_dram
            reachable = state.pair_at[residency.memory, memory] != NONE
            if residency.alive and reachable and (is_dram or asked < MOST_SOURCES):
                ready = max(free, residency.valid)
                # No copy costs less than the cycle at which it ends.
                before = NEVER if best == NONE else int(best_cost) + 1
                option, start, end = earliest_transfer(state, slice_, one, memory, ready, before)
                cost = float(end)
                if is_dram:
                    cost += state.weights.dram * (end - start)
                else:
                    asked += 1
                if option != NONE and (best == NONE or cost < best_cost):
                    best, best_option, best_start, best_end = one, option, start, end
                    best_cost = cost
            one = following
        if in_parent:
            return best, best_option, best_start, best_end
        one, in_parent = state.slices[buffer].first, True


@part
def send_towards(state: ScheduleState, held: int, memory: int, task: int) -> int:
    """Copy a buffer to the memory in which it must end, through a shared one where need be."""
    residency = state.residencies[held]
    if residency.memory == memory:
        return DONE
    slice_ = residency.slice
    parent = state.memories[residency.memory].parent
    if parent == memory and state.memories[memory].is_dram:
        return store(state, held, memory)
    here, stop = fetch(state, slice_, parent, residency.valid, task, NO)
    if stop != DONE:
        return stop
    if parent == memory:
        state.buffers[state.slices[slice_].buffer].home = here
        return DONE
    stop = store(state, here, memory)
    close(state, here)
    return stop


@part
def prefetch(state: ScheduleState, step: int) -> int:
    """Set bytes aside for one of the ``reads``; from the number of reads on, load it at once."""
    count = state.reads.size
    if step < count:
        return _set_aside(state, step)
    entry = step - count
    stop = _set_aside(state, entry)
    if stop != DONE or state.reads[entry].set_aside == NONE:
        return stop
    memory = state.cores[state.tasks[state.reads[entry].reader].core].memory
    stop = load_prefetched(state, entry, memory)
    state.reads[entry].set_aside = NONE
    state.reads[entry].served_by = NONE
    return stop


@part
def _set_aside(state: ScheduleState, entry: int) -> int:
    """Set bytes aside for one of the ``reads``, if they fit; return why it stopped."""
    read = state.reads[entry]
    reader = state.tasks[read.reader]
    if reader.core == NONE or reader.placed:
        return DONE
    core = state.cores[reader.core]
    memory = core.memory
    if residency_in(state, read.slice, memory) != NONE:
        return DONE
    size = state.slices[read.slice].bytes
    parent = state.memories[memory].parent
    lead = ZERO if parent == NONE else cycles_on_idle_hardware(state, parent, memory, size)
    request = Request(memory, size, core.free, lead, ZERO, read.reader, NO)
    new, _, stop = allocate(state, SET_ASIDE, request)
    if stop == DOES_NOT_FIT:
        return DONE
    read.set_aside = new
    return stop


@part
def load_prefetched(state: ScheduleState, entry: int, memory: int) -> int:
    """Bring a slice into the bytes that were set aside for it; return why it stopped.

    They are given up when the slice has come there by another transfer, and where no engine reaches
    them from where it lies.
    """
    read = state.reads[entry]
    held = read.set_aside
    if held == NONE or not state.residencies[held].alive:
        return DONE
    if read.served_by != NONE:
        close(state, held)
        return DONE
    residency = state.residencies[held]
    source, option, start, end = best_source(state, read.slice, memory, residency.start)
    if source == NONE:
        close(state, held)
        return DONE
    residency.slice = read.slice
    residency.following = state.slices[read.slice].first
    state.slices[read.slice].first = held
    read.served_by = held
    return transfer_to_all(state, read.slice, source, held, option, start, end)
