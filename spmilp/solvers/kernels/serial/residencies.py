"""Residencies from their first byte to their last use: who needs them, and when next. Compiled."""

from spmilp.compiled import part
from spmilp.solvers.kernels.address_space import FREE, block_at, claim, release
from spmilp.solvers.kernels.records import NEVER, NONE, ZERO
from spmilp.solvers.kernels.schedule_state import COUNT_RESIDENCIES, Board


@part
def next_use(board: Board, held: int) -> int:
    """Return the position of the next task that needs a residency; ``NEVER`` if none does.

    A buffer's home is needed by every reader wherever it runs, and so is a copy of what only DRAM
    has besides: others take it from here rather than load it again. Any other copy is needed by the
    readers of its own memory (or of those that are filled through it).
    """
    residency = board.residencies[held]
    what = residency.slice
    buffer = board.slices[what].buffer
    whole = board.buffers[buffer]
    at_home = whole.home == held
    if at_home and whole.ends == residency.memory:
        return ZERO
    only_dram_besides = whole.home == NONE
    memory = NONE if at_home or only_dram_besides else residency.memory
    if what != buffer:
        return _next_reader(board, what, memory)
    soonest = NEVER
    for entry in range(whole.parts_from, whole.parts_to):
        soonest = min(soonest, _next_reader(board, board.lists[entry], memory))
    return soonest


@part
def _next_reader(board: Board, what: int, memory: int) -> int:
    """Return the position of a slice's next reader, on ``memory`` only unless that is -1."""
    read = board.slices[what]
    last, entry = read.readers_to, read.next_reader
    while entry < last and board.tasks[board.readers[entry]].placed:
        entry += 1
    read.next_reader = entry
    while entry < last:
        reader = board.tasks[board.readers[entry]]
        entry += 1
        if reader.placed:
            continue
        if memory == NONE or reader.core == NONE:
            return reader.position
        reads_in = board.cores[reader.core].memory
        if reads_in == memory or board.memories[reads_in].parent == memory:
            return reader.position
    return NEVER


@part
def residency_in(board: Board, what: int, memory: int) -> int:
    """Return the residency in ``memory`` that can serve a slice: its own or its parent's; or -1."""
    own = _first_alive_in(board, what, memory)
    buffer = board.slices[what].buffer
    if own != NONE or what == buffer:
        return own
    return _first_alive_in(board, buffer, memory)


@part
def _first_alive_in(board: Board, what: int, memory: int) -> int:
    """Walk the residencies of a slice, dropping the ended ones from the list."""
    before = NONE
    one = board.slices[what].first
    while one != NONE:
        residency = board.residencies[one]
        following = residency.following
        if not residency.alive:
            if before == NONE:
                board.slices[what].first = following
            else:
                board.residencies[before].following = following
        else:
            if residency.memory == memory:
                return one
            before = one
        one = following
    return NONE


@part
def is_last_copy(board: Board, held: int) -> bool:
    """Say whether the buffer that somebody still needs would be lost with this residency."""
    buffer = board.slices[board.residencies[held].slice].buffer
    entry = board.buffers[buffer]
    return entry.home == held and entry.in_dram == NONE


@part
def new_residency(board: Board, what: int, memory: int, size: int) -> int:
    """Return a new residency without cycles and address; -1 when the table is full."""
    new = board.counts[COUNT_RESIDENCIES]
    if new == board.residencies.size:
        return NONE
    board.counts[COUNT_RESIDENCIES] = new + 1
    residency = board.residencies[new]
    residency.slice = what
    residency.memory = memory
    residency.bytes = size
    residency.alive = 1
    residency.filled_by_task = NONE
    residency.filled_by_transfer = NONE
    residency.pinned = NONE
    residency.following = NONE
    if what >= 0:
        residency.following = board.slices[what].first
        board.slices[what].first = new
    return new


@part
def settle_at(board: Board, held: int, address: int) -> bool:
    """Give a new residency the free bytes at ``address``; False when the row of blocks is full."""
    residency = board.residencies[held]
    residency.offset = address
    size = padded_size(board, residency.memory, address, residency.bytes)
    return claim(board.space, residency.memory, address, size, held)


@part
def padded_size(board: Board, memory: int, address: int, size: int) -> int:
    """Return the bytes to take for ``size``: up to the next aligned address if they are free."""
    alignment = board.memories[memory].alignment
    end = address + (size + alignment - 1) // alignment * alignment
    blocks = board.space.blocks[memory]
    block = block_at(board.space, memory, address)
    while block < board.space.length[memory] and blocks[block].start < end:
        if blocks[block].holder != FREE:
            return blocks[block].start - address
        block += 1
    return min(end, blocks[block].start) - address


@part
def close(board: Board, held: int) -> None:
    """End a residency after its last use and free its bytes from then on."""
    residency = board.residencies[held]
    residency.end = max(residency.end, residency.valid, residency.start + 1)
    residency.alive = 0
    if residency.slice >= 0:
        buffer = board.buffers[board.slices[residency.slice].buffer]
        if buffer.home == held:
            buffer.home = NONE
    memory = board.memories[residency.memory]
    if not memory.is_dram:
        release(board.space, residency.memory, residency.offset, residency.end, memory.settled)


@part
def close_if_idle(board: Board, held: int) -> None:
    """End a residency that no task needs any more."""
    if held != NONE and board.residencies[held].alive and next_use(board, held) == NEVER:
        close(board, held)


@part
def close_idle_copies(board: Board, what: int) -> None:
    """End every residency of a slice, outside DRAM, that no task needs any more."""
    one = board.slices[what].first
    while one != NONE:
        residency = board.residencies[one]
        if not board.memories[residency.memory].is_dram:
            close_if_idle(board, one)
        one = residency.following
