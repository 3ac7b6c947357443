"""About how many cycles a tiled group takes, given how its producers were tiled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spmilp.lowering.candidates import Candidate
from spmilp.lowering.probe import Boxes, Probe, output_boxes
from spmilp.lowering.rates import MachineRates
from spmilp.machine.machine import Machine
from spmilp.units import Bytes

MOST_PAIRS = 1 << 17
"""Pairs of a producer's and a consumer's tiles that are compared; beyond, only some cores are."""

HIDDEN = 0.1
"""What is expected to be hidden behind something longer counts with this weight: it competes for
channels and links, and is rarely hidden in full."""


@dataclass(frozen=True, eq=False)
class Profile:
    """A candidate with what its tiles read and write and where they would run.

    Tile ``i`` of ``n`` runs on core ``floor(i * cores / n)`` of those that can: blocks of
    successive tiles, at proportional places for successive groups.

    Parameters
    ----------
    reads
        What each tile reads of each input, by the input's position in ``Group.inputs``.
    items
        Bytes of an element of each input.
    """

    candidate: Candidate
    boxes: Boxes
    reads: Mapping[int, Boxes]
    items: Sequence[Bytes]

    @cached_property
    def cores(self) -> NDArray[np.int64]:
        """The core of each tile."""
        able = np.array(self.candidate.cores, dtype=np.int64)
        tiles = np.arange(len(self.boxes))
        return able[tiles * len(able) // len(tiles)]


def profile_of(probe: Probe, candidate: Candidate) -> Profile:
    """Return the profile of one candidate tiling."""
    position = {name: number for number, name in enumerate(probe.group.inputs)}
    reads = probe.reads(candidate.grid)
    return Profile(
        candidate=candidate,
        boxes=output_boxes(candidate.grid),
        reads={position[name]: boxes for name, boxes in reads.items()},
        items=probe.input_items,
    )


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

    per_core: NDArray[np.float64]
    transfers: NDArray[np.float64]
    from_dram: float


class Estimator:
    """Estimates groups on one machine; for choosing among tilings, not a bound."""

    def __init__(self, machine: Machine, rates: MachineRates) -> None:
        self._rates = rates
        self._cores = len(machine.cores)
        self._kinds = np.array([core.kind for core in machine.cores])

    def cycles(
        self,
        profile: Profile,
        producers: Mapping[int, Profile | None],
        stored: Bytes,
    ) -> float:
        """Return about how many cycles a group takes.

        The largest of: each core's tasks with what must arrive before its first one, what each
        core takes in, what DRAM sends and takes, what the cores exchange. Where two working sets
        do not fit a core's share of its memory, its tasks and its transfers take turns.

        Parameters
        ----------
        producers
            For each input that other groups have left in scratchpads: that group's profile, or
            ``None`` to assume that all of it lies where it is needed. Other inputs are in DRAM.
        stored
            Bytes of its output that go to DRAM.
        """
        rates = self._rates
        used, tiles = np.unique(profile.cores, return_counts=True)
        compute = self._compute(profile)
        bytes_in = np.zeros(self._cores)
        transfers = np.zeros(self._cores)
        late = np.zeros(self._cores)
        from_dram = 0.0
        for number in profile.reads:
            if number not in producers:
                inflow = self._from_dram(profile, number)
            elif (producer := producers[number]) is None:
                continue
            else:
                inflow = self._from_cores(profile, number, producer)
            bytes_in += inflow.per_core
            transfers += inflow.transfers
            from_dram += inflow.from_dram
            if number in producers:
                late += inflow.per_core / rates.inbound + (inflow.transfers > 0) * rates.setup
        loading = bytes_in[used] / rates.inbound
        loading += transfers[used] * rates.setup / rates.channels
        if self._two_fit(profile):
            busy = np.maximum(compute + late[used] / tiles, loading)
        else:
            busy = compute + loading
        exchanged = float(bytes_in.sum()) - from_dram
        times = (
            float(busy.max()),
            from_dram / rates.dram_out,
            stored / rates.dram_in,
            exchanged / rates.on_chip if exchanged > 0 and rates.on_chip > 0 else 0.0,
        )
        work = float(compute.max()) + float(loading.max()) + sum(times[1:])
        return max(times) + HIDDEN * work + rates.setup

    def _compute(self, profile: Profile) -> NDArray[np.float64]:
        """Return the cycles of each used core's tasks.

        Cores of different speeds share tiles so that all end at about the same time.
        """
        candidate = profile.candidate
        used, tiles = np.unique(profile.cores, return_counts=True)
        each = np.array([candidate.footprint.cycles[self._kinds[core]] or 0 for core in used])
        if np.all(each == each[0]):
            # A core's tiles together, not their number times the largest.
            share = self._mean_share(profile)
            return np.asarray(tiles * each * share, dtype=np.float64)
        return np.full(len(used), _fair_end(each, int(tiles.sum())))

    def _mean_share(self, profile: Profile) -> float:
        """Return the mean size of tiles on one core, as a part of the largest tile."""
        tiles = len(profile.boxes)
        if tiles <= len(profile.candidate.cores):
            return 1.0
        sizes = np.prod(profile.boxes[:, :, 1] - profile.boxes[:, :, 0], axis=1)
        return (1.0 + float(sizes.mean()) / float(sizes.max())) / 2

    def _two_fit(self, profile: Profile) -> bool:
        size = profile.candidate.footprint.bytes
        return all(
            2 * size <= self._rates.capacity[core] // self._rates.sharers[core]
            for core in profile.candidate.cores
        )

    def _from_dram(self, profile: Profile, number: int) -> Inflow:
        """Return the inflow of an operand that lies in DRAM.

        A core keeps a box from one of its tiles to the next, and loads each of its boxes once if
        all of them fit beside one working set.
        """
        boxes, item = profile.reads[number], profile.items[number]
        sizes = _volumes(boxes) * item
        flat = boxes.reshape(len(boxes), -1)
        changed = np.ones(len(flat), dtype=bool)
        if len(flat) > 1:
            same_box = np.all(flat[1:] == flat[:-1], axis=1) if flat.shape[1] else True
            changed[1:] = ~(same_box & (profile.cores[1:] == profile.cores[:-1]))
        keyed = np.column_stack([profile.cores, flat])
        _, first = np.unique(keyed, axis=0, return_index=True)
        distinct = np.bincount(profile.cores[first], sizes[first], minlength=self._cores)
        in_turn = np.bincount(profile.cores[changed], sizes[changed], minlength=self._cores)
        free = (
            min(
                self._rates.capacity[core] // self._rates.sharers[core]
                for core in profile.candidate.cores
            )
            - profile.candidate.footprint.bytes
        )
        keeps = distinct <= max(0, free)
        per_core = np.where(keeps, distinct, in_turn)
        once = np.bincount(profile.cores[first], minlength=self._cores)
        each_time = np.bincount(profile.cores[changed], minlength=self._cores)
        if self._rates.pieces_are_shared:
            _, unique = np.unique(flat, axis=0, return_index=True)
            rounds = float(per_core.sum()) / max(1.0, float(distinct.sum()))
            from_dram = min(float(per_core.sum()), float(sizes[unique].sum()) * rounds)
        else:
            from_dram = float(per_core.sum())
        return Inflow(per_core, np.where(keeps, once, each_time).astype(float), from_dram)

    def _from_cores(self, profile: Profile, number: int, producer: Profile) -> Inflow:
        """Return the inflow of an operand that other tiles have left in scratchpads."""
        chosen = self._compared_tiles(profile, producer)
        boxes, cores = profile.reads[number][chosen], profile.cores[chosen]
        shared = _overlaps(boxes, producer.boxes)
        order = np.argsort(cores, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(cores[order]) != 0])
        owners = cores[order][starts]
        taken = np.add.reduceat(shared[order], starts, axis=0)
        taken = np.minimum(taken, _volumes(producer.boxes)[None, :])
        remote = np.where(owners[:, None] == producer.cores[None, :], 0, taken)
        per_core, transfers = np.zeros(self._cores), np.zeros(self._cores)
        per_core[owners] = remote.sum(axis=1) * profile.items[number]
        transfers[owners] = (remote > 0).sum(axis=1)
        scale = len(np.unique(profile.cores)) / len(owners)
        from_dram = 0.0 if self._rates.on_chip > 0 else float(per_core.sum()) * scale
        return Inflow(per_core, transfers, from_dram)

    def _compared_tiles(self, profile: Profile, producer: Profile) -> NDArray[np.int64]:
        tiles = len(profile.boxes)
        everything = np.arange(tiles)
        if tiles * len(producer.boxes) <= MOST_PAIRS:
            return everything
        used = np.unique(profile.cores)
        wanted = max(1, MOST_PAIRS * len(used) // (tiles * len(producer.boxes)))
        some = used[:: max(1, len(used) // wanted)]
        return everything[np.isin(profile.cores, some)]


def _fair_end(each: NDArray[np.int64], tiles: int) -> float:
    """Return the least time in which cores with these cycles per tile do so many tiles."""
    low, high = 0, int(each.max()) * tiles
    while low < high:
        middle = (low + high) // 2
        if int((middle // each).sum()) >= tiles:
            high = middle
        else:
            low = middle + 1
    return float(low)


def _volumes(boxes: Boxes) -> NDArray[np.float64]:
    sizes: NDArray[np.float64] = np.prod(boxes[:, :, 1] - boxes[:, :, 0], axis=1, dtype=np.float64)
    return sizes


def _overlaps(a: Boxes, b: Boxes) -> NDArray[np.float64]:
    """Return the elements that each box of ``a`` shares with each box of ``b``."""
    result = np.ones((len(a), len(b)))
    for axis in range(a.shape[1]):
        start = np.maximum(a[:, None, axis, 0], b[None, :, axis, 0])
        stop = np.minimum(a[:, None, axis, 1], b[None, :, axis, 1])
        result *= np.maximum(stop - start, 0)
    return result
