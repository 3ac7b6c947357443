"""Who lies where in each memory, and from which cycle on a byte is free for good.

A memory is a row of blocks from address 0 to its end. A block holds one residency, or is free from
a cycle on, or is reserved. Decisions are made in order and never undone, so the cycle at which a
block's last holder leaves is all that has to be remembered of the past.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from spmilp.machine.machine import Memory
from spmilp.solvers.list_scheduler.records import Ints, Table, record

BLOCK = record("start", "holder", "free_from")

FREE = -1
RESERVED = -2


class Space(NamedTuple):
    """The blocks of all memories, one row each, in order of address.

    ``blocks[memory, i]`` reaches from ``start`` to the next block's; ``length`` is the number of
    blocks of each memory, and the block after the last one begins at the memory's end. ``holder``
    is a residency, ``FREE`` or ``RESERVED``; ``free_from`` matters for free blocks only.
    """

    blocks: Table
    length: Ints


def new_space(memories: tuple[Memory, ...], room: int) -> Space:
    """Return the blocks of empty memories, each with room for ``room`` blocks.

    A memory without limit has no blocks: its addresses are given out in the end.
    """
    space = Space(
        blocks=np.zeros((len(memories), room), BLOCK),
        length=np.zeros(len(memories), np.int64),
    )
    for memory in memories:
        if memory.size is not None:
            _fill_row(space, memory, memory.size)
    return space


def _fill_row(space: Space, memory: Memory, size: int) -> None:
    edges = [(taken.start, RESERVED) for taken in memory.reserved]
    edges += [(taken.end, FREE) for taken in memory.reserved if taken.end < size]
    if not memory.reserved or memory.reserved[0].start > 0:
        edges.append((0, FREE))
    blocks = dict(sorted(edges, key=lambda edge: (edge[0], -edge[1])))
    row = space.blocks[memory.index]
    for position, (start, holder) in enumerate(sorted(blocks.items())):
        row[position] = (start, holder, 0)
    row[len(blocks)] = (size, RESERVED, 0)
    space.length[memory.index] = len(blocks)


@njit(cache=True)
def block_at(space: Space, memory: int, address: int) -> int:
    """Return the position of the block that holds ``address``."""
    low, high = 0, space.length[memory] - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if space.blocks[memory, middle].start <= address:
            low = middle
        else:
            high = middle - 1
    return low


@njit(cache=True)
def release(space: Space, memory: int, address: int, cycle: int, settled: int) -> None:
    """Free the block at ``address`` from ``cycle`` on.

    Neighbours that are free since ``settled`` or earlier become one block: nothing will be placed
    before that cycle any more, so which of them was free first has no meaning.
    """
    block = block_at(space, memory, address)
    space.blocks[memory, block].holder = FREE
    space.blocks[memory, block].free_from = cycle
    if block + 1 < space.length[memory]:
        _join(space, memory, block, settled)
    if block > 0:
        _join(space, memory, block - 1, settled)


@njit(cache=True)
def _join(space: Space, memory: int, block: int, settled: int) -> None:
    """Make one block of ``block`` and its successor if both are free and equally good."""
    if space.blocks[memory, block].holder != FREE or space.blocks[memory, block + 1].holder != FREE:
        return
    one, other = space.blocks[memory, block].free_from, space.blocks[memory, block + 1].free_from
    if one != other and max(one, other) > settled:
        return
    space.blocks[memory, block].free_from = max(one, other)
    _close_gap(space, memory, block + 1, 1)


@njit(cache=True)
def _close_gap(space: Space, memory: int, block: int, blocks: int) -> None:
    """Remove ``blocks`` blocks from position ``block`` on."""
    for position in range(block, space.length[memory] - blocks + 1):
        space.blocks[memory, position].start = space.blocks[memory, position + blocks].start
        space.blocks[memory, position].holder = space.blocks[memory, position + blocks].holder
        space.blocks[memory, position].free_from = space.blocks[memory, position + blocks].free_from
    space.length[memory] -= blocks


@njit(cache=True)
def claim(space: Space, memory: int, address: int, size: int, holder: int) -> bool:
    """Give ``[address, address + size)``, free now, to ``holder``; False when the row is full."""
    if space.length[memory] + 3 > space.blocks.shape[1]:
        return False
    first = _cut(space, memory, address)
    last = _cut(space, memory, address + size)
    if last - first > 1:
        _close_gap(space, memory, first + 1, last - first - 1)
    space.blocks[memory, first].holder = holder
    return True


@njit(cache=True)
def _cut(space: Space, memory: int, address: int) -> int:
    """Make ``address`` the start of a block; return its position (``length`` for the end)."""
    count = space.length[memory]
    if address == space.blocks[memory, count].start:
        return count
    block = block_at(space, memory, address)
    if space.blocks[memory, block].start == address:
        return block
    for position in range(count + 1, block + 1, -1):
        space.blocks[memory, position].start = space.blocks[memory, position - 1].start
        space.blocks[memory, position].holder = space.blocks[memory, position - 1].holder
        space.blocks[memory, position].free_from = space.blocks[memory, position - 1].free_from
    space.blocks[memory, block + 1].start = address
    space.blocks[memory, block + 1].holder = space.blocks[memory, block].holder
    space.blocks[memory, block + 1].free_from = space.blocks[memory, block].free_from
    space.length[memory] += 1
    return block + 1
