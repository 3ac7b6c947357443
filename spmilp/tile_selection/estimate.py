"""Estimate of the cycles of a tiled group, given how its producers were tiled."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from math import inf

import numpy as np

from spmilp.cached import Cache, cached
from spmilp.lowering.rates import MachineRates
from spmilp.machine.machine import Machine
from spmilp.tile_selection.candidates import Floats, Ints, Profile
from spmilp.tile_selection.operand_traffic import OperandTraffic
from spmilp.units import Bytes

HIDDEN = 0.1
"""Default weight of the work that is not the bottleneck: it competes for channels and links, so it
is rarely hidden in full behind the longest."""

OCCUPANCY = 0.5
"""Default limit of the occupancy of a core's memory: half of the bytes of a working set and of the
next task's operands, divided by the bytes that live tensors leave. Above it transfers do not
overlap with tasks."""

EXPOSED = 0.25
"""Share of a core's last task that counts behind the arrival of its last operand: while that task
runs, DRAM can send what later groups need."""

OVERFULL = 2.0
"""Factor by which tasks and transfers take longer where tensors must be moved out of a core's own
memory first. Of cores that share one, some wait instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostParameters:
    """Guesses about what tilings do not tell, such as when a transfer finds its link busy.

    Parameters
    ----------
    hidden
        Weight of the work that is expected to be hidden behind the bottleneck.
    occupancy
        Above this occupancy of a core's memory (see :data:`OCCUPANCY`) tasks and transfers are
        taken to alternate.
    exchange
        Factor on the time of transfers between scratchpads, for links that are busy.
    room
        The share of a core's memory that a working set may take. Smaller tiles leave bytes free, in
        which operands of later tasks can arrive early.
    cores
        The share of the cores for which a group has tiles if one tile for each core would make
        tasks short. Fewer and longer tasks need fewer launches and fewer set-ups of transfers.
    """

    hidden: float = HIDDEN
    occupancy: float = OCCUPANCY
    exchange: float = 1.0
    room: float = 0.9
    cores: float = 1.0


DEFAULT_PARAMETERS = CostParameters()

ALTERNATIVES = (
    CostParameters(hidden=0.3, occupancy=0.33),
    CostParameters(room=0.2),
    CostParameters(hidden=0.3, occupancy=0.33, room=0.2),
    CostParameters(hidden=0.3, occupancy=0.33, cores=0.25),
    CostParameters(room=0.2, cores=0.25),
    CostParameters(hidden=0.3, exchange=2.0),
    CostParameters(room=0.4),
)
"""Parameters that differ enough from the default, and from each other, to be tried as well."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of an operand.

    Parameters
    ----------
    producers
        The profile of the group that computes the operand, or several alternatives. ``None`` for a
        network input or a constant, and where the producer is not known: an operand that is kept
        is then taken to lie where it is needed.
    kept
        Whether the operand is expected to be still in scratchpads; otherwise it comes from DRAM,
        through the memories between if there are any.
    most_sent
        Bytes that DRAM sends at most, where the operand stays in these.
    """

    producers: Sequence[Profile | None]
    kept: bool
    most_sent: float = inf


class Estimator:
    """Estimates the cycles of groups on one machine, to choose among tilings; this is no bound."""

    def __init__(self, machine: Machine, rates: MachineRates) -> None:
        self._parameters = DEFAULT_PARAMETERS
        self._rates = rates
        self._traffic = OperandTraffic(rates)
        self._kinds = [core.kind for core in machine.cores]
        self.cache = Cache()

    def with_parameters(self, parameters: CostParameters) -> "Estimator":
        """Return one with other parameters that shares what this one knows."""
        other = copy(self)
        other._parameters = parameters
        return other

    def cycles(
        self, profile: Profile, sources: Mapping[int, Source], stored: Bytes, live: Bytes
    ) -> list[float]:
        """Return about how long a group takes, for one producer of an input or for several.

        The estimate is the longest of the times for which cores, their memories' ports, the links
        between them and DRAM are busy, plus ``hidden`` times the sum of all of them. Where the next
        task's operands do not fit beside a working set, tasks and transfers alternate. Where not
        even the working set fits, tensors must be moved out first; cores that share a memory take
        turns.

        Parameters
        ----------
        sources
            Where each input comes from, by position. At most one input has several producers; the
            result then has one time for each of them.
        stored
            Bytes of its output that go to DRAM.
        live
            Bytes that lie in scratchpads while it runs.
        """
        rates, parameters = self._rates, self._parameters
        (compute, least_share), placement = self._costs_of(profile), profile.placement
        footprint = profile.candidate.footprint
        left = 1 - min(0.9, live / rates.aggregate)
        occupancy = footprint.bytes / (left * least_share)
        with_next = footprint.with_next / (left * least_share)
        loading, late, given, from_dram, between = self._input_traffic(profile, sources)
        to_dram = float(stored)
        sharers = max(rates.sharers)
        longer = max(1.0, sharers / max(1, sharers // occupancy))
        if sharers == 1 and occupancy > 1:
            longer = OVERFULL
            moved = (occupancy - 1) * footprint.bytes * len(placement.used)
            from_dram = from_dram + moved
            to_dram += moved
        loading = loading[:, placement.homes]
        if with_next <= 2 * parameters.occupancy:
            tasks = placement.tiles_per_core * profile.parts
            waiting = late[:, placement.homes] / tasks
            busy = np.maximum(compute + waiting, loading)
        else:
            busy = np.maximum((compute + loading / sharers) * longer, loading)
        sending = from_dram / rates.dram_out
        storing = to_dram / rates.dram_in
        exchange = np.zeros_like(between)
        if rates.on_chip > 0:
            exchange = between * parameters.exchange / rates.on_chip
        giving = given / rates.outbound
        longest = np.maximum.reduce([busy.max(axis=1), exchange, giving])
        longest = np.maximum(longest, storing) + rates.start
        # Behind the arrival of the last operand comes one task of each core.
        most_tasks = placement.tiles_per_core.max() * profile.parts
        longest = np.maximum(longest, sending + EXPOSED * longest / most_tasks)
        work = compute.max() + loading.max(axis=1) + sending + (storing + exchange + giving)
        found: list[float] = (longest + parameters.hidden * work).tolist()
        return found

    def _input_traffic(
        self, profile: Profile, sources: Mapping[int, Source]
    ) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Add up what the inputs bring, always in their order, with a row for each wanted time.

        Returns
        -------
        tuple
            Cycles for which each memory loads, and for which it loads what other groups have just
            computed; then bytes as in :class:`.Traffic`: most given, from DRAM, between cores.
        """
        wanted = max((len(source.producers) for source in sources.values()), default=1)
        into, late = np.zeros((2, 2, wanted, max(self._rates.homes) + 1))
        numbers = np.zeros((3, wanted))
        for number in profile.reads:
            source, traffic = sources[number], self._traffic
            if not source.kept:
                loaded = traffic.from_dram(profile, number)
                found = [loaded._replace(from_dram=min(source.most_sent, loaded.from_dram))]
            else:
                found = [
                    traffic.from_cores(profile, number, one)
                    for one in source.producers
                    if one is not None
                ]
            if found:
                brought = np.array([(one.into, one.held) for one in found]).swapaxes(0, 1)
                into += brought
                if source.kept:
                    late += brought
                numbers += np.array([one[2:] for one in found]).T
        return self._loading(*into), self._loading(*late), numbers[0], numbers[1], numbers[2]

    def _loading(self, into: Floats, held: Floats) -> Floats:
        """Return the cycles that bytes take into memories, by the links there and the channels."""
        rates = self._rates
        return np.maximum(into / rates.inbound, (into / rates.each + held) / rates.channels)

    @cached
    def _costs_of(self, profile: Profile) -> tuple[Floats, Bytes]:
        """Return the cycles of each used core's tasks, and the least share of a memory.

        That is among the cores that can run its tiles. Neither depends on its producers.
        """
        return self._compute(profile), min(map(self._rates.share_of, profile.candidate.cores))

    def _compute(self, profile: Profile) -> Floats:
        """Return the cycles of each used core's tasks.

        Cores of different speeds share tiles so that all end at about the same time.
        """
        candidate, placement = profile.candidate, profile.placement
        kinds = (self._kinds[candidate.cores[position]] for position in placement.used)
        each = np.array([candidate.cycles[kind] or 1 for kind in kinds])
        if np.all(each == each[0]):
            cycles = placement.tiles_per_core * each * profile.mean_share
            return np.asarray(cycles, dtype=np.float64)
        return np.full(len(each), _fair_end(each, profile.tiles))


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
