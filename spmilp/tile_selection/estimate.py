"""About how many cycles a tiled group takes, given how its producers were tiled."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from spmilp.lowering.rates import MachineRates
from spmilp.machine.machine import Machine
from spmilp.tile_selection.operand_traffic import Inflow, Inflows
from spmilp.tile_selection.parameters import HIDDEN, USUAL, Leaning
from spmilp.tile_selection.placement import Ints
from spmilp.tile_selection.profile import Floats, Profile
from spmilp.units import Bytes

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
        All of these together, whatever hides behind whatever; weighed as :class:`Leaning` says.
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


class Succession:
    """Groups one after another, DRAM working ahead of them.

    A flow shop of two machines with limited room between them.
    """

    def __init__(self, times: Iterable[GroupTime]) -> None:
        self._times = list(times)
        self._before: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)]
        self._go_on_from(0)

    @property
    def cycles(self) -> float:
        """About how many cycles all of them take."""
        chip, _, work = self._before[-1]
        return chip + HIDDEN * work

    def with_changes(self, changed: Mapping[int, GroupTime]) -> float:
        """Return about how many cycles they take if some of them took another time."""
        first = min(changed)
        chip, dram, work = self._before[first]
        times = self._times
        for number in range(first, len(times)):
            group = changed.get(number) or times[number]
            dram = max(dram, chip - group.ahead) + group.dram
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
            dram = max(dram, chip - group.ahead) + group.dram
            chip = max(chip + group.chip, dram + group.last)
            work += group.work
            self._before.append((chip, dram, work))


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What a profile always takes.

    Parameters
    ----------
    compute
        Cycles of each used core's tasks.
    longest
        The most of these.
    most_tiles
        The most tiles of a core.
    least_share
        The least share of a memory among the cores that can run its tiles, in bytes.
    """

    compute: Floats
    longest: float
    most_tiles: float
    least_share: Bytes


@dataclass(frozen=True, slots=True)
class Source:
    """Where an operand comes from.

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


class Estimator:
    """Estimates groups on one machine; for choosing among tilings, not a bound."""

    def __init__(self, machine: Machine, rates: MachineRates) -> None:
        self._leaning = USUAL
        self._rates = rates
        self._inflows = Inflows(rates)
        self._kinds = [core.kind for core in machine.cores]
        self._memories = max(rates.homes) + 1
        self._known: dict[Profile, _Fixed] = {}

    def leaning(self, leaning: Leaning) -> "Estimator":
        """Return one that leans another way and shares what this one knows."""
        other = copy(self)
        other._leaning = leaning
        return other

    def times(
        self,
        profile: Profile,
        sources: Mapping[int, Source],
        stored: Bytes,
        live: Bytes,
    ) -> list[GroupTime]:
        """Return about how long a group takes, for one producer of an input or for several.

        Where two working sets do not fit what live tensors leave of a core's memory, its tasks and
        its transfers take turns; where not even one fits, tensors must make room, and cores wait
        for each other.

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
        rates, leaning = self._rates, self._leaning
        fixed, placement = self._fixed(profile), profile.placement
        used, size = len(placement.used), profile.candidate.footprint.bytes
        left = 1 - min(0.9, live / rates.aggregate)
        crowding = size / (left * fixed.least_share)
        flow = self._flow(profile, sources)
        to_dram = stored + profile.tiles * rates.far if stored else 0.0
        from_dram = flow.far
        if crowding > 1:
            moved = (crowding - 1) * size * used
            from_dram = from_dram + moved
            to_dram += moved
        loading = flow.into[:, placement.homes] / rates.inbound
        if crowding <= leaning.crowded:
            waiting = flow.late[:, placement.homes] / rates.inbound / placement.tiles_per_core
            busy = np.maximum(fixed.compute + waiting, loading)
        else:
            busy = (fixed.compute + loading) * (1 if crowding <= 1 else WAITING)
        sent = from_dram / rates.dram_out * leaning.dram
        storing = to_dram / rates.dram_in
        exchange = flow.near / rates.on_chip if rates.on_chip > 0 else np.zeros_like(flow.near)
        exchange = exchange * leaning.exchange
        giving = flow.out / rates.outbound
        chip = np.maximum(np.maximum(busy.max(axis=1), storing), np.maximum(exchange, giving))
        chip = chip + rates.start * (1 + leaning.wait * fixed.most_tiles)
        last = chip / fixed.most_tiles
        work = fixed.longest + loading.max(axis=1) + sent + (storing + exchange + giving)
        work = work * (leaning.hidden / HIDDEN)
        free = max(0.0, rates.aggregate - live - size * used)
        ahead = free / rates.dram_out * leaning.ahead
        return [
            GroupTime(chip=chip, last=last, dram=dram, ahead=ahead, work=work)
            for chip, last, dram, work in np.stack([chip, last, sent, work], axis=1).tolist()
        ]

    def _flow(self, profile: Profile, sources: Mapping[int, Source]) -> "_Flow":
        """Add up what the inputs bring, always in their order."""
        wanted = max((len(source.producers) for source in sources.values()), default=1)
        flow = _Flow(
            into=np.zeros((wanted, self._memories)),
            late=np.zeros((wanted, self._memories)),
            numbers=np.zeros((wanted, 3)),
        )
        for number in profile.reads:
            source = sources[number]
            known = [producer for producer in source.producers if producer is not None]
            if not source.kept:
                inflows = [
                    self._inflows.from_dram(profile, number, producer)
                    for producer in source.producers
                ]
                flow.add(inflows, is_late=False)
            elif known:
                inflows = self._inflows.from_cores(profile, number, known)
                flow.add(inflows, is_late=True)
        return flow

    def _fixed(self, profile: Profile) -> _Fixed:
        if profile not in self._known:
            compute = self._compute(profile)
            self._known[profile] = _Fixed(
                compute=compute,
                longest=float(compute.max()),
                most_tiles=float(profile.placement.tiles_per_core.max()),
                least_share=min(map(self._rates.share_of, profile.candidate.cores)),
            )
        return self._known[profile]

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


@dataclass(frozen=True, slots=True)
class _Flow:
    """What the inputs of a group bring, added up: a row for each time that is wanted.

    Parameters
    ----------
    into, late
        Bytes by memory, and those of operands that other groups have just computed.
    numbers
        The other numbers of :class:`Inflow`.
    """

    into: Floats
    late: Floats
    numbers: Floats

    def add(self, inflows: Sequence[Inflow], *, is_late: bool) -> None:
        """Add one input: one inflow for all, or one for each."""
        into = np.array([one.into for one in inflows])
        np.add(self.into, into, out=self.into)
        if is_late:
            np.add(self.late, into, out=self.late)
        np.add(self.numbers, [one[1:] for one in inflows], out=self.numbers)

    @property
    def out(self) -> Floats:
        """Bytes that the memory that gives most gives."""
        return self.numbers[:, 0]

    @property
    def far(self) -> Floats:
        """Bytes from DRAM."""
        return self.numbers[:, 1]

    @property
    def near(self) -> Floats:
        """Bytes between the cores' memories."""
        return self.numbers[:, 2]


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
