"""A first choice of tilings: jointly along the network, by the estimate."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace

from spmilp.errors import DoesNotFitError, PinError
from spmilp.formats import collector_paused
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import class_of
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.lower import TiledGroups, lower
from spmilp.lowering.rates import machine_rates, usable_bytes
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile
from spmilp.problem.objective import DEFAULT_OBJECTIVE, Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.tile_selection.candidates import (
    SLACK_PIECES,
    Candidate,
    CandidateMaker,
    Profile,
    profile_of,
)
from spmilp.tile_selection.coarse import tilings_that_fit
from spmilp.tile_selection.estimate import (
    DEFAULT_PARAMETERS,
    CostParameters,
    Estimator,
    GroupSequence,
    GroupTime,
    Source,
)
from spmilp.tile_selection.group_model import GroupModel
from spmilp.tile_selection.residence import expected_residence
from spmilp.tile_selection.waves import in_waves, parts_of_batch, waves_of_groups
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


ROUNDS = 3
MOST_STEPS = 1 << 21
"""Group times that one pass of the descent adds up at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NetworkOnMachine:
    """A network, the machine for which it is tiled, and what its problems are to say.

    Parameters
    ----------
    go_on
        Called now and then while candidates are compared and problems made; what it raises ends
        that.
    pinned
        Tilings of some groups, by index, that hold whatever is chosen.
    tiled
        Groups that were cut before; none at first.
    """

    network: Network
    machine: Machine
    objective: Objective = DEFAULT_OBJECTIVE
    sources: tuple[tuple[str, str], ...] = ()
    go_on: Callable[[], None] = lambda: None
    pinned: Tilings = field(default_factory=dict)
    tiled: TiledGroups | None = None

    def __post_init__(self) -> None:
        if self.tiled is None:
            object.__setattr__(self, "tiled", TiledGroups(self.network))

    @classmethod
    def of(
        cls,
        network: Network,
        target: MachineFile,
        objective: Quantity = Quantity.MAKESPAN,
        pinned: Tilings | None = None,
    ) -> "NetworkOnMachine":
        """Return a network on the machine of a file; problems carry the hashes of all files."""
        kinds = target.machine.kinds
        learned = {kind.measured.sha256 for kind in kinds if kind.measured is not None}
        return cls(
            network=network,
            machine=target.machine,
            objective=Objective.of(objective),
            sources=(
                ("model", network.sha256),
                ("machine", target.sha256),
                *(("cost model", sha256) for sha256 in sorted(learned)),
                *network.passes.sources,
            ),
            pinned=pinned or {},
        )

    def lower(self, tilings: Tilings) -> Problem:
        """Return the problem of some tilings, with the pinned ones in their places."""
        return lower(
            self.network,
            self.machine,
            tilings | self.pinned,
            objective=self.objective,
            sources=self.sources,
            go_on=self.go_on,
            tiled=self.tiled,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstChoice:
    """Tilings, and what they were chosen from.

    Parameters
    ----------
    spaces
        The candidates by the number of waves in which groups compute.
    problem
        What the tilings make, where it had to be known to see that all tiles fit.
    """

    subject: NetworkOnMachine
    spaces: Mapping[int, CandidateSpace]
    tilings: Tilings
    problem: Problem | None

    def lower(self, tilings: Tilings) -> Problem:
        """Return the problem of some tilings, at once where it is that of the chosen ones."""
        if self.problem is not None and tilings == self.tilings:
            return self.problem
        return self.subject.lower(tilings)

    def with_parameters(self, parameters: CostParameters) -> "FirstChoice | None":
        """Return what another estimate chooses; ``None`` where that does not fit."""
        spaces = self.spaces.items()
        return self._among({number: one.with_parameters(parameters) for number, one in spaces})

    def in_equal_waves(self) -> Iterator["FirstChoice"]:
        """Yield choices in which all groups compute in equally many waves."""
        if len(self.spaces) > 1:
            for number, space in self.spaces.items():
                choice = self._among({number: space})
                if choice is not None:
                    yield replace(choice, spaces=self.spaces)

    def _among(self, spaces: Mapping[int, CandidateSpace]) -> "FirstChoice | None":
        try:
            return _choice_among(self.subject, spaces)
        except DoesNotFitError:
            return None


def choose_tilings(network: Network, machine: Machine) -> Tilings:
    """Choose a tiling for each group, by index; see :func:`first_choice`."""
    return first_choice(network, machine).tilings


def first_choice(network: Network, machine: Machine) -> FirstChoice:
    """Choose a tiling for each group; see :func:`first_choice_of`."""
    return first_choice_of(NetworkOnMachine(network=network, machine=machine))


@collector_paused()
def first_choice_of(subject: NetworkOnMachine) -> FirstChoice:
    """Choose a tiling for each group.

    For each group the candidates are estimated (:mod:`spmilp.tile_selection.estimate`), and one is
    chosen for all groups together. First by dynamic programming along the edges to each group from
    what computes its largest operand, a forest, with the other edges as they were chosen last, so
    that successive groups get tilings that match where that pays; this takes groups to run one
    after another. Then by descent, group by group, on the time of all groups with DRAM working
    ahead.

    Of a batch that is too large for the scratchpads, parts are considered as well, and groups may
    compute in waves (:mod:`spmilp.tile_selection.waves`).

    Raises
    ------
    SpmilpError
        If no kind of core can run a group.
    PinError
        If pinned tiles fit no scratchpad.
    DoesNotFitError
        If a group's smallest tile fits no scratchpad, or no tiles are found that do.
    """
    machine = subject.machine
    parts = parts_of_batch(subject.network, machine_rates(machine))
    spaces = {n: CandidateSpace(part, machine, subject.go_on) for n, part in parts.items()}
    return _choice_among(subject, spaces)


def _choice_among(subject: NetworkOnMachine, spaces: Mapping[int, CandidateSpace]) -> FirstChoice:
    """Choose from candidates, by the number of waves, until all tiles of the problem fit.

    Where a group has none left that fits, what was chosen first is cut anew.
    """
    network, rates = subject.network, machine_rates(subject.machine)
    left = dict(spaces)
    best: Tilings = {}
    while True:
        chosen = {number: choose(space) for number, space in left.items()}
        times = {
            number: [time.alone for time in group_times(space, chosen[number])]
            for number, space in left.items()
        }
        waves = waves_of_groups(network, rates, times)
        tilings = {
            group.index: in_waves(chosen[number][group.index].candidate.tiling, number)
            for group, number in zip(network.groups, waves, strict=True)
        } | subject.pinned
        problem: Problem | None = None
        too_large: Mapping[str, str] = {}
        tight = any(left[n].is_tight(chosen[n][index]) for index, n in enumerate(waves))
        if tight or subject.pinned:
            problem = subject.lower(tilings)
            too_large = groups_that_do_not_fit(problem)
            _refuse_pinned(subject, too_large)
        if not too_large:
            return FirstChoice(subject=subject, spaces=spaces, tilings=tilings, problem=problem)
        best = best or tilings
        for number, space in left.items():
            here = {group.name for group in network.groups if waves[group.index] == number}
            some = {name: reason for name, reason in too_large.items() if name in here}
            fewer = space.without(chosen[number], some)
            if fewer is None:
                starts = (best, tilings)
                tilings, problem = tilings_that_fit(
                    network,
                    subject.machine,
                    starts,
                    subject.lower,
                    fixed=subject.pinned,
                    go_on=subject.go_on,
                )
                return FirstChoice(subject=subject, spaces=spaces, tilings=tilings, problem=problem)
            left[number] = fewer


def _refuse_pinned(subject: NetworkOnMachine, too_large: Mapping[str, str]) -> None:
    for index, tiling in subject.pinned.items():
        name = subject.network.groups[index].name
        if name in too_large:
            raise PinError(f"pins: tiles {tiling.describe()} of group {name}: {too_large[name]}")


def choose(space: CandidateSpace) -> Choice:
    """Return the best choice found among the candidates."""
    best = _greedy(space)
    for _ in range(ROUNDS):
        found = _dynamic_programming(space, best)
        if _alone(space, found) >= _alone(space, best):
            break
        best = found
    return _descent(space, best)


def group_times(space: CandidateSpace, chosen: Choice) -> list[GroupTime]:
    """Return about how long each group takes under a choice."""
    return [space.time(g, chosen[g.index], chosen) for g in space.network.groups]


def _alone(space: CandidateSpace, chosen: Choice) -> float:
    return sum(time.alone for time in group_times(space, chosen))


def _greedy(space: CandidateSpace) -> Choice:
    """Choose for each group in turn what is best after the choices before it."""
    chosen: dict[int, Profile] = {}
    for group in space.network.groups:
        times = [(space.time(group, p, chosen).alone, p) for p in space.profiles(group)]
        chosen[group.index] = min(times, key=lambda pair: pair[0])[1]
    return chosen


def _dynamic_programming(space: CandidateSpace, current: Choice) -> Choice:
    """Choose for all groups at once, with side edges as currently chosen."""
    groups = space.network.groups
    parents = [next(iter(space.producers(group)), None) for group in groups]
    after = {group.index: [0.0] * len(space.profiles(group)) for group in groups}
    answers: dict[int, list[int]] = {}
    for group in reversed(groups):
        parent = parents[group.index]
        totals = [
            [time.alone + rest for time in space.times(group, one, current, parent)]
            for one, rest in zip(space.profiles(group), after[group.index], strict=True)
        ]
        answers[group.index] = []
        for number, of_option in enumerate(zip(*totals, strict=True)):
            best = min(range(len(of_option)), key=of_option.__getitem__)
            answers[group.index].append(best)
            if parent is not None:
                after[parent][number] += of_option[best]
    numbers: list[int] = []
    for group in groups:
        parent = parents[group.index]
        numbers.append(answers[group.index][0 if parent is None else numbers[parent]])
    return {g.index: space.profiles(g)[numbers[g.index]] for g in groups}


def _descent(space: CandidateSpace, chosen: Choice) -> Choice:
    """Change one group after another where that shortens the time of all."""
    groups = space.network.groups
    readers = _readers(space)
    best = dict(chosen)
    all_groups = GroupSequence(group_times(space, best))
    passes = max(1, min(ROUNDS, MOST_STEPS // (16 * len(groups) ** 2 + 1)))
    for _ in range(passes):
        before = all_groups.cycles
        for group in groups:
            for reader in readers[group.index]:
                # All that will be asked of it, together, which is quicker.
                space.times(reader, best[reader.index], best, group.index)
            for profile in space.profiles(group):
                kept = best[group.index]
                best[group.index] = profile
                changed = {
                    g.index: space.time(g, best[g.index], best)
                    for g in (group, *readers[group.index])
                }
                if all_groups.with_changes(changed) < all_groups.cycles:
                    all_groups.change(changed)
                else:
                    best[group.index] = kept
        if all_groups.cycles >= before:
            break
    return best


def _readers(space: CandidateSpace) -> Mapping[int, list[Group]]:
    """Return the groups that read what each group computes."""
    readers: dict[int, list[Group]] = {group.index: [] for group in space.network.groups}
    for group in space.network.groups:
        for producer in dict.fromkeys(space.producers(group)):
            readers[producer].append(group)
    return readers
