"""What memories hold: residencies at their addresses, and the cycles from which bytes are free.

A memory is a row of blocks from address 0 to its end. A block holds one residency, or is free from
a cycle on, or is reserved. Decisions are made in order and never undone, so the cycle at which a
block's last holder leaves is all that has to be remembered of the past. Where addresses are open,
the row is kept, for it says which bytes are free from when; but blocks have no places of their own:
those that are taken for a residency become one block, behind all others.
"""

import cython
import numpy as np

from spmilp.machine.machine import Machine, Memory
from spmilp.solvers.schedule.kernels.records import Table, row_of, table
from spmilp.solvers.schedule.kernels.schedule_state import AddressSpace, ScheduleState
from spmilp.solvers.schedule.kernels.tables import alignment_of
from spmilp.units import align_up

if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from spmilp.compiled import whole as space_in
    from spmilp.solvers.schedule.kernels.records import NEVER, NONE
    from spmilp.solvers.schedule.kernels.schedule_state import (
        BLOCKS_FULL,
        COUNT_RESIDENCIES,
        DONE,
        FREE,
        RESERVED,
        RESIDENCIES_FULL,
    )

    block_row_at = buffer_at = residency_at = slice_at = task_at = row_of

    def blocks_of(space: AddressSpace, memory: int) -> Table:
        """Return the blocks of one memory."""
        return space.blocks[memory * space.most : (memory + 1) * space.most]


def new_address_space(
    machine: Machine, blocks: int, *, is_open: bool, share: float = 1.0
) -> AddressSpace:
    """Return empty memories, each with space for so many blocks.

    A memory without limit has none: its addresses are given out in the end. If it ``is_open``,
    a ``share`` of the usable bytes is one block, whatever is reserved between. It ends with a whole
    unit of alignment: what lies last needs no bytes behind it.
    """
    space = AddressSpace(
        blocks=table(len(machine.memories) * blocks, "start", "holder", "free_from"),
        length=np.zeros(len(machine.memories), np.int64),
        most=blocks,
    )
    rows = space.blocks.reshape(len(machine.memories), blocks)
    for memory in machine.memories:
        if memory.usable is None or memory.size is None:
            continue
        row = rows[memory.index]
        if is_open:
            row[0] = (0, FREE, 0)
            end = align_up(int(share * memory.usable), alignment_of(machine, memory.index))
            row[1] = (end, RESERVED, 0)
            space.length[memory.index] = 1
        else:
            space.length[memory.index] = _fill_row(row, memory, memory.size)
    return space


def _fill_row(row: Table, memory: Memory, size: int) -> int:
    """Write down the blocks of an empty memory; return how many there are."""
    edges = [(taken.start, RESERVED) for taken in memory.reserved]
    edges += [(taken.end, FREE) for taken in memory.reserved if taken.end < size]
    if not memory.reserved or memory.reserved[0].start > 0:
        edges.append((0, FREE))
    blocks = dict(sorted(edges, key=lambda edge: (edge[0], -edge[1])))
    for position, (start, holder) in enumerate(sorted(blocks.items())):
        row[position] = (start, holder, 0)
    row[len(blocks)] = (size, RESERVED, 0)
    return len(blocks)


def block_at(space: AddressSpace, memory: int, address: int) -> int:
    """Return the position of the block that holds ``address``."""
    blocks = blocks_of(space, memory)
    low, high = 0, space.length[memory] - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if blocks[middle].start <= address:
            low = middle
        else:
            high = middle - 1
    return low


def release(space: AddressSpace, memory: int, address: int, cycle: int, settled: int) -> None:
    """Free the block at ``address`` from ``cycle`` on.

    Neighbours that are free since ``settled`` or earlier become one block: nothing will be placed
    before that cycle any more, so which of them was free first has no meaning.
    """
    block = block_at(space, memory, address)
    freed = block_row_at(blocks_of(space, memory), block)
    freed.holder = FREE
    freed.free_from = cycle
    if block + 1 < space.length[memory]:
        _join(space, memory, block, settled)
    if block > 0:
        _join(space, memory, block - 1, settled)


def _join(space: AddressSpace, memory: int, block: int, settled: int) -> None:
    """Make one block of ``block`` and its successor if both are free and equally good."""
    blocks = blocks_of(space, memory)
    one, other = block_row_at(blocks, block), block_row_at(blocks, block + 1)
    if one.holder != FREE or other.holder != FREE:
        return
    last = max(one.free_from, other.free_from)
    if one.free_from != other.free_from and last > settled:
        return
    one.free_from = last
    _close_gap(space, memory, block + 1, 1)


def _close_gap(space: AddressSpace, memory: int, block: int, blocks: int) -> None:
    """Remove ``blocks`` blocks from position ``block`` on."""
    row = blocks_of(space, memory)
    for position in range(block, space.length[memory] - blocks + 1):
        row[position] = row[position + blocks]
    space.length[memory] -= blocks


def claim(space: AddressSpace, memory: int, address: int, size: int, holder: int) -> bool:
    """Give ``[address, address + size)``, free now, to ``holder``; False when the row is full."""
    if space.length[memory] + 3 > space.most:
        return False
    first = _cut(space, memory, address)
    last = _cut(space, memory, address + size)
    if last - first > 1:
        _close_gap(space, memory, first + 1, last - first - 1)
    block_row_at(blocks_of(space, memory), first).holder = holder
    return True


def _cut(space: AddressSpace, memory: int, address: int) -> int:
    """Make ``address`` the start of a block; return its position (``length`` for the end)."""
    row = blocks_of(space, memory)
    count = space.length[memory]
    if address == row[count].start:
        return count
    block = block_at(space, memory, address)
    if row[block].start == address:
        return block
    for position in range(count + 1, block, -1):
        row[position] = row[position - 1]
    row[block + 1].start = address
    space.length[memory] += 1
    return block + 1


def free_by(state: ScheduleState, memory: int, size: int) -> int:
    """Return the first cycle by which so many bytes are free together; ``NEVER`` for none."""
    blocks, count = blocks_of(space_in(state.space), memory), state.space.length[memory]
    last, total = -1, 0
    while total < size:
        following, more = NEVER, 0
        for block in range(count):
            if blocks[block].holder != FREE:
                continue
            free_from = blocks[block].free_from
            if free_from > last and free_from <= following:
                length = blocks[block + 1].start - blocks[block].start
                more = length if free_from < following else more + length
                following = free_from
        if following == NEVER:
            return NEVER
        total += more
        last = following
    return last


def gathered(state: ScheduleState, memory: int, size: int, limit: int) -> int:
    """Make one block of so many bytes that are free by ``limit``, those that are free last.

    Returns its address; -1 if there are not so many, or the row is full.
    """
    space = space_in(state.space)
    if space.length[memory] + 3 > space.most:
        return NONE
    since, of_first = _free_last(space, memory, size, limit)
    if since == NONE:
        return NONE
    return _put_together(state, memory, since, of_first, limit)


def _free_last(space: AddressSpace, memory: int, size: int, limit: int) -> tuple[int, int]:
    """Return the last cycle since which so many bytes become free by ``limit``; -1 for none.

    And how many of those that become free in that very cycle are needed.
    """
    blocks = blocks_of(space, memory)
    since, total, later = limit + 1, 0, 0
    while total < size:
        before, more = -1, 0
        for block in range(space.length[memory]):
            free_from = blocks[block].free_from
            if blocks[block].holder != FREE or free_from >= since or free_from < before:
                continue
            length = blocks[block + 1].start - blocks[block].start
            more = length if free_from > before else more + length
            before = free_from
        if more == 0:
            return NONE, 0
        since, later, total = before, total, total + more
    return since, size - later


def _put_together(state: ScheduleState, memory: int, since: int, of_first: int, limit: int) -> int:
    """Move what is free from ``since`` to ``limit`` behind all other blocks, as one; say where to.

    Of what is free in the first of these cycles only so many bytes.
    """
    blocks, count = blocks_of(space_in(state.space), memory), state.space.length[memory]
    address, position, latest = blocks[0].start, 0, 0
    end = blocks[count].start
    for block in range(count):
        holder, free_from = blocks[block].holder, blocks[block].free_from
        length = blocks[block + 1].start - blocks[block].start
        if holder == FREE and since <= free_from <= limit:
            taken = length
            if free_from == since:
                taken = min(length, of_first)
                of_first -= taken
            if taken > 0:
                latest = max(latest, free_from)
            length -= taken
        if length == 0:
            continue
        blocks[position].start = address
        blocks[position].holder = holder
        blocks[position].free_from = free_from
        if holder >= 0:
            state.residencies[holder].offset = address
        address += length
        position += 1
    blocks[position].start = address
    blocks[position].holder = FREE
    blocks[position].free_from = latest
    blocks[position + 1].start = end
    blocks[position + 1].holder = RESERVED
    state.space.length[memory] = position + 1
    return address


def next_use(state: ScheduleState, held: int) -> int:
    """Return the position of the next task that needs a residency; ``NEVER`` if none does.

    A buffer's home is needed by every reader wherever it runs, and so is a copy of what only DRAM
    has besides: others take it from here rather than load it again. Any other copy is needed by the
    readers of its own memory (or of those that are filled through it).
    """
    residency = residency_at(state.residencies, held)
    slice_ = residency.slice
    if slice_ == NONE:
        return NEVER
    buffer = state.slices[slice_].buffer
    entire = buffer_at(state.buffers, buffer)
    at_home = entire.home == held
    if at_home and entire.ends == residency.memory:
        return 0
    only_dram_besides = entire.home == NONE
    memory = NONE if at_home or only_dram_besides else residency.memory
    if slice_ != buffer:
        return _next_reader(state, slice_, memory)
    soonest = NEVER
    for entry in range(entire.parts_from, entire.parts_to):
        soonest = min(soonest, _next_reader(state, state.lists[entry], memory))
    return soonest


def _next_reader(state: ScheduleState, slice_: int, memory: int) -> int:
    """Return the position of a slice's next reader, on ``memory`` only unless that is -1."""
    read = slice_at(state.slices, slice_)
    last, entry = read.readers_to, read.next_reader
    while entry < last and state.tasks[state.readers[entry]].placed:
        entry += 1
    read.next_reader = entry
    while entry < last:
        reader = task_at(state.tasks, state.readers[entry])
        entry += 1
        if reader.placed:
            continue
        if memory == NONE or reader.core == NONE:
            return reader.position
        reads_in = state.cores[reader.core].memory
        if reads_in == memory or state.memories[reads_in].parent == memory:
            return reader.position
    return NEVER


def residency_in(state: ScheduleState, slice_: int, memory: int) -> int:
    """Return the residency in ``memory`` that can serve a slice: its own or its parent's; or -1."""
    own = _first_alive_in(state, slice_, memory)
    buffer = state.slices[slice_].buffer
    if own != NONE or slice_ == buffer:
        return own
    return _first_alive_in(state, buffer, memory)


def _first_alive_in(state: ScheduleState, slice_: int, memory: int) -> int:
    """Walk the residencies of a slice, dropping the ended ones from the list."""
    before = NONE
    one = state.slices[slice_].first
    while one != NONE:
        residency = residency_at(state.residencies, one)
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


def is_last_copy(state: ScheduleState, held: int) -> bool:
    """Say whether a buffer that is still needed would be lost with this residency."""
    slice_ = state.residencies[held].slice
    if slice_ == NONE:
        return False
    buffer = buffer_at(state.buffers, state.slices[slice_].buffer)
    return buffer.home == held and buffer.in_dram == NONE


def new_residency(state: ScheduleState, slice_: int, memory: int, size: int) -> int:
    """Return a new residency without cycles and address; -1 when the table is full."""
    new = state.counts[COUNT_RESIDENCIES]
    if new == state.rows.residencies:
        return NONE
    state.counts[COUNT_RESIDENCIES] = new + 1
    residency = residency_at(state.residencies, new)
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


def free_range(state: ScheduleState, memory: int, size: int, by: int) -> int:
    """Return the address of the smallest gap that is free by a cycle; -1 if there is none."""
    alignment = state.memories[memory].alignment
    if state.is_open:
        return gathered(state, memory, (size + alignment - 1) // alignment * alignment, by)
    blocks, count = blocks_of(space_in(state.space), memory), state.space.length[memory]
    best, best_left = NONE, NEVER
    block = 0
    while block < count:
        if blocks[block].holder != FREE or blocks[block].free_from > by:
            block += 1
            continue
        address = (blocks[block].start + alignment - 1) // alignment * alignment
        while block < count and blocks[block].holder == FREE and blocks[block].free_from <= by:
            block += 1
        left = blocks[block].start - address - size
        if 0 <= left < best_left:
            best, best_left = address, left
    return best


def take(
    state: ScheduleState, slice_: int, memory: int, size: int, address: int, task: int
) -> tuple[int, int, int]:
    """Give free bytes to a new residency; return it, from when they are free, and why it stopped.

    It is pinned by the ``task``, or by none if that is -1.
    """
    new = new_residency(state, slice_, memory, size)
    if new == NONE:
        return NONE, 0, RESIDENCIES_FULL
    end = address + padded_size(state, memory, address, size)
    free = 0
    blocks = blocks_of(space_in(state.space), memory)
    block = block_at(space_in(state.space), memory, address)
    while blocks[block].start < end:
        free = max(free, blocks[block].free_from)
        block += 1
    if not settle_at(state, new, address):
        return NONE, 0, BLOCKS_FULL
    state.residencies[new].start = free
    state.residencies[new].pinned = task
    return new, free, DONE


def is_counted(state: ScheduleState, slice_: int, memory: int) -> bool:
    """Say whether a slice takes bytes of a memory; in DRAM only besides tensors, with a limit."""
    if not state.memories[memory].is_dram:
        return True
    buffer = buffer_at(state.buffers, state.slices[slice_].buffer)
    at_place: bool = buffer.begins == memory or buffer.ends == memory
    return state.space.length[memory] > 0 and not at_place


def settle_at(state: ScheduleState, held: int, address: int) -> bool:
    """Give a new residency the free bytes at ``address``; False when the row of blocks is full."""
    residency = residency_at(state.residencies, held)
    residency.offset = address
    size = padded_size(state, residency.memory, address, residency.bytes)
    return claim(space_in(state.space), residency.memory, address, size, held)


def padded_size(state: ScheduleState, memory: int, address: int, size: int) -> int:
    """Return the bytes to take for ``size``: up to the next aligned address if they are free."""
    alignment = state.memories[memory].alignment
    end = address + (size + alignment - 1) // alignment * alignment
    blocks = blocks_of(space_in(state.space), memory)
    block = block_at(space_in(state.space), memory, address)
    while block < state.space.length[memory] and blocks[block].start < end:
        if blocks[block].holder != FREE:
            return blocks[block].start - address
        block += 1
    return min(end, blocks[block].start) - address


def close(state: ScheduleState, held: int) -> None:
    """End a residency after its last use and free its bytes from then on."""
    residency = residency_at(state.residencies, held)
    residency.end = max(residency.end, residency.valid, residency.start + 1)
    residency.alive = 0
    if residency.slice >= 0:
        buffer = buffer_at(state.buffers, state.slices[residency.slice].buffer)
        if buffer.home == held:
            buffer.home = NONE
        if buffer.in_dram == held:
            buffer.in_dram = NONE
    memory = residency.memory
    if is_counted(state, residency.slice, memory):
        settled = state.memories[memory].settled
        release(space_in(state.space), memory, residency.offset, residency.end, settled)


def close_if_idle(state: ScheduleState, held: int) -> None:
    """End a residency that no task needs any more."""
    if held != NONE and state.residencies[held].alive and next_use(state, held) == NEVER:
        close(state, held)


def close_idle_copies(state: ScheduleState, slice_: int) -> None:
    """End every residency of a slice, outside DRAM, that no task needs any more."""
    one = state.slices[slice_].first
    while one != NONE:
        residency = residency_at(state.residencies, one)
        if not state.memories[residency.memory].is_dram:
            close_if_idle(state, one)
        one = residency.following
