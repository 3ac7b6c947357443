"""Bytes of a memory without addresses: what is free is taken in pieces, wherever it lies. Compiled.

The row of blocks is kept, for it says which bytes are free from when; but blocks have no places of
their own. Those that are taken for a residency become one block, behind all others.
"""

from spmilp.compiled import part
from spmilp.solvers.kernels.address_space import FREE, RESERVED
from spmilp.solvers.kernels.records import NEVER, NONE, ONE, ZERO
from spmilp.solvers.kernels.schedule_state import ScheduleState


@part
def free_by(state: ScheduleState, memory: int, size: int) -> int:
    """Return the first cycle by which so many bytes are free together; ``NEVER`` for none."""
    blocks, count = state.space.blocks[memory], state.space.length[memory]
    last = -ONE
    total = ZERO
    while total < size:
        following, more = NEVER, ZERO
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


@part
def gathered(state: ScheduleState, memory: int, size: int, limit: int) -> int:
    """Make one block of so many bytes that are free by ``limit``, those that are free last.

    Returns
    -------
    int
        Its address; -1 if there are not so many, or the row is full.
    """
    blocks, count = state.space.blocks[memory], state.space.length[memory]
    if count + 3 > state.space.blocks.shape[1]:
        return NONE
    # All free since `since` or later are taken, and of those free just then as much as is missing.
    since, total, of_first = limit + ONE, ZERO, ZERO
    while total < size:
        before, more = -ONE, ZERO
        for block in range(count):
            if blocks[block].holder != FREE:
                continue
            free_from = blocks[block].free_from
            if free_from < since and free_from >= before:
                length = blocks[block + 1].start - blocks[block].start
                more = length if free_from > before else more + length
                before = free_from
        if more == 0:
            return NONE
        since, total, of_first = before, total + more, more
    missing = size - (total - of_first)
    address, position, latest = blocks[0].start, ZERO, ZERO
    end = blocks[count].start
    for block in range(count):
        holder, free_from = blocks[block].holder, blocks[block].free_from
        length = blocks[block + 1].start - blocks[block].start
        if holder == FREE and since <= free_from <= limit:
            taken = length
            if free_from == since:
                taken = min(length, missing)
                missing -= taken
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
        position += ONE
    blocks[position].start = address
    blocks[position].holder = FREE
    blocks[position].free_from = latest
    blocks[position + 1].start = end
    blocks[position + 1].holder = RESERVED
    state.space.length[memory] = position + ONE
    return address
