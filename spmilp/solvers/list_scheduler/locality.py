"""Which core already holds most of what a tile touches. Compiled."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NONE, ZERO, Ints
from spmilp.units import CoreIdx


class Holders(NamedTuple):
    """The cores that touched each slice, a linked list for each.

    ``first`` entry of each slice; the ``core`` of an entry and the ``following`` entry; ``used``
    counts the entries.
    """

    first: Ints
    core: Ints
    following: Ints
    used: Ints


class Tiles(NamedTuple):
    """The tiles of one operator, in order.

    Tile ``t`` reads the slices ``reads[reads_from[t]:reads_from[t + 1]]``, and touches those of
    ``touches`` likewise; it runs on its ``default`` core where no other is nearer.
    """

    reads_from: Ints
    reads: Ints
    touches_from: Ints
    touches: Ints
    default: Ints


class Cores(NamedTuple):
    """What is known of each core while the tiles of one operator are given out.

    ``position`` in the order of preference, or -1 if it cannot run the operator; tiles ``taken``;
    bytes of the tile at hand that are ``near``; the last read for which it was ``counted``.
    """

    position: Ints
    taken: Ints
    near: Ints
    counted: Ints


def nobody(slices: int, room: int) -> Holders:
    """Return empty lists with room for so many entries."""
    return Holders(
        first=np.full(slices, NONE, np.int64),
        core=np.zeros(room, np.int64),
        following=np.zeros(room, np.int64),
        used=np.zeros(1, np.int64),
    )


def idle_cores(preferred: Sequence[CoreIdx], cores: int) -> Cores:
    """Return cores without tiles, of which the preferred ones can run the operator."""
    position = np.full(cores, NONE, np.int64)
    position[preferred] = np.arange(len(preferred))
    taken, near, counted = np.zeros((3, cores), np.int64)
    return Cores(position, taken, near, counted + NONE)


@kernel
def nearest_cores(
    tiles: Tiles,
    holders: Holders,
    cores: Cores,
    buffers: Ints,
    sizes: Ints,
    share: int,
    found: Ints,
) -> None:
    """Give each tile the core that touched most of the bytes it reads, one that has room for it.

    Among equals it is the tile's default core, then the one with fewest tiles, then the first.

    Parameters
    ----------
    buffers, sizes
        Of each slice; sizes in bytes.
    share
        Tiles that one core takes at most.
    found
        Takes the core of each tile.
    """
    for tile in range(found.size):
        cores.near[:] = ZERO
        for entry in range(tiles.reads_from[tile], tiles.reads_from[tile + 1]):
            read = tiles.reads[entry]
            _count(holders, cores, read, sizes[read], entry)
            _count(holders, cores, buffers[read], sizes[read], entry)
        best = _best_core(cores, tiles.default[tile], share)
        found[tile] = best
        cores.taken[best] += 1
        for entry in range(tiles.touches_from[tile], tiles.touches_from[tile + 1]):
            _add(holders, tiles.touches[entry], best)


@part
def _count(holders: Holders, cores: Cores, what: int, size: int, now: int) -> None:
    """Count the bytes of a slice for each core that touched it and was not counted ``now``."""
    entry = holders.first[what]
    while entry != NONE:
        core = holders.core[entry]
        if cores.counted[core] != now:
            cores.counted[core] = now
            cores.near[core] += size
        entry = holders.following[entry]


@part
def _best_core(cores: Cores, default: int, share: int) -> int:
    best = NONE
    for core in range(cores.position.size):
        if cores.position[core] == NONE or cores.taken[core] >= share:
            continue
        if best == NONE or _is_better(cores, core, best, default):
            best = core
    return best


@part
def _is_better(cores: Cores, core: int, best: int, default: int) -> bool:
    if cores.near[core] != cores.near[best]:
        return cores.near[core] > cores.near[best]
    if core == default or best == default:
        return core == default
    if cores.taken[core] != cores.taken[best]:
        return cores.taken[core] < cores.taken[best]
    return cores.position[core] < cores.position[best]


@part
def _add(holders: Holders, what: int, core: int) -> None:
    """Remember that a core touched a slice."""
    entry = holders.first[what]
    while entry != NONE:
        if holders.core[entry] == core:
            return
        entry = holders.following[entry]
    entry = holders.used[0]
    holders.used[0] += 1
    holders.core[entry] = core
    holders.following[entry] = holders.first[what]
    holders.first[what] = entry
