"""What each core takes in of one operand of a tiled group."""

from dataclasses import dataclass

import numpy as np

from spmilp.lowering.profile import Floats, Ints, Profile, overlaps, volumes
from spmilp.lowering.rates import MachineRates

MOST_PAIRS = 1 << 17
"""Pairs of a producer's and a consumer's tiles that are compared; beyond, only some cores are."""


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
    """What the cores take in of one operand.

    Parameters
    ----------
    per_core
        Bytes by core, without what lies there already.
    transfers
        Transfers by core.
    from_dram
        The part of it that DRAM sends; the rest comes from other cores.
    """

    per_core: Floats
    transfers: Floats
    from_dram: float

    def with_overhead(self, rates: MachineRates) -> tuple[Floats, float, float]:
        """Return bytes by core, from DRAM and between cores, set-up of transfers included."""
        far, near = rates.far * self.from_dram, rates.near * (1 - self.from_dram)
        per_core = self.per_core + self.transfers * (far + near)
        moved, count = float(self.per_core.sum()), float(self.transfers.sum())
        from_dram = moved * self.from_dram + count * far
        return per_core, from_dram, moved * (1 - self.from_dram) + count * near


class Inflows:
    """Computes inflows for one machine, each once."""

    def __init__(self, rates: MachineRates) -> None:
        self._rates = rates
        self._cores = len(rates.capacity)
        self._known: dict[tuple[Profile, int, Source], Inflow] = {}

    def of(self, profile: Profile, number: int, source: Source) -> Inflow:
        """Return the inflow of an input."""
        key = profile, number, source
        if key not in self._known:
            self._known[key] = self._compute(*key)
        return self._known[key]

    def _compute(self, profile: Profile, number: int, source: Source) -> Inflow:
        if source.producer is None:
            return self._from_dram(profile, number)
        if source.kept:
            return self._from_cores(profile, number, source.producer)
        inflow = self._from_dram(profile, number)
        pieces = _pieces(profile, number, source.producer)
        return Inflow(inflow.per_core, inflow.transfers * pieces, inflow.from_dram)

    def _from_dram(self, profile: Profile, number: int) -> Inflow:
        """Return the inflow of an operand that lies in DRAM.

        A core keeps a box from one of its tiles to the next, and loads each of its boxes once if
        all of them fit beside one working set. What one core has loaded, others take from it, where
        the machine allows.
        """
        boxes, cores = profile.reads[number], profile.cores
        sizes = volumes(boxes) * profile.items[number]
        flat = boxes.reshape(len(boxes), -1)
        changed = np.ones(len(flat), dtype=bool)
        changed[1:] = np.any(flat[1:] != flat[:-1], axis=1) | (cores[1:] != cores[:-1])
        _, first = np.unique(np.column_stack([cores, flat]), axis=0, return_index=True)
        distinct = np.bincount(cores[first], sizes[first], minlength=self._cores)
        in_turn = np.bincount(cores[changed], sizes[changed], minlength=self._cores)
        keeps = distinct <= self._free(profile)
        per_core = np.where(keeps, distinct, in_turn)
        once = np.bincount(cores[first], minlength=self._cores)
        each_time = np.bincount(cores[changed], minlength=self._cores)
        from_dram = 1.0
        if self._rates.pieces_are_shared:
            _, unique = np.unique(flat, axis=0, return_index=True)
            from_dram = float(sizes[unique].sum()) / max(1.0, float(distinct.sum()))
        return Inflow(per_core, np.where(keeps, once, each_time).astype(float), from_dram)

    def _free(self, profile: Profile) -> int:
        """Return the bytes of a core's share of its memory beside one working set."""
        shares = (self._rates.share_of(core) for core in profile.candidate.cores)
        return max(0, min(shares) - profile.candidate.footprint.bytes)

    def _from_cores(self, profile: Profile, number: int, producer: Profile) -> Inflow:
        """Return the inflow of an operand that other tiles have left in scratchpads."""
        chosen = _compared_tiles(profile, producer)
        boxes, cores = profile.reads[number][chosen], profile.cores[chosen]
        order = np.argsort(cores, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(cores[order]) != 0])
        owners = cores[order][starts]
        taken = np.add.reduceat(overlaps(boxes, producer.boxes)[order], starts, axis=0)
        taken = np.minimum(taken, volumes(producer.boxes)[None, :])
        remote = np.where(owners[:, None] == producer.cores[None, :], 0, taken)
        per_core, transfers = np.zeros(self._cores), np.zeros(self._cores)
        per_core[owners] = remote.sum(axis=1) * profile.items[number]
        transfers[owners] = (remote > 0).sum(axis=1)
        return Inflow(per_core, transfers, 0.0 if self._rates.pieces_are_shared else 1.0)


def _pieces(profile: Profile, number: int, producer: Profile) -> float:
    """Return the mean number of a producer's tiles of which a tile reads a share."""
    chosen = _compared_tiles(profile, producer)
    shared = overlaps(profile.reads[number][chosen], producer.boxes)
    return float((shared > 0).sum()) / len(chosen)


def _compared_tiles(profile: Profile, producer: Profile) -> Ints:
    """Return the tiles of some evenly spread cores, of all where there are not too many pairs."""
    everything = np.arange(len(profile.boxes))
    pairs = len(everything) * len(producer.boxes)
    if pairs <= MOST_PAIRS:
        return everything
    wanted = max(1, MOST_PAIRS * len(profile.used) // pairs)
    some = profile.used[:: -(-len(profile.used) // wanted)]
    return everything[np.isin(profile.cores, some)]
