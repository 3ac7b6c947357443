"""A candidate tiling with all that an estimate asks of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spmilp.lowering.candidates import Candidate
from spmilp.lowering.probe import Boxes, Probe, output_boxes
from spmilp.units import Bytes, MemoryIdx

MANY_PAIRS = 1 << 12
"""From so many pairs of boxes on, looking for equal intervals costs less than it saves."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Profile:
    """What the tiles of a candidate read and write, and where they would run.

    Tile ``i`` of ``n`` runs on core ``floor(i * cores / n)`` of those that can: blocks of
    successive tiles, at proportional places for successive groups.

    Parameters
    ----------
    homes
        The memory of each core that can run its tiles, in the order of ``candidate.cores``.
    boxes
        The output tiles.
    reads
        What each tile reads of each input, by the input's position in ``Group.inputs``.
    items
        Bytes of an element of each input.
    """

    candidate: Candidate
    homes: Ints
    boxes: Boxes
    reads: Mapping[int, Boxes]
    items: Sequence[Bytes]

    @cached_property
    def memories(self) -> Ints:
        """The memory in which each tile is computed."""
        return self.homes[self._positions]

    @cached_property
    def alike(self) -> Mapping[int, int]:
        """For each input, the first one of which tiles read the same boxes of equal elements."""
        first: dict[tuple[bytes, Bytes], int] = {}
        return {
            number: first.setdefault((boxes.tobytes(), self.items[number]), number)
            for number, boxes in self.reads.items()
        }

    @cached_property
    def used(self) -> Ints:
        """The cores that have a tile, as positions in ``candidate.cores``, sorted."""
        return np.unique(self._positions)

    @cached_property
    def tiles_per_core(self) -> Ints:
        """The number of tiles on each of the used cores."""
        return np.unique(self._positions, return_counts=True)[1]

    @cached_property
    def _positions(self) -> Ints:
        tiles = np.arange(len(self.boxes))
        return tiles * len(self.homes) // len(tiles)

    @cached_property
    def mean_share(self) -> float:
        """The mean size of the tiles on one core, as a part of the largest tile."""
        if len(self.boxes) <= len(self.candidate.cores):
            return 1.0
        sizes = volumes(self.boxes)
        return (1.0 + float(sizes.mean()) / float(sizes.max())) / 2


def profile_of(probe: Probe, candidate: Candidate, homes: Sequence[MemoryIdx]) -> Profile:
    """Return the profile of one candidate tiling.

    Parameters
    ----------
    homes
        The memory in which each core works, by core.
    """
    position = {name: number for number, name in enumerate(probe.group.inputs)}
    reads = probe.reads(candidate.grid)
    return Profile(
        candidate=candidate,
        homes=np.array([homes[core] for core in candidate.cores], dtype=np.int64),
        boxes=output_boxes(candidate.grid),
        reads={position[name]: boxes for name, boxes in reads.items()},
        items=probe.input_items,
    )


def volumes(boxes: Boxes) -> Floats:
    """Return the number of elements of each box."""
    sizes: Floats = np.prod(boxes[:, :, 1] - boxes[:, :, 0], axis=1, dtype=np.float64)
    return sizes


def overlaps(a: Boxes, b: Boxes) -> Floats:
    """Return the elements that each box of ``a`` shares with each box of ``b``."""
    result = np.ones((len(a), len(b)))
    for axis in range(a.shape[1]):
        if len(a) * len(b) < MANY_PAIRS:
            result *= _shared(a[:, axis], b[:, axis])
            continue
        # Many boxes have the same interval along an axis, so only distinct ones are compared.
        first, of_a = _distinct(a[:, axis])
        second, of_b = _distinct(b[:, axis])
        shared = _shared(first, second)
        result *= shared if shared.size == 1 else shared[np.ix_(of_a, of_b)]
    return result


def _shared(first: Ints, second: Ints) -> Floats:
    """Return the lengths that each interval of ``first`` shares with each of ``second``."""
    start = np.maximum(first[:, None, 0], second[None, :, 0])
    stop = np.minimum(first[:, None, 1], second[None, :, 1])
    shared: Floats = np.maximum(stop - start, 0).astype(np.float64)
    return shared


def _distinct(intervals: Ints) -> tuple[Ints, Ints]:
    """Return the distinct ones of some intervals, and for each one its position among them."""
    keys = intervals[:, 0] << 32 | intervals[:, 1]
    _, first, position = np.unique(keys, return_index=True, return_inverse=True)
    return intervals[first], position
