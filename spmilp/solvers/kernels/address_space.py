"""Residencies at their addresses in each memory, and the cycles from which bytes are free.

A memory is a row of blocks from address 0 to its end. A block holds one residency, or is free from
a cycle on, or is reserved. Decisions are made in order and never undone, so the cycle at which a
block's last holder leaves is all that has to be remembered of the past.
"""

from typing import NamedTuple

import numpy as np

from spmilp.compiled import part
from spmilp.machine.machine import Memory
from spmilp.solvers.kernels.records import ONE, Ints, Shares, Table, tables

FREE = -1
RESERVED = -2


class AddressSpace(NamedTuple):
    """The blocks of all memories, one row each, in order of address.

    ``blocks[memory, i]`` reaches from ``start`` to the next block's; ``length`` is the number of
    blocks of each memory, and the block after the last one begins at the memory's end. ``holder``
    is a residency, ``FREE`` or ``RESERVED``; ``free_from`` matters for free blocks only.
    """

    blocks: Table
    length: Ints


def new_address_space(
    memories: tuple[Memory, ...], blocks: int, shares: Shares | None = None
) -> AddressSpace:
    """Return empty memories, each with space for so many blocks.

    A memory without limit has none: its addresses are given out in the end.

    Parameters
    ----------
    shares
        Where addresses are open: of each memory the part of its usable bytes that may be filled.
        They are one block then, whatever is reserved between.
    """
    space = AddressSpace(
        blocks=tables((len(memories), blocks), "start", "holder", "free_from"),
        length=np.zeros(len(memories), np.int64),
    )
    for memory in memories:
        if memory.usable is None or memory.size is None:
            continue
        if shares is None:
            _fill_row(space, memory, memory.size)
        else:
            row, filled = space.blocks[memory.index], int(memory.usable * shares[memory.index])
            row[0] = (0, FREE, 0)
            row[1] = (filled // memory.alignment * memory.alignment, RESERVED, 0)
            space.length[memory.index] = 1
    return space


def _fill_row(space: AddressSpace, memory: Memory, size: int) -> None:
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


@part
def block_at(space: AddressSpace, memory: int, address: int) -> int:
    """Return the position of the block that holds ``address``."""
    blocks = space.blocks[memory]
    low, high = 0, space.length[memory] - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if blocks[middle].start <= address:
            low = middle
        else:
            high = middle - 1
    return low


@part
def release(space: AddressSpace, memory: int, address: int, cycle: int, settled: int) -> None:
    """Free the block at ``address`` from ``cycle`` on.

    Neighbours that are free since ``settled`` or earlier become one block: nothing will be placed
    before that cycle any more, so which of them was free first has no meaning.
    """
    block = block_at(space, memory, address)
    freed = space.blocks[memory, block]
    freed.holder = FREE
    freed.free_from = cycle
    if block + 1 < space.length[memory]:
        _join(space, memory, block, settled)
    if block > 0:
        _join(space, memory, block - 1, settled)


@part
def _join(space: AddressSpace, memory: int, block: int, settled: int) -> None:
    """Make one block of ``block`` and its successor if both are free and equally good."""
    one, other = space.blocks[memory, block], space.blocks[memory, block + 1]
    if one.holder != FREE or other.holder != FREE:
        return
    last = max(one.free_from, other.free_from)
    if one.free_from != other.free_from and last > settled:
        return
    one.free_from = last
    _close_gap(space, memory, block + 1, ONE)


@part
def _close_gap(space: AddressSpace, memory: int, block: int, blocks: int) -> None:
    """Remove ``blocks`` blocks from position ``block`` on."""
    row = space.blocks[memory]
    for position in range(block, space.length[memory] - blocks + 1):
        row[position] = row[position + blocks]
    space.length[memory] -= blocks


@part
def claim(space: AddressSpace, memory: int, address: int, size: int, holder: int) -> bool:
    """Give ``[address, address + size)``, free now, to ``holder``; False when the row is full."""
    if space.length[memory] + 3 > space.blocks.shape[1]:
        return False
    first = _cut(space, memory, address)
    last = _cut(space, memory, address + size)
    if last - first > 1:
        _close_gap(space, memory, first + 1, last - first - 1)
    space.blocks[memory, first].holder = holder
    return True


@part
def _cut(space: AddressSpace, memory: int, address: int) -> int:
    """Make ``address`` the start of a block; return its position (``length`` for the end)."""
    row = space.blocks[memory]
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
