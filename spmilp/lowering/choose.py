"""A first choice of tilings: jointly along the network, by the estimate."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from spmilp.errors import DoesNotFitError
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.candidates import CandidateMaker
from spmilp.lowering.classes import class_of
from spmilp.lowering.cost import NO_MEASUREMENTS, CostModel
from spmilp.lowering.cycle_table import CycleTable
from spmilp.lowering.estimate import Estimator
from spmilp.lowering.fit import groups_that_do_not_fit
from spmilp.lowering.inflow import Source
from spmilp.lowering.initial import whole_below
from spmilp.lowering.lower import lower
from spmilp.lowering.probe import Probe
from spmilp.lowering.profile import Profile, profile_of
from spmilp.lowering.rates import machine_rates, usable_bytes
from spmilp.lowering.residence import expected_residence
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.units import Bytes

MOST_PROFILES = 16
"""Candidates of one group that are compared with all of its producer's."""

ROUNDS = 3
GIVEN = Source(None, False)
TIGHT = 0.8
"""A working set above this part of a memory is checked against the lowered problem."""


def choose_tilings(
    network: Network, machine: Machine, *, measured: CycleTable = NO_MEASUREMENTS
) -> dict[int, Tiling]:
    """Choose a tiling for each group, by index.

    For each group the candidates are estimated (:mod:`spmilp.lowering.estimate`), and one is chosen
    for all groups together: dynamic programming along the edges to each group from what computes
    its largest operand, a forest, with the other edges as they were chosen last; a few rounds. So
    successive groups get tilings that match where that pays.

    Raises
    ------
    SpmilpError
        If no kind of core can run a group.
    DoesNotFitError
        If a group's smallest tile fits no scratchpad.
    """
    chooser = Chooser(network, machine, measured)
    while True:
        chosen = chooser.choose()
        tilings = {index: profile.candidate.tiling for index, profile in chosen.items()}
        if not any(map(chooser.is_tight, chosen.values())):
            return tilings
        problem = lower(network, machine, tilings, measured=measured)
        too_large = groups_that_do_not_fit(problem)
        if not too_large:
            return tilings
        chooser.discard(chosen, too_large)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A choice for every group, and the cycles that it is expected to take."""

    chosen: Mapping[int, Profile]
    cycles: Mapping[int, float]

    @property
    def total(self) -> float:
        """Cycles of all groups one after another."""
        return sum(self.cycles.values())


class Chooser:
    """Chooses among profiles; groups that are alike share theirs."""

    def __init__(
        self, network: Network, machine: Machine, measured: CycleTable = NO_MEASUREMENTS
    ) -> None:
        self._network = network
        self._machine = machine
        self._rates = machine_rates(machine)
        self._estimator = Estimator(machine, self._rates)
        self._residence = expected_residence(network, self._rates.aggregate)
        self._producer = {group.output: group.index for group in network.groups}
        self._classes: dict[int, Hashable] = {}
        self._profiles: dict[Hashable, list[Profile]] = {}
        self._known: dict[Hashable, float] = {}
        costs = CostModel(machine.kinds, measured)
        maker = CandidateMaker(machine, self._rates)
        for group in network.groups:
            stored = self._stored(group)
            own_name = group.name if measured else ""
            live = self._residence.live[group.index]
            kind = class_of(network, group), self._kept_inputs(group), stored > 0, live, own_name
            self._classes[group.index] = kind
            if kind not in self._profiles:
                probe = Probe(
                    network,
                    group,
                    costs,
                    alignment=self._rates.alignment,
                    whole_below=whole_below(machine),
                )
                profiles = [profile_of(probe, one) for one in maker.candidates(probe, live)]
                self._profiles[kind] = self._promising(group, profiles)

    def profiles(self, group: Group) -> list[Profile]:
        """Return the candidates of a group that are worth comparing, the most promising first."""
        return self._profiles[self._classes[group.index]]

    def class_of(self, group: Group) -> Hashable:
        """Return a value that is equal for groups that share their candidates."""
        return self._classes[group.index]

    def choose(self) -> Mapping[int, Profile]:
        """Return the best choice found."""
        current = self._estimate(self._one_after_another())
        best = current
        for _ in range(ROUNDS):
            current = self._estimate(self._along_the_forest(current.chosen))
            if current.total >= best.total:
                break
            best = current
        return best.chosen

    def estimate(self, chosen: Mapping[int, Profile]) -> Mapping[int, float]:
        """Return about how many cycles each group takes under a choice."""
        return self._estimate(chosen).cycles

    def is_tight(self, profile: Profile) -> bool:
        """Say whether a candidate's tiles come close to the size of a memory they may lie in."""
        size = profile.candidate.footprint.bytes
        cores = (self._machine.cores[core] for core in profile.candidate.cores)
        return any(size > TIGHT * usable_bytes(self._machine, core) for core in cores)

    def discard(self, chosen: Mapping[int, Profile], too_large: Mapping[str, str]) -> None:
        """Drop the candidates whose tiles are as large as those that turned out not to fit.

        Raises
        ------
        DoesNotFitError
            If a group has no candidate left.
        """
        for group in self._network.groups:
            if group.name not in too_large:
                continue
            size = chosen[group.index].candidate.footprint.bytes
            kind = self._classes[group.index]
            left = [one for one in self._profiles[kind] if one.candidate.footprint.bytes < size]
            if not left:
                raise DoesNotFitError(too_large[group.name])
            self._profiles[kind] = left

    def _promising(self, group: Group, profiles: Iterable[Profile]) -> list[Profile]:
        """Return the best candidates, and the best one for each set of axes that may be cut."""
        near = {
            n: Source(None, name in self._residence.kept) for n, name in enumerate(group.inputs)
        }
        stored, live = self._stored(group), self._residence.live[group.index]
        ranked = sorted(
            profiles,
            key=lambda one: (self._estimator.cycles(one, near, stored, live), one.candidate.tasks),
        )
        first_of = {one.candidate.split_axes: one for one in reversed(ranked)}
        best = ranked[: MOST_PROFILES // 2]
        others = [one for one in ranked if one in first_of.values() and one not in best]
        smallest = min(ranked, key=lambda one: one.candidate.footprint.bytes)
        return list(dict.fromkeys([*best, *others[: MOST_PROFILES // 2], smallest]))

    def _one_after_another(self) -> dict[int, Profile]:
        """Choose for each group in turn what is best after the choices before it."""
        chosen: dict[int, Profile] = {}
        for group in self._network.groups:
            chosen[group.index] = min(
                self.profiles(group), key=lambda one: self._cycles(group, one, chosen)
            )
        return chosen

    def _along_the_forest(self, current: Mapping[int, Profile]) -> dict[int, Profile]:
        """Choose for all groups at once, with side edges as currently chosen."""
        after: dict[int, list[float]] = {
            group.index: [0.0] * len(self.profiles(group)) for group in self._network.groups
        }
        answers: dict[int, list[int]] = {}
        for group in reversed(self._network.groups):
            mine = self.profiles(group)
            parent = self._main_producer(group)
            options = self.profiles(self._network.groups[parent]) if parent is not None else [None]
            answers[group.index] = []
            for number, option in enumerate(options):
                others = dict(current)
                if parent is not None and option is not None:
                    others[parent] = option
                totals = [
                    self._cycles(group, one, others) + rest
                    for one, rest in zip(mine, after[group.index], strict=True)
                ]
                best = min(range(len(mine)), key=totals.__getitem__)
                answers[group.index].append(best)
                if parent is not None:
                    after[parent][number] += totals[best]
        numbers: dict[int, int] = {}
        for group in self._network.groups:
            parent = self._main_producer(group)
            row = 0 if parent is None else numbers[parent]
            numbers[group.index] = answers[group.index][row]
        return {
            group.index: self.profiles(group)[numbers[group.index]]
            for group in self._network.groups
        }

    def _estimate(self, chosen: Mapping[int, Profile]) -> Estimate:
        cycles = {
            group.index: self._cycles(group, chosen[group.index], chosen)
            for group in self._network.groups
        }
        return Estimate(chosen, cycles)

    def _cycles(self, group: Group, profile: Profile, chosen: Mapping[int, Profile]) -> float:
        sources = {
            number: Source(chosen[self._producer[name]], name in self._residence.kept)
            if name in self._producer
            else GIVEN
            for number, name in enumerate(group.inputs)
        }
        key = self._classes[group.index], profile, tuple(sources.items())
        if key not in self._known:
            self._known[key] = self._estimator.cycles(
                profile, sources, self._stored(group), self._residence.live[group.index]
            )
        return self._known[key]

    def _kept_inputs(self, group: Group) -> tuple[int, ...]:
        """Return the positions of the inputs that are expected to be in scratchpads."""
        return tuple(n for n, name in enumerate(group.inputs) if name in self._residence.kept)

    def _main_producer(self, group: Group) -> int | None:
        """Return the group that computes the largest operand."""
        names = [name for name in group.inputs if name in self._producer]
        if not names:
            return None
        largest = max(names, key=lambda name: self._network.tensors[name].bytes)
        return self._producer[largest]

    def _stored(self, group: Group) -> Bytes:
        """Return the bytes of a group's output that go to DRAM."""
        name = group.output
        if name in self._network.outputs or name not in self._residence.kept:
            return self._network.tensors[name].bytes
        return 0
