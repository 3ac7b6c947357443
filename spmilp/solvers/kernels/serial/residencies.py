"""Residencies from their first byte to their last use: tasks that need them, and when. Compiled."""

from spmilp.compiled import part
from spmilp.solvers.kernels.address_space import FREE, block_at, claim, release
from spmilp.solvers.kernels.records import NEVER, NONE, ZERO
from spmilp.solvers.kernels.schedule_state import COUNT_RESIDENCIES, ScheduleState


@part
def next_use(state: ScheduleState, held: int) -> int:
    """Return the position of the next task that needs a residency; ``NEVER`` if none does.

    A buffer's home is needed by every reader wherever it runs, and so is a copy of what only DRAM
    has besides: others take it from here rather than load it again. Any other copy is needed by the
    readers of its own memory (or of those that are filled through it).
    """
    residency = state.residencies[held]
    slice_ = residency.slice
    buffer = state.slices[slice_].buffer
    whole = state.buffers[buffer]
    at_home = whole.home == held
    if at_home and whole.ends == residency.memory:
        return ZERO
    only_dram_besides = whole.home == NONE
    memory = NONE if at_home or only_dram_besides else residency.memory
    if slice_ != buffer:
        return _next_reader(state, slice_, memory)
    soonest = NEVER
    for entry in range(whole.parts_from, whole.parts_to):
        soonest = min(soonest, _next_reader(state, state.lists[entry], memory))
    return soonest


@part
def _next_reader(state: ScheduleState, slice_: int, memory: int) -> int:
    """Return the position of a slice's next reader, on ``memory`` only unless that is -1."""
    read = state.slices[slice_]
    last, entry = read.readers_to, read.next_reader
    while entry < last and state.tasks[state.readers[entry]].placed:
        entry += 1
    read.next_reader = entry
    while entry < last:
        reader = state.tasks[state.readers[entry]]
        entry += 1
        if reader.placed:
            continue
        if memory == NONE or reader.core == NONE:
            return reader.position
        reads_in = state.cores[reader.core].memory
        if reads_in == memory or state.memories[reads_in].parent == memory:
            return reader.position
    return NEVER


@part
def residency_in(state: ScheduleState, slice_: int, memory: int) -> int:
    """Return the residency in ``memory`` that can serve a slice: its own or its parent's; or -1."""
    own = _first_alive_in(state, slice_, memory)
    buffer = state.slices[slice_].buffer
    if own != NONE or slice_ == buffer:
        return own
    return _first_alive_in(state, buffer, memory)


@part
def _first_alive_in(state: ScheduleState, slice_: int, memory: int) -> int:
    """Walk the residencies of a slice, dropping the ended ones from the list."""
    before = NONE
    one = state.slices[slice_].first
    while one != NONE:
        residency = state.residencies[one]
        following = residency.following
        if not residency.alive:
            if before == NONE:
                state.slices[slice_].first = following
            else:
                state.residencies[before].following = following
        else:
            if residency.memory == memory:
                return one
            before = one
        one = following
    return NONE


@part
def is_last_copy(state: ScheduleState, held: int) -> bool:
    """Say whether a buffer that is still needed would be lost with this residency."""
    buffer = state.slices[state.residencies[held].slice].buffer
    entry = state.buffers[buffer]
    return entry.home == held and entry.in_dram == NONE


@part
def new_residency(state: ScheduleState, slice_: int, memory: int, size: int) -> int:
    """Return a new residency without cycles and address; -1 when the table is full."""
    new = state.counts[COUNT_RESIDENCIES]
    if new == state.residencies.size:
        return NONE
    state.counts[COUNT_RESIDENCIES] = new + 1
    residency = state.residencies[new]
    residency.slice = slice_
    residency.memory = memory
    residency.bytes = size
    residency.alive = 1
    residency.filled_by_task = NONE
    residency.filled_by_transfer = NONE
    residency.overwrites = NONE
    residency.pinned = NONE
    residency.following = NONE
    if slice_ >= 0:
        residency.following = state.slices[slice_].first
        state.slices[slice_].first = new
    return new


@part
def settle_at(state: ScheduleState, held: int, address: int) -> bool:
    """Give a new residency the free bytes at ``address``; False when the row of blocks is full."""
    residency = state.residencies[held]
    residency.offset = address
    size = padded_size(state, residency.memory, address, residency.bytes)
    return claim(state.space, residency.memory, address, size, held)


@part
def padded_size(state: ScheduleState, memory: int, address: int, size: int) -> int:
    """Return the bytes to take for ``size``: up to the next aligned address if they are free."""
    alignment = state.memories[memory].alignment
    end = address + (size + alignment - 1) // alignment * alignment
    blocks = state.space.blocks[memory]
    block = block_at(state.space, memory, address)
    while block < state.space.length[memory] and blocks[block].start < end:
        if blocks[block].holder != FREE:
            return blocks[block].start - address
        block += 1
    return min(end, blocks[block].start) - address


@part
def close(state: ScheduleState, held: int) -> None:
    """End a residency after its last use and free its bytes from then on."""
    residency = state.residencies[held]
    residency.end = max(residency.end, residency.valid, residency.start + 1)
    residency.alive = 0
    if residency.slice >= 0:
        buffer = state.buffers[state.slices[residency.slice].buffer]
        if buffer.home == held:
            buffer.home = NONE
    memory = state.memories[residency.memory]
    if not memory.is_dram:
        release(state.space, residency.memory, residency.offset, residency.end, memory.settled)


@part
def close_if_idle(state: ScheduleState, held: int) -> None:
    """End a residency that no task needs any more."""
    if held != NONE and state.residencies[held].alive and next_use(state, held) == NEVER:
        close(state, held)


@part
def close_idle_copies(state: ScheduleState, slice_: int) -> None:
    """End every residency of a slice, outside DRAM, that no task needs any more."""
    one = state.slices[slice_].first
    while one != NONE:
        residency = state.residencies[one]
        if not state.memories[residency.memory].is_dram:
            close_if_idle(state, one)
        one = residency.following
