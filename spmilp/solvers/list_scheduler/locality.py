"""The core that already holds most of what a tile touches. Compiled."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spmilp.compiled import kernel, part
from spmilp.solvers.kernels.records import NONE, ZERO, Ints, Rows
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
    """The tiles of one operator, in order: the slices that each reads, those that it touches, and
    the ``default`` core on which it runs where no other is nearer."""

    reads: Rows
    touches: Rows
    default: Ints


class Cores(NamedTuple):
    """The cores while the tiles of one operator are given out.

    ``position`` in the order of preference, or -1 if it cannot run the operator; tiles ``taken``;
    bytes of the tile at hand that are ``near``; the last read for which it was ``counted``.
    """

    position: Ints
    taken: Ints
    near: Ints
    counted: Ints


def no_holders(slices: int, entries: int) -> Holders:
    """Return empty lists that can take so many entries in all."""
    core, following = np.zeros((2, entries), np.int64)
    return Holders(np.full(slices, NONE, np.int64), core, following, np.zeros(1, np.int64))


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
    """Give each tile the core that touched most of the bytes it reads and can take one more tile.

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
        for entry in range(tiles.reads.begin[tile], tiles.reads.begin[tile + 1]):
            read = tiles.reads.items[entry]
            _count(holders, cores, read, sizes[read], entry)
            _count(holders, cores, buffers[read], sizes[read], entry)
        best = _best_core(cores, tiles.default[tile], share)
        found[tile] = best
        cores.taken[best] += 1
        for entry in range(tiles.touches.begin[tile], tiles.touches.begin[tile + 1]):
            _add(holders, tiles.touches.items[entry], best)


@part
def _count(holders: Holders, cores: Cores, slice_: int, size: int, now: int) -> None:
    """Count the bytes of a slice for each core that touched it and was not counted ``now``."""
    entry = holders.first[slice_]
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
def _add(holders: Holders, slice_: int, core: int) -> None:
    """Remember that a core touched a slice."""
    entry = holders.first[slice_]
    while entry != NONE:
        if holders.core[entry] == core:
            return
        entry = holders.following[entry]
    entry = holders.used[0]
    holders.used[0] += 1
    holders.core[entry] = core
    holders.following[entry] = holders.first[slice_]
    holders.first[slice_] = entry
