"""A candidate tiling with all that an estimate asks of it: where its tiles run, what they read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.tile_selection.candidates import Candidate
from spmilp.tile_selection.group_model import GroupModel
from spmilp.tile_selection.reads import Boxes, Reads, tiles_of
from spmilp.units import Bytes, MemoryIdx

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


@dataclass(frozen=True, eq=False)
class Profile:
    """A candidate with the reads of its tiles, and the cores where they would run.

    Parameters
    ----------
    reads
        What each tile reads of each input, by the input's position in ``Group.inputs``.
    items
        Bytes of an element of each input.
    streamed
        Inputs of which each part of the reduction reads another piece.
    """

    candidate: Candidate
    placement: Placement
    reads: Mapping[int, Reads]
    items: Sequence[Bytes]
    streamed: frozenset[int]

    @property
    def tiles(self) -> int:
        """The number of output tiles."""
        return self.candidate.grid.tiles

    @property
    def parts(self) -> int:
        """Parts of the reduction: tasks of each tile."""
        return len(self.candidate.grid.parts)

    def pieces_of(self, number: int) -> int:
        """Return in how many pieces a tile reads an input, one after another."""
        return self.parts if number in self.streamed else 1

    @cached_property
    def boxes(self) -> Boxes:
        """The output tiles."""
        return tiles_of(self.candidate.grid)

    @cached_property
    def tiles_key(self) -> bytes:
        """The same for equal output tiles."""
        return repr(self.candidate.grid.axes).encode()

    @cached_property
    def mean_share(self) -> float:
        """The mean size of the tiles on one core, as a part of the largest tile."""
        if self.tiles <= len(self.candidate.cores):
            return 1.0
        lengths = [[stop - start for start, stop in axis] for axis in self.candidate.grid.axes]
        mean = prod(map(sum, lengths)) / self.tiles
        return (1.0 + mean / prod(map(max, lengths))) / 2


def profile_of(model: GroupModel, candidate: Candidate, homes: Sequence[MemoryIdx]) -> Profile:
    """Return the profile of one candidate tiling.

    Parameters
    ----------
    homes
        The memory in which each core works, by core.
    """
    position = {name: number for number, name in enumerate(model.group.inputs)}
    reads = model.reads(candidate.grid)
    own = tuple(homes[core] for core in candidate.cores)
    return Profile(
        candidate=candidate,
        placement=placement_of(own, candidate.grid.tiles),
        reads={position[name]: boxes for name, boxes in reads.items()},
        items=model.input_items,
        streamed=frozenset(
            position[name] for name, axes in model.drivers.items() if -1 in axes.values()
        ),
    )
