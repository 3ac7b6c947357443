"""A first choice of tilings: jointly along the network, by the estimate."""

from collections.abc import Callable, Hashable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from math import inf

from spmilp.errors import DoesNotFitError, PinnedTilesError
from spmilp.formats import collector_paused
from spmilp.frontend.graph import Group, Network
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.lower import lower
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.machine.machine import Machine
from spmilp.machine.read import MachineFile
from spmilp.problem.objective import DEFAULT_OBJECTIVE, Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.schedule.kernels.records import numbered
from spmilp.tile_selection.candidates import Candidate, CandidateMaker, Profile
from spmilp.tile_selection.coarse import tilings_that_fit
from spmilp.tile_selection.estimate import DEFAULT_PARAMETERS, CostParameters, Estimator, Source
from spmilp.tile_selection.group_model import GroupModel, GroupModels
from spmilp.tile_selection.residence import expected_residence
from spmilp.units import Bytes

MOST_PROFILES = 16
"""Candidates of one group that are compared with all of its producer's."""

ROUNDS = 3
"""Most rounds of dynamic programming; each uses the side edges of the one before."""

Choice = Mapping[int, Profile]
"""A profile for each group, by the group's index."""


class CandidateSpace:
    """The candidates of every group, and how long groups take with them.

    Groups share their candidates that are alike, and have as much beside them in scratchpads.

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
        # Where data stops on the way to DRAM, results are taken to leave the scratchpads.
        staging = self._rates.staging
        self._residence = expected_residence(network, 0 if staging else self._rates.aggregate)
        self._staged = expected_residence(network, staging).kept
        self.models = GroupModels(network, machine)
        self._computed = {group.output for group in network.groups}
        self._classes: list[int] = numbered(map(self._class_of, network.groups)).tolist()
        # What all estimates share: candidates by the room and the part of cores they are made for.
        self._maker = CandidateMaker(machine, self._rates)
        self._profile_of: dict[tuple[GroupModel, Tiling], Profile] = {}
        self._candidates: dict[tuple[float, float, int], list[Profile]] = {}
        self._use(DEFAULT_PARAMETERS)

    def with_parameters(self, parameters: CostParameters) -> "CandidateSpace":
        """Return the candidates for other parameters, under an estimate with these."""
        other = copy(self)
        other._estimator = self._estimator.with_parameters(parameters)
        other._use(parameters)
        return other

    def going_on(self, go_on: Callable[[], None]) -> "CandidateSpace":
        """Return the same candidates; while others are compared something else is called."""
        other = copy(self)
        other._go_on = go_on
        return other

    def _use(self, parameters: CostParameters) -> None:
        self._known: dict[tuple[Profile, tuple[Profile | None, ...]], float] = {}
        self._profiles: dict[int, list[Profile]] = {}
        for group in self.network.groups:
            if self.class_of(group) not in self._profiles:
                self._profiles[self.class_of(group)] = self._promising(group, parameters)

    def class_of(self, group: Group) -> int:
        """Return a number that is equal for groups that share their candidates."""
        return self._classes[group.index]

    def profiles(self, group: Group) -> list[Profile]:
        """Return the candidates of a group that are worth comparing, the most promising first."""
        return self._profiles[self.class_of(group)]

    def main_producer(self, group: Group) -> int | None:
        """Return the group that computes the largest operand of a group, if one does."""
        computed = zip(group.inputs, self.models.producers[group.index], strict=True)
        able = [
            (self.network.tensors[name].bytes, one) for name, one in computed if one is not None
        ]
        return max(able, key=lambda pair: pair[0])[1] if able else None

    def cycles(self, group: Group, profile: Profile, chosen: Choice) -> float:
        """Return about how many cycles a group takes with one of its profiles, others as chosen."""
        return self.cycles_by(group, profile, chosen, None)[0]

    def cycles_by(
        self, group: Group, profile: Profile, chosen: Choice, parent: int | None
    ) -> list[float]:
        """Return about how many cycles a group takes with one of its profiles.

        With a ``parent`` that is one number for each profile that this group may have, with the
        others as chosen.
        """
        producers = self.models.producers[group.index]
        known = tuple(None if one is None else chosen[one] for one in producers)
        cases = [known]
        if parent is not None:
            place = producers.index(parent)
            options = self.profiles(self.network.groups[parent])
            cases = [(*known[:place], option, *known[place + 1 :]) for option in options]
        missing = [case for case in cases if (profile, case) not in self._known]
        if missing:
            self._go_on()
            columns = [list(dict.fromkeys(column)) for column in zip(*missing, strict=True)]
            found = self._estimated(group, profile, columns)
            for case, cycles in zip(missing, found, strict=True):
                self._known[profile, case] = cycles
        return [self._known[profile, case] for case in cases]

    def _estimated(
        self, group: Group, profile: Profile, producers: list[list[Profile | None]]
    ) -> list[float]:
        """Estimate a group for the producers of each input, several of one of them."""
        kept = self._residence.kept
        sources = {
            number: Source(column, name in kept, self._most_sent(name))
            for number, (name, column) in enumerate(zip(group.inputs, producers, strict=True))
        }
        live = self._residence.live[group.index]
        return self._estimator.cycles(profile, sources, self._stored(group), live)

    def _class_of(self, group: Group) -> Hashable:
        kept = tuple((name in self._residence.kept, self._most_sent(name)) for name in group.inputs)
        live, stored = self._residence.live[group.index], self._stored(group) > 0
        return self.models.classes[group.index], kept, stored, live

    def _promising(self, group: Group, parameters: CostParameters) -> list[Profile]:
        """Return the best candidates, and the best one for each set of axes that may be cut."""
        unknown: list[list[Profile | None]] = [[None] for _ in group.inputs]

        def effort(profile: Profile) -> tuple[float, int]:
            self._go_on()
            return self._estimated(group, profile, unknown)[0], profile.candidate.tasks

        ranked = sorted(self._all_candidates(group, parameters), key=effort)
        first_of = {one.candidate.split_axes: one for one in reversed(ranked)}
        best = ranked[: MOST_PROFILES // 2]
        others = [one for one in ranked if one in first_of.values() and one not in best]
        smallest = min(ranked, key=lambda one: one.candidate.footprint.bytes)
        return list(dict.fromkeys([*best, *others[: MOST_PROFILES // 2], smallest]))

    def _all_candidates(self, group: Group, parameters: CostParameters) -> list[Profile]:
        room, cores, model = parameters.room, parameters.cores, self.models.model(group)
        key = room, cores, self.class_of(group)
        if key not in self._candidates:
            live = self._residence.live[group.index]
            found = self._maker.candidates(model, live, room, cores, self._go_on)
            self._candidates[key] = [self._profile(model, one) for one in found]
        return self._candidates[key]

    def profiles_of(self, tilings: Tilings) -> Choice:
        """Return the profile of each group under some tilings."""
        models = [(one.index, self.models.model(one)) for one in self.network.groups]
        return {
            index: self._profile(model, self._maker.candidate(model, tilings[index]))
            for index, model in models
        }

    def _profile(self, model: GroupModel, candidate: Candidate) -> Profile:
        key = model, candidate.tiling
        if key not in self._profile_of:
            self._profile_of[key] = Profile.of(model, candidate, self._rates.homes)
        return self._profile_of[key]

    def _stored(self, group: Group) -> Bytes:
        """Return the bytes of a group's output that go to DRAM."""
        name = group.output
        is_kept = name in self._residence.kept or name in self._staged
        if is_kept and name not in self.network.outputs:
            return 0
        return self.network.tensors[name].bytes

    def _most_sent(self, name: str) -> float:
        """Return the bytes of a tensor that DRAM sends at most to one group."""
        if name in self._staged:
            return 0.0
        is_given = name not in self._computed
        return self.network.tensors[name].bytes if is_given and self._rates.staging else inf


def choose(space: CandidateSpace) -> Choice:
    """Return the best choice found among the candidates."""
    best: dict[int, Profile] = {}
    for group in space.network.groups:
        # What is best after the choices before it.
        cycles = [space.cycles(group, one, best) for one in space.profiles(group)]
        best[group.index] = space.profiles(group)[cycles.index(min(cycles))]
    for _ in range(ROUNDS):
        found = _jointly(space, best)
        if sum(cycles_of_groups(space, found)) >= sum(cycles_of_groups(space, best)):
            break
        best = found
    return best


def cycles_of_groups(space: CandidateSpace, chosen: Choice) -> list[float]:
    """Return about how many cycles each group takes under a choice."""
    return [space.cycles(one, chosen[one.index], chosen) for one in space.network.groups]


def _jointly(space: CandidateSpace, current: Choice) -> dict[int, Profile]:
    """Choose for all groups at once by dynamic programming, with side edges as currently chosen."""
    groups = space.network.groups
    parents = [space.main_producer(group) for group in groups]
    after = {group.index: [0.0] * len(space.profiles(group)) for group in groups}
    answers: dict[int, list[int]] = {}
    for group in reversed(groups):
        parent = parents[group.index]
        totals = [
            [cycles + rest for cycles in space.cycles_by(group, one, current, parent)]
            for one, rest in zip(space.profiles(group), after[group.index], strict=True)
        ]
        answers[group.index] = []
        for number, of_option in enumerate(zip(*totals, strict=True)):
            best = of_option.index(min(of_option))
            answers[group.index].append(best)
            if parent is not None:
                after[parent][number] += of_option[best]
    numbers: list[int] = []
    for group in groups:
        parent = parents[group.index]
        numbers.append(answers[group.index][0 if parent is None else numbers[parent]])
    return {g.index: space.profiles(g)[numbers[g.index]] for g in groups}


def _nothing() -> None:
    """Go on; unlike a lambda, it goes to other processes, too."""


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
    """

    network: Network
    machine: Machine
    objective: Objective = DEFAULT_OBJECTIVE
    sources: tuple[tuple[str, str], ...] = ()
    go_on: Callable[[], None] = _nothing
    pinned: Tilings = field(default_factory=dict)

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
                *network.sources,
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
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstChoice:
    """Tilings, and what they were chosen from.

    Parameters
    ----------
    space
        The candidates.
    problem
        What the tilings make.
    """

    subject: NetworkOnMachine
    space: CandidateSpace
    tilings: Tilings
    problem: Problem

    def lower(self, tilings: Tilings) -> Problem:
        """Return the problem of some tilings, at once where it is that of the chosen ones."""
        return self.problem if tilings == self.tilings else self.subject.lower(tilings)

    def cycles_of(self, tilings: Tilings) -> float:
        """Return about how many cycles the network takes with some tilings."""
        return sum(cycles_of_groups(self.space, self.space.profiles_of(tilings)))

    def going_on(self, go_on: Callable[[], None]) -> "FirstChoice":
        """Return the same choice; while others are compared something else is called."""
        subject = replace(self.subject, go_on=go_on)
        return replace(self, subject=subject, space=self.space.going_on(go_on))

    def with_parameters(self, parameters: CostParameters) -> "FirstChoice | None":
        """Return what another estimate chooses; ``None`` where that does not fit."""
        try:
            return _choice_among(self.subject, self.space.with_parameters(parameters))
        except DoesNotFitError:
            return None


def choose_tilings(network: Network, machine: Machine) -> Tilings:
    """Choose a tiling for each group, by index; see :func:`first_choice_of`."""
    return first_choice(network, machine).tilings


def first_choice(network: Network, machine: Machine) -> FirstChoice:
    """Choose a tiling for each group; see :func:`first_choice_of`."""
    return first_choice_of(NetworkOnMachine(network=network, machine=machine))


@collector_paused()
def first_choice_of(subject: NetworkOnMachine) -> FirstChoice:
    """Choose a tiling for each group.

    For each group the candidates are estimated (:mod:`spmilp.tile_selection.estimate`), and one is
    chosen for all groups together: by dynamic programming along the edges to each group from what
    computes its largest operand, a forest, with the other edges as they were chosen last, so that
    successive groups get tilings that match where that pays. This takes groups to run one after
    another.

    Where tasks of the problem turn out not to fit, because operands come in many pieces, their
    groups are cut anew.

    Raises
    ------
    SpmilpError
        If no kind of core can run a group.
    PinnedTilesError
        If pinned tiles fit no scratchpad.
    DoesNotFitError
        If a group's smallest tile fits no scratchpad, or no tiles are found that do.
    """
    space = CandidateSpace(subject.network, subject.machine, subject.go_on)
    try:
        return _choice_among(subject, space)
    except DoesNotFitError as error:
        if error.is_proven:
            raise
    # Other tiles to cut anew, from candidates that may fill memories whole.
    whole = space.with_parameters(replace(DEFAULT_PARAMETERS, room=1.0))
    return _choice_among(subject, whole)


def _choice_among(subject: NetworkOnMachine, space: CandidateSpace) -> FirstChoice:
    """Choose from candidates."""
    chosen = choose(space).items()
    tilings = {index: one.candidate.tiling for index, one in chosen} | subject.pinned
    problem = subject.lower(tilings)
    too_large = groups_that_do_not_fit(problem)
    for index, tiling in subject.pinned.items():
        name = subject.network.groups[index].name
        if name in too_large:
            raise PinnedTilesError(
                f"pins: tiles {tiling.describe()} of group {name}: {too_large[name]}"
            )
    if too_large:
        tilings, problem = tilings_that_fit(
            subject.network,
            subject.machine,
            [tilings],
            subject.lower,
            fixed=subject.pinned,
            go_on=subject.go_on,
        )
    return FirstChoice(subject=subject, space=space, tilings=tilings, problem=problem)
