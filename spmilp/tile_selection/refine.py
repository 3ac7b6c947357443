"""Better tilings by trying others with a solver as the judge."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

from spmilp.frontend.graph import Group, Network
from spmilp.lowering.cost import NO_MEASUREMENTS
from spmilp.lowering.cycle_table import CycleTable
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine
from spmilp.problem.objective import DEFAULT_OBJECTIVE, Objective
from spmilp.problem.problem import Problem
from spmilp.tile_selection.candidate_space import Landscape
from spmilp.tile_selection.first_choice import FirstChoice, first_choice
from spmilp.tile_selection.fused_bands import Fusion
from spmilp.tile_selection.initial_solutions import Starts
from spmilp.tile_selection.moves import nearby, stretches
from spmilp.tile_selection.parameters import OTHERS, USUAL, Leaning
from spmilp.tile_selection.trials import Evaluate, Tilings, Trials
from spmilp.tile_selection.turns import Turns
from spmilp.tile_selection.waves import in_waves

Waits = Callable[[], Mapping[str, int]]

Alternatives = Callable[[Network, Group, Tiling], Iterator[Tiling]]

AT_ONCE = 4
"""So many other estimates are asked before anything else is tried."""


def refine_tilings(
    network: Network,
    machine: Machine,
    tilings: Mapping[int, Tiling],
    evaluate: Evaluate,
    budget: int | None = None,
    *,
    objective: Objective = DEFAULT_OBJECTIVE,
    sources: tuple[tuple[str, str], ...] = (),
    is_over: Callable[[], bool] = lambda: False,
    measured: CycleTable = NO_MEASUREMENTS,
    first: FirstChoice | None = None,
    waits: Waits = dict,
) -> dict[int, Tiling]:
    """Improve tilings: in bands, by other estimates, by what those agree on, then group by group.

    The given tilings are evaluated first, then bands where results do not fit
    (:mod:`spmilp.tile_selection.fused_bands`) and what estimates that lean far another way would
    choose (:mod:`spmilp.tile_selection.initial_solutions`). From the best on, these neighbourhoods
    take turns, those that pay more often, until nothing in them is better:

    - what further estimates choose, and those that are near the best one,
    - stretches of the network as another estimate has them, which changes neighbouring groups
      together,
    - one of its candidates, or a step from its own tiling (:mod:`spmilp.tile_selection.moves`), for
      all groups of a class of like ones, those first that the plan waits for longest; or for one
      group.

    A ``KeyboardInterrupt`` ends the search like ``is_over``, but passes on as long as no value is
    known.

    Parameters
    ----------
    tilings
        Where to start, for example what
        :func:`~spmilp.tile_selection.first_choice.choose_tilings` has found.
    evaluate
        The value of a problem, for example a plan's makespan; less is better. ``None`` for a
        problem without a plan.
    budget
        Problems to evaluate at most, the starting one included; ``None`` without limit.
    objective, sources
        Of the problems that are evaluated.
    is_over
        Asked before each evaluation whether to stop.
    first
        The first choice for this network, machine and objective, if it is known; what it holds need
        not be found once more.
    waits
        For the best problem so far, how many cycles longer each group makes the plan, by name;
        groups that it leaves out come last.

    Returns
    -------
    dict[int, Tiling]
        Tilings whose value is at most that of the given ones.
    """

    def lowered(some: Mapping[int, Tiling]) -> Problem:
        if first is not None and first.problem is not None and some == first.tilings:
            return first.problem
        return lower(
            network, machine, some, measured=measured, objective=objective, sources=sources
        )

    def starts() -> Starts:
        known = first or first_choice(network, machine, measured=measured)
        return Starts(network, machine, known, lowered)

    trials = Trials(lowered, evaluate, budget, is_over)
    trials.best = dict(tilings)
    try:
        trials.is_better(dict(tilings))
        if not trials.are_over:
            fusion = Fusion(network, machine, measured)
            _Search(network, trials, waits).go_on_from(starts(), fusion)
    except KeyboardInterrupt:
        if trials.least is None:
            raise
    return trials.best


class _Search:
    def __init__(self, network: Network, trials: Trials, waits: Waits) -> None:
        self._network = network
        self._trials = trials
        self._waits = waits
        self._choices: list[tuple[Leaning, FirstChoice]] = []

    def go_on_from(self, starts: Starts, fusion: Fusion) -> None:
        """Try waves, bands and what estimates that are far apart choose, then what is near."""
        self._choices.append((USUAL, starts.first))
        self._trials.is_better(starts.first.tilings)
        for choice in starts.in_waves():
            self._choices.append((USUAL, choice))
            self._trials.is_better(choice.tilings)
            if self._trials.are_over:
                return
        self._fuse(fusion)
        for tilings in self._chosen_by(starts, OTHERS[:AT_ONCE]):
            self._trials.is_better(tilings)
        neighbourhoods = (
            (0.2, lambda: self._chosen_by(starts, (*OTHERS, *self._choices[0][0].nearby()))),
            (0.1, self._with_stretches_of_others),
            (0.4, lambda: self._with_changes(self._candidates, self._classes())),
            (0.1, lambda: self._with_changes(nearby, self._classes())),
            (0.05, lambda: self._with_changes(self._candidates, self._single_groups())),
            (0.05, lambda: self._with_changes(nearby, self._single_groups())),
        )
        Turns(self._trials, neighbourhoods).run()

    def _fuse(self, fusion: Fusion) -> None:
        """Cut groups whose results do not fit into bands, where they do not compute in waves."""
        for bands in fusion.bands():
            best = self._trials.best
            changed = {one: tiling for one, tiling in bands.items() if best[one].waves == 1}
            self._trials.is_better({**best, **changed})
            if self._trials.are_over:
                return

    def _chosen_by(self, starts: Starts, leanings: Iterable[Leaning]) -> Iterator[Tilings]:
        """Yield what other estimates choose, and note it; the best choice of all comes first."""
        for leaning in leanings:
            if starts.has_tried(leaning) or self._trials.are_over:
                continue
            choice = starts.leaning(leaning)
            if choice is not None:
                yield choice.tilings
                self._choices.append((leaning, choice))
                self._choices.sort(key=lambda pair: self._trials.value_of(pair[1].tilings))

    def _with_stretches_of_others(self) -> Iterator[Tilings]:
        """Yield the best tilings with stretches of the network tiled as somewhere else."""
        for _, choice in list(self._choices):
            for stretch in stretches(len(self._network.groups)):
                yield {**self._trials.best, **{one: choice.tilings[one] for one in stretch}}

    def _with_changes(self, alternatives: Alternatives, sets: list[list[int]]) -> Iterator[Tilings]:
        """Yield the best tilings with each alternative for each set of groups."""
        for members in sets:
            group, own = self._network.groups[members[0]], self._trials.best[members[0]]
            for tiling in alternatives(self._network, group, own):
                yield {**self._trials.best, **dict.fromkeys(members, tiling)}

    def _classes(self) -> list[list[int]]:
        """Return the groups that are alike, those first that the plan waits for longest."""
        members: dict[Hashable, list[int]] = {}
        for group in self._network.groups:
            waves = self._trials.best[group.index].waves
            kind = waves, self._landscape(waves).class_of(group)
            members.setdefault(kind, []).append(group.index)
        return self._longest_first(members.values())

    def _single_groups(self) -> list[list[int]]:
        alone = ([one] for members in self._classes() if len(members) > 1 for one in members)
        return self._longest_first(alone)

    def _longest_first(self, sets: Iterable[list[int]]) -> list[list[int]]:
        names = [group.name for group in self._network.groups]
        waits = self._waits()
        return sorted(sets, key=lambda members: -sum(waits.get(names[one], 0) for one in members))

    def _candidates(self, network: Network, group: Group, own: Tiling) -> Iterator[Tiling]:
        """Yield what estimates compare for a group, the most promising first."""
        for profile in self._landscape(own.waves).profiles(network.groups[group.index]):
            yield in_waves(profile.candidate.tiling, own.waves)

    def _landscape(self, waves: int) -> Landscape:
        """Return the candidates that the estimate compared whose choice was the best."""
        landscapes = self._choices[0][1].landscapes
        return landscapes.get(waves, landscapes[1])
