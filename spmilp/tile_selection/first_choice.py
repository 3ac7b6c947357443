"""A first choice of tilings: jointly along the network, by the estimate."""

from collections.abc import Mapping
from dataclasses import dataclass

from spmilp.frontend.graph import Group, Network
from spmilp.lowering.cost import NO_MEASUREMENTS
from spmilp.lowering.cycle_table import CycleTable
from spmilp.lowering.fit import groups_that_do_not_fit
from spmilp.lowering.lower import lower
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.problem.documents import collector_paused
from spmilp.problem.objective import DEFAULT_OBJECTIVE, Objective
from spmilp.problem.problem import Problem
from spmilp.tile_selection.candidate_space import Choice, Landscape
from spmilp.tile_selection.estimate import GroupTime, Succession
from spmilp.tile_selection.profile import Profile
from spmilp.tile_selection.trials import Lowered
from spmilp.tile_selection.waves import in_waves, parts_of_batch, waves_of_groups

ROUNDS = 3
MOST_STEPS = 1 << 21
"""Group times that one pass of the descent adds up at most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstChoice:
    """Tilings, and what they were chosen from.

    Parameters
    ----------
    tilings
        One for each group, by index.
    landscapes
        The candidates by the number of waves in which groups compute.
    times
        About how many cycles each group takes alone, in one wave, if candidates are chosen from one
        of the landscapes.
    problem
        What the tilings make, where it had to be known to see that all tiles fit.
    """

    tilings: dict[int, Tiling]
    landscapes: Mapping[int, Landscape]
    times: Mapping[int, list[float]]
    problem: Problem | None


def choose_tilings(
    network: Network, machine: Machine, *, measured: CycleTable = NO_MEASUREMENTS
) -> dict[int, Tiling]:
    """Choose a tiling for each group, by index; see :func:`first_choice`."""
    return first_choice(network, machine, measured=measured).tilings


@collector_paused()
def first_choice(
    network: Network,
    machine: Machine,
    *,
    measured: CycleTable = NO_MEASUREMENTS,
    objective: Objective = DEFAULT_OBJECTIVE,
    sources: tuple[tuple[str, str], ...] = (),
) -> FirstChoice:
    """Choose a tiling for each group.

    For each group the candidates are estimated (:mod:`spmilp.tile_selection.estimate`), and one is
    chosen for all groups together. First by dynamic programming along the edges to each group from
    what computes its largest operand, a forest, with the other edges as they were chosen last, so
    that successive groups get tilings that match where that pays; this takes groups to run one
    after another. Then by descent, group by group, on the time of all groups with DRAM working
    ahead.

    Of a batch that is too large for the scratchpads, parts are considered as well, and groups may
    compute in waves (:mod:`spmilp.tile_selection.waves`).

    Parameters
    ----------
    objective, sources
        Of the problem, where one is made.

    Raises
    ------
    SpmilpError
        If no kind of core can run a group.
    DoesNotFitError
        If a group's smallest tile fits no scratchpad.
    """
    parts = parts_of_batch(network, machine_rates(machine))
    landscapes = {n: Landscape(part, machine, measured) for n, part in parts.items()}

    def lowered(tilings: Mapping[int, Tiling]) -> Problem:
        return lower(
            network, machine, tilings, measured=measured, objective=objective, sources=sources
        )

    return choice_among(network, machine, landscapes, lowered)


def choice_among(
    network: Network,
    machine: Machine,
    landscapes: Mapping[int, Landscape],
    lowered: Lowered,
) -> FirstChoice:
    """Choose as :func:`first_choice` does, from landscapes that are known.

    Parameters
    ----------
    landscapes
        By the number of waves.
    lowered
        Makes the problem of some tilings.
    """
    chosen = {number: choose(landscape) for number, landscape in landscapes.items()}
    times = _times_alone(landscapes, chosen)
    all_landscapes = landscapes
    while True:
        waves = waves_of_groups(network, machine_rates(machine), _times_alone(landscapes, chosen))
        tilings = {
            group.index: in_waves(chosen[number][group.index].candidate.tiling, number)
            for group, number in zip(network.groups, waves, strict=True)
        }
        tight = any(
            landscapes[number].is_tight(chosen[number][index]) for index, number in enumerate(waves)
        )
        problem: Problem | None = None
        too_large: Mapping[str, str] = {}
        if tight:
            problem = lowered(tilings)
            too_large = groups_that_do_not_fit(problem)
        if not too_large:
            return FirstChoice(
                tilings=tilings, landscapes=all_landscapes, times=times, problem=problem
            )
        for number, landscape in landscapes.items():
            here = {group.name for group in network.groups if waves[group.index] == number}
            some = {name: reason for name, reason in too_large.items() if name in here}
            landscapes = {**landscapes, number: landscape.without(chosen[number], some)}
        chosen = {number: choose(landscape) for number, landscape in landscapes.items()}


def _times_alone(
    landscapes: Mapping[int, Landscape], chosen: Mapping[int, Choice]
) -> dict[int, list[float]]:
    return {
        number: [time.alone for time in group_times(landscape, chosen[number])]
        for number, landscape in landscapes.items()
    }


def choose(landscape: Landscape) -> Choice:
    """Return the best choice found among the candidates."""
    best = _one_after_another(landscape)
    for _ in range(ROUNDS):
        found = _along_the_forest(landscape, best)
        if _alone(landscape, found) >= _alone(landscape, best):
            break
        best = found
    return _descended(landscape, best)


def group_times(landscape: Landscape, chosen: Choice) -> list[GroupTime]:
    """Return about how long each group takes under a choice."""
    return [landscape.time(g, chosen[g.index], chosen) for g in landscape.network.groups]


def _alone(landscape: Landscape, chosen: Choice) -> float:
    return sum(time.alone for time in group_times(landscape, chosen))


def _one_after_another(landscape: Landscape) -> Choice:
    """Choose for each group in turn what is best after the choices before it."""
    chosen: dict[int, Profile] = {}
    for group in landscape.network.groups:
        times = [(landscape.time(group, p, chosen).alone, p) for p in landscape.profiles(group)]
        chosen[group.index] = min(times, key=lambda pair: pair[0])[1]
    return chosen


def _along_the_forest(landscape: Landscape, current: Choice) -> Choice:
    """Choose for all groups at once, with side edges as currently chosen."""
    groups = landscape.network.groups
    parents = [next(iter(landscape.producers(group)), None) for group in groups]
    after = {group.index: [0.0] * len(landscape.profiles(group)) for group in groups}
    answers: dict[int, list[int]] = {}
    for group in reversed(groups):
        parent = parents[group.index]
        totals = [
            [time.alone + rest for time in landscape.times(group, one, current, parent)]
            for one, rest in zip(landscape.profiles(group), after[group.index], strict=True)
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
    return {g.index: landscape.profiles(g)[numbers[g.index]] for g in groups}


def _descended(landscape: Landscape, chosen: Choice) -> Choice:
    """Change one group after another where that shortens the time of all."""
    groups = landscape.network.groups
    readers = _readers(landscape)
    best = dict(chosen)
    all_groups = Succession(group_times(landscape, best))
    passes = max(1, min(ROUNDS, MOST_STEPS // (16 * len(groups) ** 2 + 1)))
    for _ in range(passes):
        before = all_groups.cycles
        for group in groups:
            for reader in readers[group.index]:
                # All that will be asked of it, together, which is quicker.
                landscape.times(reader, best[reader.index], best, group.index)
            for profile in landscape.profiles(group):
                kept = best[group.index]
                best[group.index] = profile
                changed = {
                    g.index: landscape.time(g, best[g.index], best)
                    for g in (group, *readers[group.index])
                }
                if all_groups.with_changes(changed) < all_groups.cycles:
                    all_groups.change(changed)
                else:
                    best[group.index] = kept
        if all_groups.cycles >= before:
            break
    return best


def _readers(landscape: Landscape) -> Mapping[int, list[Group]]:
    """Return the groups that read what each group computes."""
    readers: dict[int, list[Group]] = {group.index: [] for group in landscape.network.groups}
    for group in landscape.network.groups:
        for producer in dict.fromkeys(landscape.producers(group)):
            readers[producer].append(group)
    return readers
