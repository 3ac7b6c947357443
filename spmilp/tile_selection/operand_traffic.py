"""Bytes that the cores' memories take in of one operand of a tiled group."""

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul
from typing import NamedTuple

import numpy as np

from spmilp.lowering.rates import MachineRates
from spmilp.lowering.tiling import TileGrid
from spmilp.tile_selection.candidates import Floats, Ints, Profile
from spmilp.tile_selection.group_model import Boxes, volumes
from spmilp.units import Bytes, CoreIdx

MOST_PAIRS = 1 << 18
"""Pairs of a producer's and a consumer's tiles that are compared; if there are more, only the tiles
of some memories are."""


def overlaps(boxes: Boxes, grid: TileGrid) -> Floats:
    """Return the elements that each box shares with each tile of a grid, as a matrix."""
    result = np.ones((len(boxes), 1))
    for number, axis in enumerate(grid.axes):
        intervals = np.array(axis, dtype=np.int64).reshape(1, -1, 2)
        start = np.maximum(boxes[:, number, None, 0], intervals[:, :, 0])
        stop = np.minimum(boxes[:, number, None, 1], intervals[:, :, 1])
        along = np.maximum(stop - start, 0).astype(np.float64)
        result = (result[:, :, None] * along[:, None, :]).reshape(len(boxes), -1)
    return result


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """Return the position of one of each set of equal rows, and how many there are of it.

    No entry is negative. Each row becomes one 64-bit number where that is wide enough, which is far
    quicker than to compare rows.
    """
    spans = [int(span) + 1 for span in rows.max(axis=0)]
    if prod(spans) >= 1 << 62:
        return np.unique(rows, axis=0, return_index=True, return_counts=True)[1:]
    weights = list(accumulate(spans[:-1], mul, initial=1))[: len(spans)]  # none for a scalar
    keys = rows @ np.array(weights, dtype=np.int64)
    return np.unique(keys, return_index=True, return_counts=True)[1:]


class Traffic(NamedTuple):
    """Bytes that the cores' memories take in of one operand.

    Parameters
    ----------
    into
        Bytes by memory, without what lies there already.
    held
        Cycles by memory for which all its transfers hold channels, besides those for bytes.
    most_given
        The most bytes that one core's memory sends to others. Where a piece is passed on from
        memory to memory, what it could send in that time counts.
    from_dram, between_cores
        Bytes from DRAM, and between the cores' memories.
    """

    into: Floats
    held: Floats
    most_given: float
    from_dram: float
    between_cores: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loads:
    """Loads of the tiles' boxes of an operand that lies in DRAM.

    A memory may keep what it has loaded; else it loads a box whenever it changes from one tile to
    the next.

    Parameters
    ----------
    kept_bytes, kept_boxes
        By memory, each of its boxes once.
    changing_bytes, changing_boxes
        By memory, each change of its box.
    part
        Bytes of all distinct boxes, each counted once, divided by the sum over the memories of the
        distinct boxes of each: the share that has to come from DRAM if memories share boxes.
    """

    kept_bytes: Floats
    kept_boxes: Floats
    changing_bytes: Floats
    changing_boxes: Floats
    part: float


class OperandTraffic:
    """Computes the traffic of operands on one machine; profiles that read alike share results."""

    def __init__(self, rates: MachineRates) -> None:
        self._rates = rates
        self._is_shared = rates.on_chip > 0
        self._memories = max(rates.homes) + 1
        self._cache: dict[Hashable, Traffic] = {}
        self._loads_cache: dict[Hashable, _Loads] = {}
        self._capacities: dict[tuple[CoreIdx, ...], set[tuple[Bytes, int]]] = {}

    def from_dram(self, profile: Profile, number: int) -> Traffic:
        """Return the traffic of an input that comes from DRAM.

        A memory keeps a box from one of its tiles to the next, and loads each of its boxes once if
        all of them fit beside one working set; a box of which tasks read one part after another is
        loaded again for each tile. What one memory has loaded, others take from it, where the
        machine allows.
        """
        key = _operand_key(profile, number), self._free(profile)
        if key not in self._cache:
            self._cache[key] = self._from_dram(profile, number)
        return self._cache[key]

    def from_cores(self, profile: Profile, number: int, producer: Profile) -> Traffic:
        """Return the traffic of an input that tiles of a producer have left in the memories."""
        key = _operand_key(profile, number), producer.tiles_key, producer.placement
        if key not in self._cache:
            self._cache[key] = self._from_cores(profile, number, producer)
        return self._cache[key]

    def _from_dram(self, profile: Profile, number: int) -> Traffic:
        taken = _operand_key(profile, number)
        if taken not in self._loads_cache:
            self._loads_cache[taken] = self._loads(profile, number)
        loads = self._loads_cache[taken]
        keeps = loads.kept_bytes <= self._free(profile)
        into = np.where(keeps, loads.kept_bytes, loads.changing_bytes)
        transfers = profile.pieces_of(number) * np.where(
            keeps, loads.kept_boxes, loads.changing_boxes
        )
        part = loads.part if self._is_shared else 1.0
        all_bytes = float(into.sum())
        return Traffic(
            into=into,
            held=transfers * (self._rates.from_dram * part + self._rates.from_core * (1 - part)),
            most_given=all_bytes * (1 - part) / len(profile.placement.givers),
            from_dram=all_bytes * part,
            between_cores=all_bytes * (1 - part),
        )

    def _loads(self, profile: Profile, number: int) -> _Loads:
        boxes, homes = profile.reads[number].boxes, profile.placement.memories
        sizes = volumes(boxes) * profile.items[number]
        flat = boxes.reshape(len(boxes), -1)
        changed = np.ones(len(flat), dtype=bool)
        if profile.pieces_of(number) == 1:
            changed[1:] = np.any(flat[1:] != flat[:-1], axis=1) | (homes[1:] != homes[:-1])
        first = distinct_rows(np.column_stack([homes, flat]))[0]
        unique = distinct_rows(flat)[0]
        kept = self._by_memory(homes[first], sizes[first])
        return _Loads(
            kept_bytes=kept,
            kept_boxes=self._by_memory(homes[first]),
            changing_bytes=self._by_memory(homes[changed], sizes[changed]),
            changing_boxes=self._by_memory(homes[changed]),
            part=float(sizes[unique].sum() / max(1.0, kept.sum())),
        )

    def _by_memory(self, memories: Ints, weights: Floats | None = None) -> Floats:
        counted = np.bincount(memories, weights, minlength=self._memories)
        return counted.astype(np.float64)

    def _free(self, profile: Profile) -> int:
        """Return the bytes of a memory beside one working set of each core that shares it."""
        cores, size = profile.candidate.cores, profile.candidate.footprint.bytes
        if cores not in self._capacities:
            rates = self._rates
            self._capacities[cores] = {(rates.capacity[c], rates.sharers[c]) for c in cores}
        return max(0, min(total - sharers * size for total, sharers in self._capacities[cores]))

    def _from_cores(self, profile: Profile, number: int, producer: Profile) -> Traffic:
        chosen = _compared_tiles(profile, producer)
        boxes, givers = profile.reads[number].boxes[chosen], producer.placement.memories
        takers, taker = np.unique(profile.placement.memories[chosen], return_inverse=True)
        scale = len(profile.placement.givers) / len(takers)
        first, times = distinct_rows(np.column_stack([taker, boxes.reshape(len(boxes), -1)]))
        taken, transfers = np.zeros((2, len(takers), producer.tiles))
        shared_elements = overlaps(boxes[first], producer.candidate.grid)
        np.add.at(taken, taker[first], shared_elements * times[:, None])
        np.add.at(transfers, taker[first], shared_elements > 0)
        if profile.pieces_of(number) == 1:
            taken = np.minimum(taken, producer.volumes[None, :])
        remote = np.where(takers[:, None] == givers[None, :], 0, taken) * profile.items[number]
        shared = self._is_shared
        into, held = np.zeros((2, self._memories))
        into[takers] = remote.sum(axis=1)
        held[takers] = (transfers * (remote > 0)).sum(axis=1)
        total = float(remote.sum()) * scale
        return Traffic(
            into=into,
            held=held * (self._rates.from_core if shared else self._rates.from_dram),
            most_given=float(self._by_memory(givers, remote.sum(axis=0)).max()) * scale,
            from_dram=0.0 if shared else total,
            between_cores=total if shared else 0.0,
        )


def _operand_key(profile: Profile, number: int) -> Hashable:
    """Return a key: an operand's boxes, element size and pieces, and where the tiles run."""
    operand = profile.reads[number].key, profile.placement, profile.items[number]
    return *operand, profile.pieces_of(number)


def _compared_tiles(profile: Profile, producer: Profile) -> Ints:
    """Return the tiles of some evenly spread memories; all where the pairs are not too many."""
    everything, pairs = np.arange(profile.tiles), profile.tiles * producer.tiles
    if pairs <= MOST_PAIRS:
        return everything
    homes = profile.placement.givers
    wanted = max(1, MOST_PAIRS * len(homes) // pairs)
    return everything[np.isin(profile.placement.memories, homes[:: -(-len(homes) // wanted)])]
