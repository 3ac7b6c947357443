"""On which cores the tiles of a group are expected to run."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.units import MemoryIdx

Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Tile ``i`` of ``n`` runs on core ``floor(i * cores / n)`` of those that can.

    These are blocks of successive tiles, at proportional places for successive groups.

    Parameters
    ----------
    memories
        The memory in which each tile is computed.
    used
        The cores that have a tile, as positions among those that can run it, sorted.
    homes
        The memories of the used cores.
    tiles_per_core
        The number of tiles on each of the used cores.
    givers
        The memories of the used cores, each once, sorted.
    changes
        The first tile, and those in another memory than the one before.
    """

    memories: Ints
    used: Ints
    homes: Ints
    tiles_per_core: Ints
    givers: Ints
    changes: Ints


@lru_cache(maxsize=1 << 12)
def placement_of(homes: Sequence[MemoryIdx], tiles: int) -> Placement:
    """Return where so many tiles run on cores that work in these memories.

    It is the same object for the same arguments, as a rule, and stands for them in keys.
    """
    of_cores = np.array(homes, dtype=np.int64)
    positions = np.arange(tiles) * len(homes) // tiles
    used, tiles_per_core = np.unique(positions, return_counts=True)
    memories = of_cores[positions]
    return Placement(
        memories=memories,
        used=used,
        homes=of_cores[used],
        tiles_per_core=tiles_per_core,
        givers=np.unique(of_cores[used]),
        changes=np.flatnonzero(np.r_[True, memories[1:] != memories[:-1]]),
    )
