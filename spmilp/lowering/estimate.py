"""About how many cycles a tiled group takes, given how its producers were tiled."""

from collections.abc import Mapping

import numpy as np

from spmilp.lowering.inflow import Inflows
from spmilp.lowering.profile import Floats, Ints, Profile
from spmilp.lowering.rates import MachineRates
from spmilp.machine.machine import Machine
from spmilp.units import Bytes

HIDDEN = 0.1
"""What is expected to be hidden behind something longer counts with this weight: it competes for
channels and links, and is rarely hidden in full."""


class Estimator:
    """Estimates groups on one machine; for choosing among tilings, not a bound."""

    def __init__(self, machine: Machine, rates: MachineRates) -> None:
        self._rates = rates
        self._inflows = Inflows(rates)
        self._cores = len(machine.cores)
        self._kinds = [core.kind for core in machine.cores]

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
        compute = self._compute(profile)
        bytes_in, transfers = np.zeros(self._cores), np.zeros(self._cores)
        late = np.zeros(self._cores)
        from_dram = 0.0
        for number in profile.reads:
            producer = producers.get(number)
            if number in producers and producer is None:
                continue
            inflow = self._inflows.of(profile, number, producer)
            bytes_in += inflow.per_core
            transfers += inflow.transfers
            from_dram += inflow.from_dram
            if producer is not None:
                late += inflow.per_core / rates.inbound + (inflow.transfers > 0) * rates.setup
        used = profile.used
        loading = bytes_in[used] / rates.inbound + transfers[used] * rates.setup / rates.channels
        if self._two_fit(profile):
            busy = np.maximum(compute + late[used] / profile.tiles_per_core, loading)
        else:
            busy = compute + loading
        exchanged = max(0.0, float(bytes_in.sum()) - from_dram)
        shared = (
            from_dram / rates.dram_out,
            stored / rates.dram_in,
            exchanged / rates.on_chip if rates.on_chip > 0 else 0.0,
        )
        work = float(compute.max()) + float(loading.max()) + sum(shared)
        return max(float(busy.max()), *shared) + HIDDEN * work + rates.setup

    def _compute(self, profile: Profile) -> Floats:
        """Return the cycles of each used core's tasks.

        Cores of different speeds share tiles so that all end at about the same time.
        """
        cycles = profile.candidate.cycles
        each = np.array([cycles[self._kinds[core]] or 0 for core in profile.used])
        if np.all(each == each[0]):
            return np.asarray(profile.tiles_per_core * each * profile.mean_share, dtype=np.float64)
        return np.full(len(each), _fair_end(each, len(profile.boxes)))

    def _two_fit(self, profile: Profile) -> bool:
        size = 2 * profile.candidate.footprint.bytes
        return all(size <= self._rates.share_of(core) for core in profile.candidate.cores)


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
