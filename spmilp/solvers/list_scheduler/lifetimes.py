"""Residencies from their first byte to their last use: who needs them, and when next. Compiled."""

from numba import njit

from spmilp.solvers.list_scheduler.records import NONE
from spmilp.solvers.list_scheduler.space import FREE, block_at, claim, release
from spmilp.solvers.list_scheduler.state import COUNT_RESIDENCIES, Board, State

NEVER = 2**62


@njit(cache=True)
def next_use(board: Board, held: int) -> int:
    """Return the position of the next task that needs a residency; ``NEVER`` if none does.

    A buffer's home is needed by every reader wherever it runs, a copy by the readers of its own
    memory (or of those that are filled through it).
    """
    residency = board.state.residencies[held]
    what = residency.slice
    buffer = board.problem.slices[what].buffer
    at_home = board.state.buffers[buffer].home == held
    if at_home and board.problem.buffers[buffer].ends == residency.memory:
        return 0
    memory = NONE if at_home else residency.memory
    if what != buffer:
        return _next_reader(board, what, memory)
    soonest = NEVER
    for entry in range(board.problem.parts_from[buffer], board.problem.parts_from[buffer + 1]):
        soonest = min(soonest, _next_reader(board, board.problem.parts[entry], memory))
    return soonest


@njit(cache=True)
def _next_reader(board: Board, what: int, memory: int) -> int:
    """Return the position of a slice's next reader, on ``memory`` only unless that is -1."""
    state = board.state
    last = board.problem.readers_from[what + 1]
    entry = state.slices[what].next_reader
    while entry < last and state.tasks[state.readers[entry]].placed:
        entry += 1
    state.slices[what].next_reader = entry
    while entry < last:
        reader = state.tasks[state.readers[entry]]
        entry += 1
        if reader.placed:
            continue
        if memory == NONE or reader.core == NONE:
            return reader.position
        reads_in = board.machine.core_memory[reader.core]
        if reads_in == memory or board.machine.memories[reads_in].parent == memory:
            return reader.position
    return NEVER


@njit(cache=True)
def residency_in(board: Board, what: int, memory: int) -> int:
    """Return the residency in ``memory`` that can serve a slice: its own or its parent's; or -1."""
    own = _first_alive_in(board.state, what, memory)
    buffer = board.problem.slices[what].buffer
    if own != NONE or what == buffer:
        return own
    return _first_alive_in(board.state, buffer, memory)


@njit(cache=True)
def _first_alive_in(state: State, what: int, memory: int) -> int:
    """Walk the residencies of a slice, dropping the ended ones from the list."""
    before = NONE
    one = state.slices[what].first
    while one != NONE:
        residency = state.residencies[one]
        following = residency.following
        if not residency.alive:
            if before == NONE:
                state.slices[what].first = following
            else:
                state.residencies[before].following = following
        else:
            if residency.memory == memory:
                return one
            before = one
        one = following
    return NONE


@njit(cache=True)
def is_last_copy(board: Board, held: int) -> bool:
    """Say whether the buffer that somebody still needs would be lost with this residency."""
    buffer = board.problem.slices[board.state.residencies[held].slice].buffer
    entry = board.state.buffers[buffer]
    return entry.home == held and entry.in_dram == NONE


@njit(cache=True)
def new_residency(board: Board, what: int, memory: int, size: int) -> int:
    """Return a new residency without cycles and address; -1 when the table is full."""
    state = board.state
    new = state.counts[COUNT_RESIDENCIES]
    if new == state.residencies.size:
        return NONE
    state.counts[COUNT_RESIDENCIES] = new + 1
    residency = state.residencies[new]
    residency.slice = what
    residency.memory = memory
    residency.bytes = size
    residency.alive = 1
    if what != NONE:
        residency.following = state.slices[what].first
        state.slices[what].first = new
    return new


@njit(cache=True)
def settle_at(board: Board, held: int, address: int) -> bool:
    """Give a new residency the free bytes at ``address``; False when the row of blocks is full."""
    residency = board.state.residencies[held]
    residency.offset = address
    size = padded_size(board, residency.memory, address, residency.bytes)
    return bool(claim(board.space, residency.memory, address, size, held))


@njit(cache=True)
def padded_size(board: Board, memory: int, address: int, size: int) -> int:
    """Return the bytes to take for ``size``: up to the next aligned address if they are free."""
    alignment = board.machine.memories[memory].alignment
    end = address + (size + alignment - 1) // alignment * alignment
    block = block_at(board.space, memory, address)
    while block < board.space.length[memory] and board.space.blocks[memory, block].start < end:
        if board.space.blocks[memory, block].holder != FREE:
            return board.space.blocks[memory, block].start - address
        block += 1
    return min(end, board.space.blocks[memory, block].start) - address


@njit(cache=True)
def close(board: Board, held: int) -> None:
    """End a residency after its last use and free its bytes from then on."""
    residency = board.state.residencies[held]
    residency.end = max(residency.end, residency.valid, residency.start + 1)
    residency.alive = 0
    if residency.slice != NONE:
        buffer = board.problem.slices[residency.slice].buffer
        if board.state.buffers[buffer].home == held:
            board.state.buffers[buffer].home = NONE
    memory = residency.memory
    if not board.machine.memories[memory].is_dram:
        settled = board.state.memories[memory].settled
        release(board.space, memory, residency.offset, residency.end, settled)


@njit(cache=True)
def close_if_idle(board: Board, held: int) -> None:
    """End a residency that no task needs any more."""
    if held != NONE and board.state.residencies[held].alive and next_use(board, held) == NEVER:
        close(board, held)


@njit(cache=True)
def close_idle_copies(board: Board, what: int) -> None:
    """End every residency of a slice, outside DRAM, that no task needs any more."""
    one = board.state.slices[what].first
    while one != NONE:
        residency = board.state.residencies[one]
        if not board.machine.memories[residency.memory].is_dram:
            close_if_idle(board, one)
        one = residency.following
