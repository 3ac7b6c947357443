"""About how many cycles a tiled group takes, given how its producers were tiled."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class GroupTime:
    """About how long a group keeps the machine busy, in cycles.

    Parameters
    ----------
    chip
        Cores, their memories' ports and the links between them: whichever is busy longest.
    last
        Of ``chip``, from the arrival of the last operand on.
    dram
        DRAM, sending what the group loads.
    ahead
        DRAM may send this long before the group before has ended: what scratchpads have room for.
    work
        All of these together, whatever hides behind whatever.
    """

    chip: float
    last: float
    dram: float
    ahead: float
    work: float

    @property
    def alone(self) -> float:
        """Cycles of the group alone, with a little for what is hidden, to break ties."""
        return max(self.chip, self.dram) + HIDDEN * self.work


def in_sequence(groups: Iterable[GroupTime]) -> float:
    """Return about how many cycles groups take one after another, DRAM working ahead of them.

    A flow shop of two machines with limited room between them.
    """
    chip = dram = work = 0.0
    for group in groups:
        dram = max(dram, chip - group.ahead) + group.dram
        chip = max(chip + group.chip, dram + group.last)
        work += group.work
    return chip + HIDDEN * work


class Estimator:
    """Estimates groups on one machine; for choosing among tilings, not a bound."""

    def __init__(self, machine: Machine, rates: MachineRates) -> None:
        self._rates = rates
        self._inflows = Inflows(rates)
        self._kinds = [core.kind for core in machine.cores]

    def time(
        self, profile: Profile, sources: Mapping[int, Source], stored: Bytes, live: Bytes
    ) -> GroupTime:
        """Return about how long a group takes.

        Where two working sets do not fit what live tensors leave of a core's memory, its tasks and
        its transfers take turns; where not even one fits, tensors must make room, and cores wait
        for each other.

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
        inflows = {
            number: self._inflows.of(profile, number, sources[number])
            for number in profile.reads
            if not (sources[number].kept and sources[number].producer is None)
        }
        nothing = np.zeros(max(rates.homes) + 1)
        into = sum((one.into for one in inflows.values()), start=nothing)
        late = sum((one.into for n, one in inflows.items() if sources[n].kept), start=nothing)
        from_dram = sum(one.far for one in inflows.values())
        near = sum(one.near for one in inflows.values())
        to_dram = stored + len(profile.boxes) * rates.far if stored else 0.0
        crowding = self._crowding(profile, live)
        if crowding > 1:
            moved = (crowding - 1) * profile.candidate.footprint.bytes * len(profile.used)
            from_dram += moved
            to_dram += moved
        homes = profile.homes[profile.used]
        compute, loading = self._compute(profile), into[homes] / rates.inbound
        if crowding <= 0.5:
            waiting = late[homes] / rates.inbound / profile.tiles_per_core
            busy = np.maximum(compute + waiting, loading)
        else:
            busy = (compute + loading) * (1 if crowding <= 1 else WAITING)
        sent = from_dram / rates.dram_out
        others = (
            to_dram / rates.dram_in,
            near / rates.on_chip if rates.on_chip > 0 else 0.0,
            sum(one.out for one in inflows.values()) / rates.outbound,
        )
        chip = max(float(busy.max()), *others) + rates.start
        free = rates.aggregate - live - profile.candidate.footprint.bytes * len(profile.used)
        return GroupTime(
            chip=chip,
            last=chip / float(profile.tiles_per_core.max()),
            dram=sent,
            ahead=max(0.0, free) / rates.dram_out,
            work=float(compute.max()) + float(loading.max()) + sent + sum(others),
        )

    def _crowding(self, profile: Profile, live: Bytes) -> float:
        """Return a working set's part of what live tensors leave of a core's memory."""
        left = 1 - min(0.9, live / self._rates.aggregate)
        size = profile.candidate.footprint.bytes
        return max(size / (left * self._rates.share_of(core)) for core in profile.candidate.cores)

    def _compute(self, profile: Profile) -> Floats:
        """Return the cycles of each used core's tasks.

        Cores of different speeds share tiles so that all end at about the same time.
        """
        candidate = profile.candidate
        kinds = (self._kinds[candidate.cores[position]] for position in profile.used)
        each = np.array([candidate.cycles[kind] or 1 for kind in kinds])
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
