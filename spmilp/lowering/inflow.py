"""What each core takes in of one operand of a tiled group."""

from dataclasses import dataclass

import numpy as np

from spmilp.lowering.profile import Floats, Ints, Profile, overlaps, volumes
from spmilp.lowering.rates import MachineRates

MOST_PAIRS = 1 << 17
"""Pairs of a producer's and a consumer's tiles that are compared; beyond, only some cores are."""


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
        Bytes that DRAM sends in all; the rest comes from other cores.
    """

    per_core: Floats
    transfers: Floats
    from_dram: float


class Inflows:
    """Computes inflows for one machine, each once."""

    def __init__(self, rates: MachineRates) -> None:
        self._rates = rates
        self._cores = len(rates.capacity)
        self._known: dict[tuple[Profile, int, Profile | None], Inflow] = {}

    def of(self, profile: Profile, number: int, producer: Profile | None) -> Inflow:
        """Return the inflow of an input, left by a producer's tiles or (``None``) in DRAM."""
        key = profile, number, producer
        if key not in self._known:
            self._known[key] = (
                self._from_dram(profile, number)
                if producer is None
                else self._from_cores(profile, number, producer)
            )
        return self._known[key]

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
        from_dram = float(per_core.sum())
        if self._rates.pieces_are_shared:
            _, unique = np.unique(flat, axis=0, return_index=True)
            rounds = from_dram / max(1.0, float(distinct.sum()))
            from_dram = min(from_dram, float(sizes[unique].sum()) * rounds)
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
        through_dram = 0.0 if self._rates.pieces_are_shared else float(per_core.sum())
        return Inflow(per_core, transfers, through_dram)


def _compared_tiles(profile: Profile, producer: Profile) -> Ints:
    """Return the tiles of some evenly spread cores, of all where there are not too many pairs."""
    everything = np.arange(len(profile.boxes))
    pairs = len(everything) * len(producer.boxes)
    if pairs <= MOST_PAIRS:
        return everything
    wanted = max(1, MOST_PAIRS * len(profile.used) // pairs)
    some = profile.used[:: -(-len(profile.used) // wanted)]
    return everything[np.isin(profile.cores, some)]
