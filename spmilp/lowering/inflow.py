"""What the cores' memories take in of one operand of a tiled group."""

from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul

import numpy as np

from spmilp.lowering.profile import Floats, Ints, Profile, overlaps, volumes
from spmilp.lowering.rates import MachineRates

MOST_PAIRS = 1 << 17
"""Pairs of a producer's and a consumer's tiles that are compared; beyond, some memories."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where an operand comes from.

    Parameters
    ----------
    producer
        The profile of the group that computes it; ``None`` for a network input or a constant, and
        where the producer is not known.
    kept
        It is expected to be in scratchpads still; otherwise it comes from DRAM.
    """

    producer: Profile | None
    kept: bool


@dataclass(frozen=True, slots=True)
class Inflow:
    """What the cores' memories take in of one operand, set-up of transfers included.

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
    out: float
    far: float
    near: float


class Inflows:
    """Computes inflows for one machine, each once."""

    def __init__(self, rates: MachineRates) -> None:
        self._rates = rates
        self._memories = max(rates.homes) + 1
        self._known: dict[tuple[Profile, int, Source], Inflow] = {}

    def of(self, profile: Profile, number: int, source: Source) -> Inflow:
        """Return the inflow of an input."""
        if source.producer is None:
            number = profile.alike[number]
        key = profile, number, source
        if key not in self._known:
            self._known[key] = self._compute(*key)
        return self._known[key]

    def _compute(self, profile: Profile, number: int, source: Source) -> Inflow:
        if source.producer is None:
            return self._from_dram(profile, number, 1.0)
        if not source.kept:
            return self._from_dram(profile, number, _pieces(profile, number, source.producer))
        return self._from_cores(profile, number, source.producer)

    def _from_dram(self, profile: Profile, number: int, pieces: float) -> Inflow:
        """Return the inflow of an operand that lies in DRAM, each tile's box in some pieces.

        A memory keeps a box from one of its tiles to the next, and loads each of its boxes once if
        all of them fit beside one working set. What one memory has loaded, others take from it,
        where the machine allows.
        """
        boxes, homes = profile.reads[number], profile.memories
        sizes = volumes(boxes) * profile.items[number]
        flat = boxes.reshape(len(boxes), -1)
        changed = np.ones(len(flat), dtype=bool)
        changed[1:] = np.any(flat[1:] != flat[:-1], axis=1) | (homes[1:] != homes[:-1])
        first = _first_of_equals(np.column_stack([homes, flat]))
        distinct = self._by_memory(homes[first], sizes[first])
        keeps = distinct <= self._free(profile)
        into = np.where(keeps, distinct, self._by_memory(homes[changed], sizes[changed]))
        transfers = pieces * np.where(
            keeps, self._by_memory(homes[first]), self._by_memory(homes[changed])
        )
        unique = _first_of_equals(flat)
        shared = self._rates.on_chip > 0
        part = float(sizes[unique].sum() / max(1.0, distinct.sum())) if shared else 1.0
        far = self._rates.far * part
        near = self._rates.near * (1 - part)
        from_others = float(into.sum()) * (1 - part) + float(transfers.sum()) * near
        givers = len(np.unique(homes))
        copies = len(first) / len(unique)
        passed_on = self._rates.passing_on(float(sizes.max()), copies) if shared else 0.0
        return Inflow(
            into=into + transfers * (far + near),
            out=max(from_others / givers, passed_on),
            far=float(into.sum()) * part + float(transfers.sum()) * far,
            near=from_others,
        )

    def _by_memory(self, memories: Ints, weights: Floats | None = None) -> Floats:
        counted = np.bincount(memories, weights, minlength=self._memories)
        return counted.astype(np.float64)

    def _free(self, profile: Profile) -> int:
        """Return the bytes of a memory beside one working set of each core that shares it."""
        size = profile.candidate.footprint.bytes
        rates = self._rates
        free = (rates.capacity[c] - rates.sharers[c] * size for c in profile.candidate.cores)
        return max(0, min(free))

    def _from_cores(self, profile: Profile, number: int, producer: Profile) -> Inflow:
        """Return the inflow of an operand that other tiles have left in the cores' memories."""
        chosen = _compared_tiles(profile, producer)
        boxes, homes = profile.reads[number][chosen], profile.memories[chosen]
        order = np.argsort(homes, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(homes[order]) != 0])
        takers = homes[order][starts]
        taken = np.add.reduceat(overlaps(boxes, producer.boxes)[order], starts, axis=0)
        taken = np.minimum(taken, volumes(producer.boxes)[None, :])
        remote = np.where(takers[:, None] == producer.memories[None, :], 0, taken)
        remote *= profile.items[number]
        shared = self._rates.on_chip > 0
        remote += (remote > 0) * (self._rates.near if shared else self._rates.far)
        scale = len(np.unique(profile.memories)) / len(takers)
        given = self._by_memory(producer.memories, remote.sum(axis=0)) * scale
        total = float(remote.sum()) * scale
        into = np.zeros(self._memories)
        into[takers] = remote.sum(axis=1)
        return Inflow(
            into=into,
            out=float(given.max()),
            far=0.0 if shared else total,
            near=total if shared else 0.0,
        )


def _pieces(profile: Profile, number: int, producer: Profile) -> float:
    """Return the mean number of a producer's tiles of which a tile reads a share."""
    chosen = _compared_tiles(profile, producer)
    shared = overlaps(profile.reads[number][chosen], producer.boxes)
    return float((shared > 0).sum()) / len(chosen)


def _compared_tiles(profile: Profile, producer: Profile) -> Ints:
    """Return the tiles of some evenly spread memories; all where the pairs are not too many."""
    everything = np.arange(len(profile.boxes))
    pairs = len(everything) * len(producer.boxes)
    if pairs <= MOST_PAIRS:
        return everything
    homes = np.unique(profile.memories)
    wanted = max(1, MOST_PAIRS * len(homes) // pairs)
    some = homes[:: -(-len(homes) // wanted)]
    return everything[np.isin(profile.memories, some)]


def _first_of_equals(rows: Ints) -> Ints:
    """Return the position of one of each set of equal rows; no entry is negative.

    Rows are compared as one number each where numbers are long enough, which is far quicker.
    """
    spans = [int(span) + 1 for span in rows.max(axis=0)]
    if prod(spans) >= 1 << 62:
        return np.unique(rows, axis=0, return_index=True)[1]
    weights = list(accumulate(spans[:-1], mul, initial=1))[: len(spans)]  # none for a scalar
    return np.unique(rows @ np.array(weights, dtype=np.int64), return_index=True)[1]
