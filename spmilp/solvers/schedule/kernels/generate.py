"""Serial schedule generation that keeps every scratchpad's real contents. Compiled.

Tasks are placed one after another in a given order. For each one the slices that it reads are
brought into the core's memory, what is needed last is evicted, bytes are reserved for what it
writes, and it starts as early as all that allows. Every decision is final and has its cycles and
its addresses at once, so that the next task can always wait for what came before: there is no
deadlock, and a plan comes out whenever each task's working set fits.
"""

import cython

from spmilp.compiled import address, in_c
from spmilp.solvers.schedule.kernels.records import Ints
from spmilp.solvers.schedule.kernels.schedule_state import ScheduleState

MOST_SOURCES = 12
"""Residencies outside DRAM that are looked at as sources of a copy, which bounds the time."""

if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from spmilp.compiled import longs_at, whole
    from spmilp.solvers.schedule.kernels.eviction import CRequest, allocate, cheapest_range, evict
    from spmilp.solvers.schedule.kernels.memories import (
        blocks_of,
        close,
        close_idle_copies,
        close_if_idle,
        is_counted,
        new_residency,
        next_use,
        residency_in,
        settle_at,
    )
    from spmilp.solvers.schedule.kernels.records import NEVER, NONE, row_of
    from spmilp.solvers.schedule.kernels.schedule_state import (
        BLOCKS_FULL,
        COUNT_FAILED_MEMORY,
        COUNT_FAILED_SLICE,
        COUNT_FAILED_TASK,
        COUNT_LATEST,
        COUNT_TRANSFERS,
        DOES_NOT_FIT,
        DONE,
        RESIDENCIES_FULL,
        TOO_LATE,
        UNREACHABLE,
    )
    from spmilp.solvers.schedule.kernels.transfers import (
        earliest_finish_core,
        earliest_transfer,
        end_of_predecessors,
        spill,
        store,
        transfer_to_all,
    )

    task_at = read_at = write_at = buffer_at = core_at = memory_at = residency_at = row_of
    state_at = space_in = whole


def generate_schedule(tables: ScheduleState, order: Ints) -> int:
    """Place the tasks of ``order`` one after another; return why it stopped."""
    kept = in_c(tables)
    state, tasks, count = state_at(address(kept)), longs_at(address(order)), whole(order.size)
    with cython.nogil:
        stop = _generate(state, tasks, count)
    return int(stop)


def _generate(state: ScheduleState, order: Ints, count: int) -> int:
    """Place ``count`` tasks one after another; return why it stopped."""
    stop = _place_initial_buffers(state)
    if stop != DONE:
        return stop
    for place in range(count):
        task = order[place]
        placed = task_at(state.tasks, task)
        if placed.core == NONE:
            placed.core = earliest_finish_core(state, task)
        stop = UNREACHABLE if placed.core == NONE else _place(state, task, False)
        if stop == DOES_NOT_FIT:
            # What the task has brought so far leaves gaps: begin again in an empty memory.
            stop = _empty_the_memory(state, task)
            if stop == DONE:
                stop = _place(state, task, True)
        if stop != DONE:
            state.counts[COUNT_FAILED_TASK] = task
            return stop
        if placed.end + placed.tail > state.counts[COUNT_LATEST]:
            return TOO_LATE
    return DONE


def _place_initial_buffers(state: ScheduleState) -> int:
    for buffer in range(state.rows.buffers):
        memory = state.buffers[buffer].begins
        if memory == NONE:
            continue
        size = state.slices[buffer].bytes
        new = new_residency(state, buffer, memory, size)
        if new == NONE:
            return RESIDENCIES_FULL
        if state.memories[memory].is_dram:
            state.buffers[buffer].in_dram = new
            continue
        request = CRequest(memory, size, 0, 0, 0, NONE, True)
        address = cheapest_range(state, request)
        if address == NONE:
            state.counts[COUNT_FAILED_SLICE] = buffer
            state.counts[COUNT_FAILED_MEMORY] = memory
            return DOES_NOT_FIT
        if not settle_at(state, new, address):
            return BLOCKS_FULL
        state.buffers[buffer].home = new
    return DONE


def _empty_the_memory(state: ScheduleState, task: int) -> int:
    """Evict all that may go from the memory in which a task is to run, what it reads included."""
    memory = state.cores[state.tasks[task].core].memory
    blocks = blocks_of(space_in(state.space), memory)
    block = 0
    while block < state.space.length[memory]:
        held = blocks[block].holder
        if held < 0 or _is_pinned_home(state, held):
            block += 1
            continue
        stop = evict(state, held, task)
        if stop == DOES_NOT_FIT:
            block += 1
            continue
        if stop != DONE:
            return stop
        block = 0
    return DONE


def _is_pinned_home(state: ScheduleState, held: int) -> bool:
    residency = residency_at(state.residencies, held)
    if residency.slice == NONE:
        return False
    buffer = state.slices[residency.slice].buffer
    at_home = state.buffers[buffer].home == held
    return at_home and state.buffers[buffer].ends == residency.memory


def _place(state: ScheduleState, task: int, compact: bool) -> int:
    """Give a task its slices, bytes and cycles."""
    placed = task_at(state.tasks, task)
    core = core_at(state.cores, placed.core)
    memory = core.memory
    need = max(core.free, end_of_predecessors(state, task))
    for entry in range(placed.reads_from, placed.reads_to):
        read = read_at(state.reads, entry)
        read.served_by = residency_in(state, read.slice, memory)
        if read.served_by != NONE:
            served = residency_at(state.residencies, read.served_by)
            served.pinned = task
            need = max(need, served.valid)
    for entry in range(placed.reads_from, placed.reads_to):
        read = read_at(state.reads, entry)
        if read.served_by == NONE:
            here, stop = fetch(state, read.slice, memory, need, task, compact)
            if stop != DONE:
                return stop
            read.served_by = here
        need = max(need, state.residencies[read.served_by].valid)
    placed.placed = 1
    start, stop = _reserve_outputs(state, task, memory, need, compact)
    if stop != DONE:
        placed.placed = 0
        return stop
    end = start + state.cycles[task * state.rows.kinds + core.kind]
    placed.start = start
    placed.end = end
    core.free = end
    state.memories[memory].settled = max(state.memories[memory].settled, start)
    stop = _write(state, task, memory, start, end)
    if stop != DONE:
        return stop
    return _release(state, task)


def _reserve_outputs(
    state: ScheduleState, task: int, memory: int, need: int, compact: bool
) -> tuple[int, int]:
    """Find bytes for outputs and scratch; return the task's start and why it stopped."""
    writer = task_at(state.tasks, task)
    for entry in range(writer.writes_from, writer.writes_to):
        write = write_at(state.writes, entry)
        write.held_by = _overwritten(state, task, entry, memory, need, compact)
        if write.held_by != NONE:
            need = max(need, state.residencies[write.held_by].end)
            continue
        size = state.slices[write.buffer].bytes
        request = CRequest(memory, size, need, 0, NEVER, task, compact)
        new, free, stop = allocate(state, write.buffer, request)
        if stop != DONE:
            return need, stop
        write.held_by = new
        need = max(need, free)
    if writer.scratch_bytes > 0:
        request = CRequest(memory, writer.scratch_bytes, need, 0, NEVER, task, compact)
        new, free, stop = allocate(state, NONE, request)
        if stop != DONE:
            return need, stop
        writer.scratch = new
        need = max(need, free)
    return need, DONE


def _overwritten(
    state: ScheduleState, task: int, entry: int, memory: int, need: int, compact: bool
) -> int:
    """Return the operand whose bytes the task's output ``entry`` may take over; -1 if none.

    No other task needs the operand, it is large enough, and waiting for its other uses costs
    nothing (or the memory is compacted and any bytes will do).
    """
    write = write_at(state.writes, entry)
    size = state.slices[write.buffer].bytes
    for pair in range(write.overwrites_from, write.overwrites_to):
        read = read_at(state.reads, state.tasks[task].reads_from + state.lists[pair])
        held = read.served_by
        residency = residency_at(state.residencies, held)
        if residency.slice != read.slice or residency.memory != memory:
            continue
        if residency.bytes < size or (residency.end > need and not compact):
            continue
        if next_use(state, held) != NEVER:
            continue
        # Reading another slice of the same residency would find it overwritten.
        taken = False
        for other in range(state.tasks[task].reads_from, state.tasks[task].reads_to):
            another = read_at(state.reads, other)
            taken = taken or (another.served_by == held and another.slice != read.slice)
        for other in range(state.tasks[task].writes_from, entry):
            taken = taken or state.writes[other].held_by == held
        if not taken:
            return held
    return NONE


def _write(state: ScheduleState, task: int, memory: int, start: int, end: int) -> int:
    """Fix the cycles of what a task uses; overwritten operands give up their bytes."""
    writer = task_at(state.tasks, task)
    for entry in range(writer.reads_from, writer.reads_to):
        served = residency_at(state.residencies, state.reads[entry].served_by)
        served.end = max(served.end, end)
    for entry in range(writer.writes_from, writer.writes_to):
        write = write_at(state.writes, entry)
        buffer = write.buffer
        old = residency_at(state.residencies, write.held_by)
        if old.slice != buffer:
            overwritten = write.held_by
            close(state, overwritten)
            write.held_by = new_residency(state, buffer, memory, state.slices[buffer].bytes)
            if write.held_by == NONE:
                return RESIDENCIES_FULL
            state.residencies[write.held_by].overwrites = overwritten
            if not settle_at(state, write.held_by, old.offset):
                return BLOCKS_FULL
        written = residency_at(state.residencies, write.held_by)
        written.start = start
        written.valid = end
        written.end = end
        written.filled_by_task = task
        state.buffers[buffer].home = write.held_by
    if writer.scratch != NONE:
        scratch = residency_at(state.residencies, writer.scratch)
        scratch.start = start
        scratch.end = end
        close(state, writer.scratch)
    return DONE


def _release(state: ScheduleState, task: int) -> int:
    """Store outputs, and close every residency that no task needs any more."""
    done = task_at(state.tasks, task)
    aside = state.memories[state.cores[done.core].memory].aside
    for entry in range(done.writes_from, done.writes_to):
        written = buffer_at(state.buffers, state.writes[entry].buffer)
        if written.ends != NONE:
            stop = send_towards(state, written.home, written.ends, task)
            if stop != DONE:
                return stop
        close_if_idle(state, written.home)
    for entry in range(done.reads_from, done.reads_to):
        read = read_at(state.reads, entry)
        close_if_idle(state, read.served_by)
        buffer = state.slices[read.slice].buffer
        close_if_idle(state, state.buffers[buffer].home)
        close_idle_copies(state, read.slice)
        if buffer != read.slice and aside != NONE:
            close_idle_copies(state, buffer)
        stored = state.buffers[buffer].in_dram
        if stored != NONE and is_counted(state, buffer, state.residencies[stored].memory):
            close_if_idle(state, stored)
    return DONE


def fetch(
    state: ScheduleState, slice_: int, memory: int, need: int, task: int, compact: bool
) -> tuple[int, int]:
    """Bring a slice into a memory, through DRAM or a shared one where no engine connects them.

    Returns the residency in ``memory``, and why it stopped.
    """
    here, stop = _fetch_directly(state, slice_, memory, need, task, compact)
    if stop != UNREACHABLE:
        return here, stop
    parent = state.memories[memory].parent
    if parent == NONE:
        return here, stop
    if state.memories[parent].is_dram:
        while stop == UNREACHABLE:
            stop = _store_home(state, slice_)
            if stop != DONE:
                break
            here, stop = _fetch_directly(state, slice_, memory, need, task, compact)
        return here, stop
    if residency_in(state, slice_, parent) == NONE:
        staged, stop = _fetch_directly(state, slice_, parent, need, task, False)
        if stop != DONE:
            return staged, stop
    return _fetch_directly(state, slice_, memory, need, task, compact)


def _store_home(state: ScheduleState, slice_: int) -> int:
    """Copy a slice's buffer to a shared memory or to DRAM, unless DRAM has it already."""
    entry = buffer_at(state.buffers, state.slices[slice_].buffer)
    if entry.home == NONE or entry.in_dram != NONE:
        return UNREACHABLE
    here = memory_at(state.memories, state.residencies[entry.home].memory)
    if here.parent == NONE or not state.memories[here.parent].is_dram:
        return UNREACHABLE
    return spill(state, entry.home, here.parent)


def _fetch_directly(
    state: ScheduleState, slice_: int, memory: int, need: int, task: int, compact: bool
) -> tuple[int, int]:
    """Copy a slice from where the copy ends first, with a surcharge on DRAM."""
    source, option, start, end = best_source(state, slice_, memory, 0)
    if source == NONE:
        state.counts[COUNT_FAILED_SLICE] = slice_
        state.counts[COUNT_FAILED_MEMORY] = memory
        return NONE, UNREACHABLE
    size, made = state.slices[slice_].bytes, state.counts[COUNT_TRANSFERS]
    request = CRequest(memory, size, need, end - start, start, task, compact)
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
    return new, transfer_to_all(state, slice_, source, new, option, start, end)


def best_source(
    state: ScheduleState, slice_: int, memory: int, free: int
) -> tuple[int, int, int, int]:
    """Return residency, option, start and end of the best copy of a slice into ``memory``.

    At most ``MOST_SOURCES`` residencies outside DRAM are asked, the youngest first.
    """
    best, best_option, best_start, best_end, best_cost = NONE, NONE, 0, 0, 0.0
    before = NEVER
    buffer = state.slices[slice_].buffer
    one = state.slices[slice_].first
    in_parent = slice_ == buffer
    asked = 0
    while True:
        while one != NONE:
            residency = residency_at(state.residencies, one)
            following = residency.following
            is_dram = state.memories[residency.memory].is_dram
            pair = state.pair_at[residency.memory * state.rows.memories + memory]
            if residency.alive and pair != NONE and (is_dram or asked < MOST_SOURCES):
                ready = max(free, residency.valid)
                option, start, end = earliest_transfer(state, slice_, one, memory, ready, before)
                cost = float(end)
                if is_dram:
                    cost += state.weights.dram * (end - start)
                else:
                    asked += 1
                if option != NONE and (best == NONE or cost < best_cost):
                    best, best_option, best_start, best_end = one, option, start, end
                    best_cost = cost
                    # No copy costs less than the cycle at which it ends.
                    before = int(cost)
                    before += 1
            one = following
        if in_parent:
            return best, best_option, best_start, best_end
        one, in_parent = state.slices[buffer].first, True


def send_towards(state: ScheduleState, held: int, memory: int, task: int) -> int:
    """Copy a buffer to the memory in which it must end, through a shared one where need be."""
    residency = residency_at(state.residencies, held)
    if residency.memory == memory:
        return DONE
    slice_ = residency.slice
    parent = state.memories[residency.memory].parent
    if parent == memory and state.memories[memory].is_dram:
        return store(state, held, memory)
    if parent == NONE:
        state.counts[COUNT_FAILED_SLICE] = slice_
        state.counts[COUNT_FAILED_MEMORY] = memory
        return UNREACHABLE
    here, stop = fetch(state, slice_, parent, residency.valid, task, False)
    if stop != DONE:
        return stop
    if parent == memory:
        state.buffers[state.slices[slice_].buffer].home = here
        return DONE
    stop = store(state, here, memory)
    close(state, here)
    return stop
