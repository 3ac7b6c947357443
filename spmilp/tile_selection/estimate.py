"""Estimate of the cycles of a tiled group, given how its producers were tiled."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from spmilp.lowering.rates import MachineRates
from spmilp.machine.machine import Machine
from spmilp.tile_selection.candidates import Profile
from spmilp.tile_selection.operand_traffic import Floats, Ints, OperandTraffic
from spmilp.units import Bytes

HIDDEN = 0.1
"""Default weight of what is hidden behind something longer: it competes for channels and links, and
is rarely hidden in full."""

OCCUPANCY = 0.5
"""Where half of a working set and of what comes in for the next task is more than this part of what
live tensors leave of a core's memory, there is no space for both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostParameters:
    """Guesses about what tilings do not tell, such as when a transfer finds its link busy.

    Parameters
    ----------
    hidden
        Weight of what is expected to be hidden behind something longer.
    occupancy
        Tasks and transfers are taken to alternate where half of a working set and of what comes in
        for the next task occupies more than this part of a core's memory.
    dram, exchange
        How many times as long as its rate says it takes DRAM to send, and the links between
        scratchpads to pass on.
    prefetch
        The part of the free memory that DRAM fills ahead of its use.
    setups
        How many set-ups of a transfer from DRAM a core waits for at each of its tasks.
    room
        The part of a core's memory that a working set may take: what smaller tiles leave free lets
        later operands come early.
    cores
        The part of the cores that groups have tiles for whose tasks would be short if each core had
        one: of fewer and longer tasks, less is to be launched and fewer transfers are to be set up.
    """

    hidden: float = HIDDEN
    occupancy: float = OCCUPANCY
    dram: float = 1.0
    exchange: float = 1.0
    prefetch: float = 1.0
    setups: float = 0.0
    room: float = 1.0
    cores: float = 1.0

    def nearby(self) -> Iterator["CostParameters"]:
        """Yield those that differ by one step of one parameter."""
        for name, values in STEPS.items():
            place = values.index(getattr(self, name))
            for step in (place + 1, place - 1):
                if 0 <= step < len(values):
                    yield replace(self, **{name: values[step]})


STEPS = {
    "hidden": (0.03, HIDDEN, 0.3, 1.0),
    "occupancy": (0.25, 0.33, OCCUPANCY, 1.0),
    "dram": (0.5, 1.0, 2.0),
    "exchange": (1.0, 2.0, 4.0),
    "prefetch": (0.0, 0.3, 1.0),
    "setups": (0.0, 0.5, 2.0),
    "room": (0.2, 0.4, 1.0),
}
"""The values that each parameter may have, in order."""

DEFAULT_PARAMETERS = CostParameters()

ALTERNATIVES = (
    CostParameters(hidden=0.3, occupancy=0.33),
    CostParameters(room=0.2),
    CostParameters(hidden=0.3, occupancy=0.33, room=0.2),
    CostParameters(hidden=0.3, occupancy=0.33, cores=0.25),
    CostParameters(room=0.2, cores=0.25),
    CostParameters(hidden=0.3, exchange=2.0),
    CostParameters(room=0.4),
    CostParameters(dram=0.5),
    CostParameters(prefetch=0.3),
    CostParameters(setups=2.0),
    CostParameters(hidden=0.3),
    CostParameters(hidden=1.0),
    CostParameters(hidden=0.03),
    CostParameters(occupancy=0.33),
)
"""Different enough from the default, and from each other, to begin with."""


OVERFULL = 2.0
"""Factor by which tasks and transfers take longer where tensors must be moved out first."""


@dataclass(frozen=True, slots=True)
class GroupTime:
    """Estimate of how long a group keeps the machine busy, in cycles.

    Parameters
    ----------
    chip
        Cores, their memories' ports and the links between them: whichever is busy longest.
    last
        Of ``chip``, from the arrival of the last operand on: one task of each core.
    dram
        DRAM, sending what the group loads.
    prefetch
        DRAM may send this long before the group before has ended: what free scratchpads hold.
    work
        All of these together, as if nothing was hidden behind anything; weighed as
        :class:`CostParameters` says.
    """

    chip: float
    last: float
    dram: float
    prefetch: float
    work: float

    @property
    def alone(self) -> float:
        """Cycles of the group alone, with a little for what is hidden, to break ties."""
        return max(self.chip, self.dram) + HIDDEN * self.work


class GroupSequence:
    """Groups one after another, DRAM working ahead of them.

    A flow shop of two machines with a limited buffer between them.
    """

    def __init__(self, times: Iterable[GroupTime]) -> None:
        self._times = list(times)
        self._before: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)]
        self._go_on_from(0)

    @property
    def cycles(self) -> float:
        """Estimated cycles of all of them."""
        chip, _, work = self._before[-1]
        return chip + HIDDEN * work

    def with_changes(self, changed: Mapping[int, GroupTime]) -> float:
        """Return about how many cycles they take if some of them took another time."""
        first = min(changed)
        chip, dram, work = self._before[first]
        times = self._times
        for number in range(first, len(times)):
            group = changed.get(number) or times[number]
            dram = max(dram, chip - group.prefetch) + group.dram
            chip = max(chip + group.chip, dram + group.last)
            work += group.work
        return chip + HIDDEN * work

    def change(self, changed: Mapping[int, GroupTime]) -> None:
        """Let some of them take another time."""
        for number, time in changed.items():
            self._times[number] = time
        self._go_on_from(min(changed))

    def _go_on_from(self, first: int) -> None:
        del self._before[first + 1 :]
        chip, dram, work = self._before[first]
        for group in self._times[first:]:
            dram = max(dram, chip - group.prefetch) + group.dram
            chip = max(chip + group.chip, dram + group.last)
            work += group.work
            self._before.append((chip, dram, work))


@dataclass(frozen=True, slots=True)
class _ProfileCosts:
    """Costs of a profile that do not depend on its producers.

    Parameters
    ----------
    compute
        Cycles of each used core's tasks.
    longest
        The most of these.
    most_tasks
        The most tasks of a core.
    least_share
        The least share of a memory among the cores that can run its tiles, in bytes.
    """

    compute: Floats
    longest: float
    most_tasks: float
    least_share: Bytes


@dataclass(frozen=True, slots=True)
class Source:
    """The source of an operand.

    Parameters
    ----------
    producers
        The profile of the group that computes it, or several of which it may be any; ``None`` for a
        network input or a constant, and where the producer is not known: what is kept is then taken
        to lie where it is needed.
    kept
        It is expected to be in scratchpads still; otherwise it comes from DRAM.
    """

    producers: Sequence[Profile | None]
    kept: bool


class _InputTraffic(NamedTuple):
    """Sums over the inputs of a group, with a row for each time that is wanted.

    Parameters
    ----------
    into, late
        Bytes by memory, and those of operands that other groups have just computed.
    most_given, from_dram, between_cores
        As in :class:`.Traffic`.
    """

    into: Floats
    late: Floats
    most_given: Floats
    from_dram: Floats
    between_cores: Floats


class Estimator:
    """Estimates groups on one machine; for choosing among tilings, not a bound."""

    def __init__(self, machine: Machine, rates: MachineRates) -> None:
        self._parameters = DEFAULT_PARAMETERS
        self._rates = rates
        self._traffic = OperandTraffic(rates)
        self._kinds = [core.kind for core in machine.cores]
        self._memories = max(rates.homes) + 1
        self._cache: dict[Profile, _ProfileCosts] = {}

    def with_parameters(self, parameters: CostParameters) -> "Estimator":
        """Return one with other parameters that shares what this one knows."""
        other = copy(self)
        other._parameters = parameters
        return other

    def times(
        self,
        profile: Profile,
        sources: Mapping[int, Source],
        stored: Bytes,
        live: Bytes,
    ) -> list[GroupTime]:
        """Return about how long a group takes, for one producer of an input or for several.

        Where what comes for the next task does not fit beside a working set into what live tensors
        leave of a core's memory, its tasks and its transfers alternate; where not even the working
        set fits, tensors must be moved out first, and cores wait for each other.

        Parameters
        ----------
        sources
            Where each input comes from, by position; together there is one time for each of the
            producers that one of the inputs may have.
        stored
            Bytes of its output that go to DRAM.
        live
            Bytes that lie in scratchpads while it runs.
        """
        rates, parameters = self._rates, self._parameters
        fixed, placement = self._costs_of(profile), profile.placement
        footprint = profile.candidate.footprint
        used, size = len(placement.used), footprint.bytes
        left = 1 - min(0.9, live / rates.aggregate)
        occupancy = size / (left * fixed.least_share)
        with_next = footprint.with_next / (left * fixed.least_share)
        traffic = self._input_traffic(profile, sources)
        to_dram = stored + profile.tiles * rates.dram_setup if stored else 0.0
        from_dram = traffic.from_dram
        if occupancy > 1:
            moved = (occupancy - 1) * size * used
            from_dram = from_dram + moved
            to_dram += moved
        loading = traffic.into[:, placement.homes] / rates.inbound
        if with_next <= 2 * parameters.occupancy:
            tasks = placement.tiles_per_core * profile.parts
            waiting = traffic.late[:, placement.homes] / rates.inbound / tasks
            busy = np.maximum(fixed.compute + waiting, loading)
        else:
            busy = (fixed.compute + loading) * (1 if occupancy <= 1 else OVERFULL)
        sent = from_dram / rates.dram_out * parameters.dram
        storing = to_dram / rates.dram_in
        between = traffic.between_cores * parameters.exchange
        exchange = between / rates.on_chip if rates.on_chip > 0 else np.zeros_like(between)
        giving = traffic.most_given / rates.outbound
        chip = np.maximum(np.maximum(busy.max(axis=1), storing), np.maximum(exchange, giving))
        chip = chip + rates.start * (1 + parameters.setups * fixed.most_tasks)
        last = chip / fixed.most_tasks
        work = fixed.longest + loading.max(axis=1) + sent + (storing + exchange + giving)
        work = work * (parameters.hidden / HIDDEN)
        free = max(0.0, rates.aggregate - live - size * used)
        prefetch = free / rates.dram_out * parameters.prefetch
        return [
            GroupTime(chip=chip, last=last, dram=dram, prefetch=prefetch, work=work)
            for chip, last, dram, work in np.stack([chip, last, sent, work], axis=1).tolist()
        ]

    def _input_traffic(self, profile: Profile, sources: Mapping[int, Source]) -> _InputTraffic:
        """Add up what the inputs bring, always in their order."""
        wanted = max((len(source.producers) for source in sources.values()), default=1)
        into, late = np.zeros((2, wanted, self._memories))
        numbers = np.zeros((wanted, 3))
        for number in profile.reads:
            source = sources[number]
            known = [producer for producer in source.producers if producer is not None]
            if not source.kept:
                found = [self._traffic.from_dram(profile, number, one) for one in source.producers]
            elif known:
                found = self._traffic.from_cores(profile, number, known)
            else:
                continue
            brought = np.array([one.into for one in found])
            into += brought
            if source.kept:
                late += brought
            numbers += [one[1:] for one in found]
        return _InputTraffic(into, late, *numbers.T)

    def _costs_of(self, profile: Profile) -> _ProfileCosts:
        if profile not in self._cache:
            compute = self._compute(profile)
            self._cache[profile] = _ProfileCosts(
                compute=compute,
                longest=float(compute.max()),
                most_tasks=float(profile.placement.tiles_per_core.max() * profile.parts),
                least_share=min(map(self._rates.share_of, profile.candidate.cores)),
            )
        return self._cache[profile]

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
