"""What memories hold: residencies, and bytes that are free from some cycle on.

A memory is a list of blocks in no order and without addresses. A block is what one residency takes,
or bytes that are free from one cycle on. At all times all bytes fit; addresses are found when all
is decided. Decisions are made in order and never undone, so the cycle at which a block's last
holder leaves is all that has to be remembered of the past.
"""

from spmilp.compiled import part
from spmilp.solvers.schedule.kernels.records import NEVER, NO, NONE, ONE, YES, ZERO
from spmilp.solvers.schedule.kernels.schedule_state import (
    COUNT_FULL,
    COUNT_RESIDENCIES,
    FREE,
    ScheduleState,
)

MANY_BLOCKS = 512
"""Blocks of a memory from which on those that are free longest count as one. Otherwise each task
leaves a block, and to look through them takes long."""


@part
def padded_size(state: ScheduleState, memory: int, size: int) -> int:
    """Return the bytes that ``size`` bytes take, with those up to the next aligned address."""
    alignment = state.memories[memory].alignment
    return (size + alignment - ONE) // alignment * alignment


@part
def free_bytes(state: ScheduleState, memory: int, limit: int) -> int:
    """Return how many bytes of a memory are free by a cycle."""
    blocks, total = state.blocks[memory], ZERO
    for block in range(state.memories[memory].blocks):
        if blocks[block].holder == FREE and blocks[block].free_from <= limit:
            total += blocks[block].bytes
    return total


@part
def free_by(state: ScheduleState, memory: int, size: int) -> int:
    """Return the first cycle by which so many bytes are free; ``NEVER`` for none."""
    blocks = state.blocks[memory]
    last, total = -ONE, ZERO
    while total < size:
        following, more = NEVER, ZERO
        for block in range(state.memories[memory].blocks):
            free_from = blocks[block].free_from
            if blocks[block].holder == FREE and last < free_from <= following:
                more = blocks[block].bytes + (ZERO if free_from < following else more)
                following = free_from
        if following == NEVER:
            return NEVER
        total += more
        last = following
    return last


@part
def take(state: ScheduleState, held: int, limit: int) -> bool:
    """Give a new residency bytes that are free by ``limit``, those that are free last.

    It starts when they are free.

    Returns
    -------
    bool
        Whether there are enough.
    """
    residency = state.residencies[held]
    memory = residency.memory
    missing = padded_size(state, memory, residency.bytes)
    if free_bytes(state, memory, limit) < missing:
        return NO
    if state.memories[memory].blocks >= MANY_BLOCKS:
        _join_oldest(state, memory, limit)
        _join_oldest(state, memory, limit)
    _drop_empty_blocks(state, memory)
    blocks = state.blocks[memory]
    size = missing
    while missing > 0:
        last = NONE
        for block in range(state.memories[memory].blocks):
            is_usable = blocks[block].holder == FREE and blocks[block].bytes > 0
            if not is_usable or blocks[block].free_from > limit:
                continue
            if last == NONE or blocks[block].free_from > blocks[last].free_from:
                last = block
        taken = min(missing, blocks[last].bytes)
        blocks[last].bytes -= taken
        missing -= taken
        residency.start = max(residency.start, blocks[last].free_from)
    _append(state, memory, size, held, ZERO)
    return YES


@part
def _join_oldest(state: ScheduleState, memory: int, limit: int) -> None:
    """Count the two blocks that are free longest as one, which is free when the later one is."""
    blocks = state.blocks[memory]
    first = second = NONE
    for block in range(state.memories[memory].blocks):
        if blocks[block].holder != FREE or blocks[block].free_from > limit:
            continue
        if first == NONE or blocks[block].free_from < blocks[first].free_from:
            second = first
            first = block
        elif second == NONE or blocks[block].free_from < blocks[second].free_from:
            second = block
    if second != NONE:
        blocks[second].bytes += blocks[first].bytes
        blocks[first].bytes = ZERO


@part
def _drop_empty_blocks(state: ScheduleState, memory: int) -> None:
    blocks, kept = state.blocks[memory], ZERO
    for block in range(state.memories[memory].blocks):
        if blocks[block].bytes > 0:
            blocks[kept] = blocks[block]
            kept += ONE
    state.memories[memory].blocks = kept


@part
def _append(state: ScheduleState, memory: int, size: int, holder: int, free_from: int) -> None:
    count = state.memories[memory].blocks
    if count == state.blocks.shape[1]:
        state.counts[COUNT_FULL] = ONE
        return
    block = state.blocks[memory, count]
    block.bytes = size
    block.holder = holder
    block.free_from = free_from
    state.memories[memory].blocks = count + ONE


@part
def take_over(state: ScheduleState, old: int, new: int) -> None:
    """End a residency, and give its bytes to one that is written over it."""
    _end(state, old)
    memory, end = state.residencies[old].memory, state.residencies[old].end
    block = _block_of(state, old)
    if block == NONE:
        return
    size = padded_size(state, memory, state.residencies[new].bytes)
    blocks = state.blocks[memory]
    rest = blocks[block].bytes - size
    blocks[block].holder = new
    blocks[block].bytes = size
    if rest > 0:
        _append(state, memory, rest, FREE, end)


@part
def close(state: ScheduleState, held: int) -> None:
    """End a residency after its last use and free its bytes from then on."""
    _end(state, held)
    block = _block_of(state, held)
    if block != NONE:
        freed = state.blocks[state.residencies[held].memory, block]
        freed.holder = FREE
        freed.free_from = state.residencies[held].end


@part
def _end(state: ScheduleState, held: int) -> None:
    residency = state.residencies[held]
    residency.end = max(residency.end, residency.valid, residency.start + ONE)
    residency.alive = ZERO
    if residency.slice >= 0:
        buffer = state.buffers[state.slices[residency.slice].buffer]
        if buffer.home == held:
            buffer.home = NONE


@part
def _block_of(state: ScheduleState, held: int) -> int:
    """Return the block of a residency; -1 in a DRAM, and where the tables were full."""
    memory = state.residencies[held].memory
    for block in range(state.memories[memory].blocks):
        if state.blocks[memory, block].holder == held:
            return block
    return NONE


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
    """Return a new residency without cycles and bytes; the last one when the table is full."""
    new = state.counts[COUNT_RESIDENCIES]
    if new == state.residencies.size:
        state.counts[COUNT_FULL] = ONE
        new -= ONE
    state.counts[COUNT_RESIDENCIES] = new + ONE
    residency = state.residencies[new]
    residency.slice = slice_
    residency.memory = memory
    residency.bytes = size
    residency.alive = ONE
    residency.filled_by_task = NONE
    residency.filled_by_transfer = NONE
    residency.overwrites = NONE
    residency.pinned = NONE
    residency.following = NONE
    # What is behind the last row does not count, and a list must not lead back to itself.
    if slice_ >= 0 and not state.counts[COUNT_FULL]:
        residency.following = state.slices[slice_].first
        state.slices[slice_].first = new
    return new
