"""The candidates of all groups of a network on a machine, and what choices among them cost."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy

from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import class_of
from spmilp.lowering.rates import machine_rates, usable_bytes
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.tile_selection.candidates import SLACK_PIECES, Candidate, CandidateMaker
from spmilp.tile_selection.cost_parameters import DEFAULT_PARAMETERS, CostParameters
from spmilp.tile_selection.estimate import Estimator, GroupTime, Source
from spmilp.tile_selection.group_model import GroupModel
from spmilp.tile_selection.profile import Profile, profile_of
from spmilp.tile_selection.residence import expected_residence
from spmilp.units import Bytes

MOST_PROFILES = 16
"""Candidates of one group that are compared with all of its producer's."""

TIGHT = 0.8
"""A padded working set above this part of a memory is checked against the lowered problem."""

Choice = Mapping[int, Profile]
"""A profile for each group, by the group's index."""


class CandidateSpace:
    """The candidates of every group; groups that are alike share theirs.

    Parameters
    ----------
    go_on
        Called now and then; what it raises passes on, and leaves the space as it was.

    Raises
    ------
    SpmilpError
        If no kind of core can run a group.
    DoesNotFitError
        If a group's smallest tile fits no scratchpad.
    """

    def __init__(
        self, network: Network, machine: Machine, go_on: Callable[[], None] = lambda: None
    ) -> None:
        self.network = network
        self._go_on = go_on
        self._machine = machine
        self._rates = machine_rates(machine)
        self._estimator = Estimator(machine, self._rates)
        self._residence = expected_residence(network, self._rates.aggregate)
        self._producer = {group.output: group.index for group in network.groups}
        # A number stands for each class: it is hashed a thousand times as fast.
        numbers: dict[Hashable, int] = {}
        classes = map(self._class_of, network.groups)
        self._classes = [numbers.setdefault(one, len(numbers)) for one in classes]
        self._read_from = [
            tuple(self._producer.get(name) for name in group.inputs) for group in network.groups
        ]
        self._cache: dict[tuple[Profile, tuple[Profile | None, ...]], GroupTime] = {}
        # Shared by all estimates: of each class its model, and its candidates by the room in
        # memories and the part of the cores that they are made for.
        self._models: dict[Hashable, GroupModel] = {}
        self._maker = CandidateMaker(machine, self._rates)
        self._profile_of: dict[tuple[GroupModel, Tiling], Profile] = {}
        self._candidates: dict[tuple[float, float], dict[Hashable, tuple[Profile, ...]]] = {}
        self._all_profiles = self._candidates_for(DEFAULT_PARAMETERS)
        self._profiles = self._promising_of_all()

    def profiles(self, group: Group) -> list[Profile]:
        """Return the candidates of a group that are worth comparing, the most promising first."""
        return self._profiles[self.class_of(group)]

    def class_of(self, group: Group) -> Hashable:
        """Return a value that is equal for groups that share their candidates."""
        return self._classes[group.index]

    def producers(self, group: Group) -> list[int]:
        """Return the groups that compute what a group reads, that of the largest operand first."""
        names = [name for name in group.inputs if name in self._producer]
        names.sort(key=lambda name: -self.network.tensors[name].bytes)
        return [self._producer[name] for name in names]

    def time(self, group: Group, profile: Profile, chosen: Choice) -> GroupTime:
        """Return about how long a group takes with one of its profiles, others as chosen."""
        return self.times(group, profile, chosen)[0]

    def times(
        self, group: Group, profile: Profile, chosen: Choice, parent: int | None = None
    ) -> list[GroupTime]:
        """Return about how long a group takes with one of its profiles.

        With a ``parent`` that is one time for each profile that this group may have, with the
        others as chosen.
        """
        producers = [
            None if producer is None else chosen[producer]
            for producer in self._read_from[group.index]
        ]
        if parent is None:
            keys = [(profile, tuple(producers))]
        else:
            place = self._read_from[group.index].index(parent)
            before, after = tuple(producers[:place]), tuple(producers[place + 1 :])
            options = self.profiles(self.network.groups[parent])
            keys = [(profile, (*before, option, *after)) for option in options]
        missing = [key for key in keys if key not in self._cache]
        if missing:
            self._go_on()
            self._cache.update(zip(missing, self._estimated(group, profile, missing), strict=True))
        return [self._cache[key] for key in keys]

    def _estimated(
        self,
        group: Group,
        profile: Profile,
        cases: Iterable[tuple[Profile, tuple[Profile | None, ...]]],
    ) -> list[GroupTime]:
        """Estimate a group for several choices of the producers of its inputs."""
        kept = self._residence.kept
        columns = zip(*(producers for _, producers in cases), strict=True)
        sources = {
            number: Source(column if len(set(column)) > 1 else column[:1], name in kept)
            for number, (name, column) in enumerate(zip(group.inputs, columns, strict=True))
        }
        stored, live = self._stored(group), self._residence.live[group.index]
        return self._estimator.times(profile, sources, stored, live)

    def with_parameters(self, parameters: CostParameters) -> "CandidateSpace":
        """Return the candidates for other parameters, under an estimate with these."""
        other = copy(self)
        other._estimator = self._estimator.with_parameters(parameters)
        other._cache = {}
        other._all_profiles = self._candidates_for(parameters)
        other._profiles = other._promising_of_all()
        return other

    def is_tight(self, profile: Profile) -> bool:
        """Return whether a candidate's tiles come close to the size of a memory they may lie in."""
        padding = SLACK_PIECES * self._rates.alignment
        size = profile.candidate.footprint.bytes + padding
        cores = (self._machine.cores[core] for core in profile.candidate.cores)
        return any(size > TIGHT * usable_bytes(self._machine, core) for core in cores)

    def without(self, chosen: Choice, too_large: Mapping[str, str]) -> "CandidateSpace | None":
        """Return it without the candidates whose tiles are as large as some that do not fit.

        ``None`` where a group has no candidate left.

        Parameters
        ----------
        too_large
            Why a group's tiles do not fit, by the group's name.
        """
        fewer = copy(self)
        fewer._profiles = dict(self._profiles)
        for group in self.network.groups:
            if group.name not in too_large:
                continue
            size = chosen[group.index].candidate.footprint.bytes
            profiles = fewer.profiles(group)
            left = [one for one in profiles if one.candidate.footprint.bytes < size]
            if not left:
                return None
            fewer._profiles[self.class_of(group)] = left
        return fewer

    def _class_of(self, group: Group) -> tuple[Hashable, ...]:
        kept = tuple(name in self._residence.kept for name in group.inputs)
        stored = self._stored(group) > 0
        return class_of(self.network, group), kept, stored, self._residence.live[group.index]

    def _candidates_for(self, parameters: CostParameters) -> dict[Hashable, tuple[Profile, ...]]:
        """Return all candidates of each class for the room and the part of the cores."""
        room, cores = key = parameters.room, parameters.cores
        if key not in self._candidates:
            found: dict[Hashable, tuple[Profile, ...]] = {}
            for kind, group in self._group_of_each_class():
                if kind not in self._models:
                    self._models[kind] = GroupModel(self.network, group, self._machine)
                model = self._models[kind]
                live = self._residence.live[group.index]
                candidates = self._maker.candidates(model, live, room, cores, self._go_on)
                found[kind] = tuple(self._profile(model, one) for one in candidates)
            self._candidates[key] = found
        return self._candidates[key]

    def _profile(self, model: GroupModel, candidate: Candidate) -> Profile:
        key = model, candidate.tiling
        if key not in self._profile_of:
            self._profile_of[key] = profile_of(model, candidate, self._rates.homes)
        return self._profile_of[key]

    def _group_of_each_class(self) -> Iterable[tuple[Hashable, Group]]:
        first: dict[Hashable, Group] = {}
        for group in self.network.groups:
            first.setdefault(self.class_of(group), group)
        return first.items()

    def _promising_of_all(self) -> dict[Hashable, list[Profile]]:
        return {kind: self._promising(group) for kind, group in self._group_of_each_class()}

    def _promising(self, group: Group) -> list[Profile]:
        """Return the best candidates, and the best one for each set of axes that may be cut."""
        kept = self._residence.kept
        near = {number: Source([None], name in kept) for number, name in enumerate(group.inputs)}
        stored, live = self._stored(group), self._residence.live[group.index]

        def effort(profile: Profile) -> tuple[float, int]:
            self._go_on()
            time = self._estimator.times(profile, near, stored, live)[0]
            return time.alone, profile.candidate.tasks

        ranked = sorted(self._all_profiles[self.class_of(group)], key=effort)
        first_of = {one.candidate.split_axes: one for one in reversed(ranked)}
        best = ranked[: MOST_PROFILES // 2]
        others = [one for one in ranked if one in first_of.values() and one not in best]
        smallest = min(ranked, key=lambda one: one.candidate.footprint.bytes)
        return list(dict.fromkeys([*best, *others[: MOST_PROFILES // 2], smallest]))

    def _stored(self, group: Group) -> Bytes:
        """Return the bytes of a group's output that go to DRAM."""
        name = group.output
        if name in self.network.outputs or name not in self._residence.kept:
            return self.network.tensors[name].bytes
        return 0
