"""About how many cycles a tiled group takes, given how its producers were tiled."""

from collections.abc import Mapping

import numpy as np

from spmilp.lowering.inflow import Inflows, Source
from spmilp.lowering.profile import Floats, Ints, Profile
from spmilp.lowering.rates import MachineRates
from spmilp.machine.machine import Machine
from spmilp.units import Bytes

HIDDEN = 0.1
"""What is expected to be hidden behind something longer counts with this weight: it competes for
channels and links, and is rarely hidden in full."""

WAITING = 2.0
"""How much longer tasks and transfers take where tensors must make room for them."""


class Estimator:
    """Estimates groups on one machine; for choosing among tilings, not a bound."""

    def __init__(self, machine: Machine, rates: MachineRates) -> None:
        self._rates = rates
        self._inflows = Inflows(rates)
        self._cores = len(machine.cores)
        self._kinds = [core.kind for core in machine.cores]

    def cycles(
        self, profile: Profile, sources: Mapping[int, Source], stored: Bytes, live: Bytes
    ) -> float:
        """Return about how many cycles a group takes.

        The largest of: each core's tasks with what must arrive before its first one, what each
        core takes in, what DRAM sends and takes, what the cores exchange. Where two working sets
        do not fit what live tensors leave of a core's memory, its tasks and its transfers take
        turns; where not even one fits, tensors must make room, and cores wait for each other.

        Parameters
        ----------
        sources
            Where each input comes from, by position. What is kept in scratchpads by an unknown
            producer is taken to lie where it is needed.
        stored
            Bytes of its output that go to DRAM.
        live
            Bytes that lie in scratchpads while it runs.
        """
        rates = self._rates
        into, late = np.zeros(self._cores), np.zeros(self._cores)
        from_dram = exchanged = 0.0
        to_dram = stored + len(profile.boxes) * rates.far if stored else 0.0
        for number in profile.reads:
            source = sources[number]
            if source.kept and source.producer is None:
                continue
            per_core, far, near = self._inflows.of(profile, number, source).with_overhead(rates)
            into += per_core
            from_dram += far
            exchanged += near
            if source.kept:
                late += per_core / rates.inbound
        crowding = self._crowding(profile, live)
        if crowding > 1:
            moved = (crowding - 1) * profile.candidate.footprint.bytes * len(profile.used)
            from_dram += moved
            to_dram += moved
        compute = self._compute(profile)
        loading = into[profile.used] / rates.inbound
        shared = (
            from_dram / rates.dram_out,
            to_dram / rates.dram_in,
            exchanged / rates.on_chip if rates.on_chip > 0 else 0.0,
        )
        if crowding <= 0.5:
            busy = np.maximum(compute + late[profile.used] / profile.tiles_per_core, loading)
        else:
            busy = (compute + loading) * (1 if crowding <= 1 else WAITING)
        work = float(compute.max()) + float(loading.max()) + sum(shared)
        return max(float(busy.max()), *shared) + HIDDEN * work + rates.start

    def _crowding(self, profile: Profile, live: Bytes) -> float:
        """Return a working set's part of what live tensors leave of a core's memory."""
        left = 1 - min(0.9, live / self._rates.aggregate)
        size = profile.candidate.footprint.bytes
        return max(size / (left * self._rates.share_of(core)) for core in profile.candidate.cores)

    def _compute(self, profile: Profile) -> Floats:
        """Return the cycles of each used core's tasks.

        Cores of different speeds share tiles so that all end at about the same time.
        """
        cycles = profile.candidate.cycles
        each = np.array([cycles[self._kinds[core]] or 0 for core in profile.used])
        if np.all(each == each[0]):
            return np.asarray(profile.tiles_per_core * each * profile.mean_share, dtype=np.float64)
        return np.full(len(each), _fair_end(each, len(profile.boxes)))


def _fair_end(each: Ints, tiles: int) -> float:
    """Return the least time in which cores with these cycles per tile do so many tiles."""
    low, high = 0, int(each.max()) * tiles
    while low < high:
        middle = (low + high) // 2
        if int((middle // each).sum()) >= tiles:
            high = middle
        else:
            low = middle + 1
    return float(low)
