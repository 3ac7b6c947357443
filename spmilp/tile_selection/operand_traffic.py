"""Bytes that the cores' memories take in of one operand of a tiled group."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, TypeVar

import numpy as np

from spmilp.frontend.operators.boxes import volume
from spmilp.lowering.rates import MachineRates
from spmilp.tile_selection.overlaps import (
    Floats,
    GridOverlaps,
    Ints,
    distinct_rows,
    overlaps,
    volumes,
)
from spmilp.tile_selection.profile import Profile
from spmilp.units import Bytes, CoreIdx

_Key = TypeVar("_Key", bound=Hashable)

MOST_PAIRS = 1 << 17
"""Pairs of a producer's and a consumer's tiles that are compared; beyond, some memories."""


class Traffic(NamedTuple):
    """Bytes that the cores' memories take in of one operand, set-up of transfers included.

    Parameters
    ----------
    into
        Bytes by memory, without what lies there already.
    out
        Bytes that the memory that gives most of it gives, or could give while it waits.
    far, near
        Bytes from DRAM, and between the cores' memories.
    """

    into: Floats
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
        The bytes of the different boxes of all memories, as a part of those of each memory.
    givers
        Memories that load some of it.
    copies
        Memories that load a box, in the mean.
    largest
        Bytes of the largest box.
    """

    kept_bytes: Floats
    kept_boxes: Floats
    changing_bytes: Floats
    changing_boxes: Floats
    part: float
    givers: int
    copies: float
    largest: float


class OperandTraffic:
    """Computes traffics for one machine, each once: many profiles read alike."""

    def __init__(self, rates: MachineRates) -> None:
        self._rates = rates
        self._memories = max(rates.homes) + 1
        self._cache: dict[Hashable, Traffic] = {}
        self._loads_cache: dict[Hashable, _Loads] = {}
        self._pieces_cache: dict[Hashable, float] = {}
        self._capacities: dict[tuple[CoreIdx, ...], set[tuple[Bytes, int]]] = {}

    def from_dram(self, profile: Profile, number: int, producer: Profile | None = None) -> Traffic:
        """Return the traffic of an input that comes from DRAM.

        Parameters
        ----------
        producer
            Whose tiles lie there, where a group has computed it.
        """
        pieces = 1.0 if producer is None else self._pieces(profile, number, producer)
        key = _operand_key(profile, number), self._free(profile), pieces
        if key not in self._cache:
            self._cache[key] = self._from_dram(profile, number, pieces)
        return self._cache[key]

    def from_cores(
        self, profile: Profile, number: int, producers: Sequence[Profile]
    ) -> list[Traffic]:
        """Return the traffics of an input that tiles of a producer have left in the memories.

        There is one for each of the producers that there may be.
        """
        taken = _operand_key(profile, number)
        keys = [(taken, producer.tiles_key, producer.placement) for producer in producers]
        missing = {
            key: producer
            for key, producer in zip(keys, producers, strict=True)
            if key not in self._cache
        }
        for some in _in_batches(profile, missing):
            traffics = self._from_cores(profile, number, list(some.values()))
            self._cache.update(zip(some, traffics, strict=True))
        return [self._cache[key] for key in keys]

    def _from_dram(self, profile: Profile, number: int, pieces: float) -> Traffic:
        """Return the traffic of an operand that lies in DRAM, each tile's box in some pieces.

        A memory keeps a box from one of its tiles to the next, and loads each of its boxes once if
        all of them fit beside one working set; a box of which tasks read one part after another is
        loaded again for each tile. What one memory has loaded, others take from it, where the
        machine allows.
        """
        taken = _operand_key(profile, number)
        if taken not in self._loads_cache:
            self._loads_cache[taken] = self._loads(profile, number)
        loads = self._loads_cache[taken]
        keeps = loads.kept_bytes <= self._free(profile)
        into = np.where(keeps, loads.kept_bytes, loads.changing_bytes)
        parts = profile.pieces_of(number)
        transfers = pieces * parts * np.where(keeps, loads.kept_boxes, loads.changing_boxes)
        shared = self._rates.on_chip > 0
        part = loads.part if shared else 1.0
        dram_setup = self._rates.dram_setup * part
        core_setup = self._rates.core_setup * (1 - part)
        all_bytes, all_transfers = float(into.sum()), float(transfers.sum())
        from_others = all_bytes * (1 - part) + all_transfers * core_setup
        largest = loads.largest / parts
        passed_on = self._rates.passing_on(largest, loads.copies) if shared else 0.0
        return Traffic(
            into=into + transfers * (dram_setup + core_setup),
            most_given=max(from_others / loads.givers, passed_on),
            from_dram=all_bytes * part + all_transfers * dram_setup,
            between_cores=from_others,
        )

    def _loads(self, profile: Profile, number: int) -> _Loads:
        reads, placement = profile.reads[number], profile.placement
        if reads.is_the_same_for_all:
            size = float(volume(reads.base) * profile.items[number])
            again = placement.changes if profile.pieces_of(number) == 1 else slice(None)
            changes = self._by_memory(placement.memories[again])
            once = self._by_memory(placement.givers)
            return _Loads(
                kept_bytes=once * size,
                kept_boxes=once,
                changing_bytes=changes * size,
                changing_boxes=changes,
                part=size / max(1.0, len(placement.givers) * size),
                givers=len(placement.givers),
                copies=float(len(placement.givers)),
                largest=size,
            )
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
            givers=len(profile.placement.givers),
            copies=len(first) / len(unique),
            largest=float(sizes.max()),
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

    def _pieces(self, profile: Profile, number: int, producer: Profile) -> float:
        """Return the mean number of a producer's tiles of which a tile reads a share."""
        key = profile.reads[number].key, profile.placement, producer.tiles_key
        if key not in self._pieces_cache:
            chosen = _compared_tiles(profile, producer)
            boxes = profile.reads[number].boxes[chosen]
            shared = GridOverlaps(boxes, producer.candidate.grid.axes)
            self._pieces_cache[key] = float(shared.tiles_of_each.sum()) / len(chosen)
        return self._pieces_cache[key]

    def _from_cores(
        self, profile: Profile, number: int, producers: Sequence[Profile]
    ) -> list[Traffic]:
        """Compute traffics for producers whose tiles are compared with the same tiles."""
        chosen = _compared_tiles(profile, producers[0])
        memories = profile.placement.memories
        boxes = profile.reads[number].boxes[chosen]
        takers, taker = np.unique(memories[chosen], return_inverse=True)
        scale = len(profile.placement.givers) / len(takers)
        made = np.concatenate([producer.boxes for producer in producers])
        givers = np.concatenate([producer.placement.memories for producer in producers])
        if len(boxes) * len(made) > MOST_PAIRS:
            grids = [GridOverlaps(boxes, one.candidate.grid.axes) for one in producers]
            taken = np.hstack([grid.shared_by(taker, len(takers)) for grid in grids])
        else:
            taken = _sums(overlaps(boxes, made), taker)
        if profile.pieces_of(number) == 1:
            taken = np.minimum(taken, volumes(made)[None, :])
        remote = np.where(takers[:, None] == givers[None, :], 0, taken)
        remote *= profile.items[number]
        shared = self._rates.on_chip > 0
        remote += (remote > 0) * (self._rates.core_setup if shared else self._rates.dram_setup)
        ends = list(accumulate(producer.tiles for producer in producers))
        found = []
        for start, end in zip([0, *ends], ends, strict=False):
            bytes_ = np.ascontiguousarray(remote[:, start:end])
            given = self._by_memory(givers[start:end], bytes_.sum(axis=0)) * scale
            total = float(bytes_.sum()) * scale
            into = np.zeros(self._memories)
            into[takers] = bytes_.sum(axis=1)
            found.append(
                Traffic(
                    into=into,
                    most_given=float(given.max()),
                    from_dram=0.0 if shared else total,
                    between_cores=total if shared else 0.0,
                )
            )
        return found


def _sums(shared: Floats, taker: Ints) -> Floats:
    """Add up the rows of each taker; the takers are numbered from 0 on."""
    order = np.argsort(taker, kind="stable")
    starts = np.searchsorted(taker[order], np.arange(int(taker.max()) + 1))
    sums: Floats = np.add.reduceat(shared[order], starts, axis=0)
    return sums


def _operand_key(profile: Profile, number: int) -> Hashable:
    """Return a value that is equal for what is taken into the same memories alike."""
    operand = profile.reads[number].key, profile.placement, profile.items[number]
    return *operand, profile.pieces_of(number)


def _in_batches(
    profile: Profile, producers: Mapping[_Key, Profile]
) -> Iterator[dict[_Key, Profile]]:
    """Divide producers into batches whose pairs of tiles are not too many, as far as possible."""
    batch: dict[_Key, Profile] = {}
    tiles = 0
    for key, producer in producers.items():
        if batch and profile.tiles * (tiles + producer.tiles) > MOST_PAIRS:
            yield batch
            batch, tiles = {}, 0
        batch[key] = producer
        tiles += producer.tiles
    if batch:
        yield batch


def _compared_tiles(profile: Profile, producer: Profile) -> Ints:
    """Return the tiles of some evenly spread memories; all where the pairs are not too many."""
    everything = np.arange(profile.tiles)
    pairs = profile.tiles * producer.tiles
    if pairs <= MOST_PAIRS:
        return everything
    memories = profile.placement.memories
    homes = profile.placement.givers
    wanted = max(1, MOST_PAIRS * len(homes) // pairs)
    some = homes[:: -(-len(homes) // wanted)]
    return everything[np.isin(memories, some)]
