"""Better tilings by trying others: the neighbourhoods of the search."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain

from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import reduction_length
from spmilp.lowering.tiling import Tiling, Tilings, tile_grid
from spmilp.solvers.common.clock import OutOfTimeError
from spmilp.tile_selection.coarse import CoarseTilings, nearby
from spmilp.tile_selection.estimate import ALTERNATIVES, DEFAULT_PARAMETERS, CostParameters
from spmilp.tile_selection.first_choice import CandidateSpace, FirstChoice
from spmilp.tile_selection.fused import FusedReductions
from spmilp.tile_selection.residence import FusedBands
from spmilp.tile_selection.trials import Evaluate, NeighbourhoodSearch, Trials
from spmilp.tile_selection.waves import in_waves

Delays = Callable[[], Mapping[str, int]]

Changes = Callable[[Network, Group, Tiling], Iterator[Tiling]]
"""Yields other tilings of a group."""

AT_ONCE = 8
"""So many other estimates are asked before anything else is tried."""

MOST_STRETCHES = 8
"""The most into which a network is cut."""


def stretches(groups: int) -> Iterator[range]:
    """Yield stretches of successive groups: halves of a network, then quarters, then eighths."""
    count = 2
    while count <= min(groups, MOST_STRETCHES):
        for number in range(count):
            yield range(groups * number // count, groups * (number + 1) // count)
        count *= 2


def refine_tilings(
    first: FirstChoice,
    evaluate: Evaluate,
    *,
    start: Tilings | None = None,
    budget: int | None = None,
    is_over: Callable[[], bool] = lambda: False,
    affords: Callable[[Tilings], bool] = lambda tilings: True,
    delays: Delays = dict,
) -> Tilings:
    """Improve tilings: in bands, by other estimates, by what those agree on, then group by group.

    The first tilings are evaluated first, then those of the quickest plans
    (:mod:`spmilp.tile_selection.coarse`); with the first ones, blocks where results do not fit that
    are added up (:mod:`spmilp.tile_selection.fused`) and bands of others
    (:mod:`spmilp.tile_selection.residence`); what estimates with very different parameters choose,
    and all these with the blocks and bands that were better. From the best on, these neighbourhoods
    are searched in turn, those that pay more often, until nothing in them is better:

    - what further estimates choose, and those that are near the best one,
    - bands of one run of groups whose results do not fit,
    - stretches of the network as another estimate has them, which changes neighbouring groups
      together,
    - one of its candidates, or a step from its own tiling (:func:`nearby`), for all groups of a
      class of like ones, those first that delay the plan most; or for one group.

    An :class:`OutOfTimeError` or a ``MemoryError`` ends the search like ``is_over``, but passes on
    as long as no value is known. A ``KeyboardInterrupt`` always passes on: all else is to end, too.

    Parameters
    ----------
    evaluate
        The value of a problem, for example a plan's makespan; less is better. ``None`` for a
        problem without a plan.
    start
        Tilings to evaluate before those of the first choice.
    budget
        Problems to evaluate at most, the starting one included; ``None`` without limit.
    is_over
        Asked before each evaluation whether to stop.
    affords
        Asked before each problem is made whether its tilings can be evaluated; else they are
        left out.
    delays
        For the best problem so far, how many cycles longer each group makes the plan, by name;
        groups that it leaves out come last.

    Returns
    -------
    Tilings
        Tilings whose value is at most that of those to start with.
    """
    network = first.subject.network

    def cuts(index: int, tiling: Tiling) -> Hashable:
        group = network.groups[index]
        shape = network.tensors[group.output].shape
        return tile_grid(tiling, shape, reduction_length(network, group)), tiling.waves

    trials = Trials(first.lower, evaluate, budget, is_over, affords, cuts)
    trials.best = first.tilings if start is None else start
    try:
        trials.is_better(trials.best)
        if not trials.are_over:
            _Search(first, trials, delays).run()
    except (OutOfTimeError, MemoryError):
        if trials.least is None:
            raise
    return trials.best


class _Search:
    """The search from a first choice on.

    Its ``_choices`` are what estimates have chosen, with their parameters, the best one first.
    """

    def __init__(self, first: FirstChoice, trials: Trials, delays: Delays) -> None:
        self._first = first
        self._network = first.subject.network
        self._trials = trials
        self._delays = delays
        self._place: dict[str, float] = {}
        self._tried = {DEFAULT_PARAMETERS}
        self._choices: list[tuple[CostParameters, FirstChoice]] = []
        self._machine = first.subject.machine
        self._bands = FusedBands(self._network, self._machine)

    def run(self) -> None:
        """Try tilings that are far apart, then what is near the best of them."""
        for choice in chain([self._first], self._first.in_equal_waves()):
            self._choices.append((DEFAULT_PARAMETERS, choice))
            self._trials.is_better(choice.tilings)
            if self._trials.are_over:
                return
        first = self._trials.best
        coarse = self._try(CoarseTilings(self._network, self._machine))
        bands = self._bands_on(first)
        chosen = self._try(self._chosen_with(ALTERNATIVES[:AT_ONCE]))
        others = sorted([*chosen, *coarse], key=self._trials.value_of)
        self._try(_with_cuts(tilings, bands) for tilings in others)
        self._stay_in_a_room()
        neighbourhoods = (
            (0.2, lambda: self._chosen_with((*ALTERNATIVES, *self._choices[0][0].nearby()))),
            (0.1, self._with_bands_of_single_runs),
            (0.1, self._with_stretches_of_others),
            (0.4, lambda: self._with_changes(self._candidates, self._classes())),
            (0.1, lambda: self._with_changes(nearby, self._classes())),
            (0.05, lambda: self._with_changes(self._candidates, self._single_groups())),
            (0.05, lambda: self._with_changes(nearby, self._single_groups())),
        )
        NeighbourhoodSearch(self._trials, neighbourhoods).run()

    def _bands_on(self, first: Tilings) -> Tilings:
        """Try blocks and bands where results do not fit, and return the groups that gain by them.

        They are tried with the first choice, for what other groups gain by other tiles does not
        show beside results that leave the scratchpads and come back.
        """
        best = first
        reductions = FusedReductions(self._network, self._machine)
        for cuts in (reductions.tilings(), self._bands.bands()):
            tried = self._try(map(partial(_with_cuts, best), cuts))
            best = min([best, *tried], key=self._trials.value_of)
        return {group: tiling for group, tiling in best.items() if tiling != first[group]}

    def _stay_in_a_room(self) -> None:
        """Go on with the room in memories, and the cores, of the best choice so far."""
        best = self._choices[0][0]
        self._place = {"room": best.room, "cores": best.cores}
        self._choices = [one for one in self._choices if replace(one[0], **self._place) == one[0]]

    def _try(self, tilings: Iterable[Tilings]) -> list[Tilings]:
        """Evaluate tilings, and return them."""
        tried: list[Tilings] = []

        def noted() -> Iterator[tuple[Tilings, Callable[[bool], None]]]:
            for one in tilings:
                tried.append(one)
                yield one, lambda is_better: None

        self._trials.try_all(noted())
        return tried

    def _with_bands_of_single_runs(self) -> Iterator[Tilings]:
        """Yield the best tilings with the groups of one run in bands."""
        for bands in self._bands.bands_of_single_runs():
            yield _with_cuts(self._trials.best, bands)

    def _chosen_with(self, alternatives: Iterable[CostParameters]) -> Iterator[Tilings]:
        """Yield what other estimates choose, and note it; the best choice of all comes first."""
        for given in alternatives:
            parameters = replace(given, **self._place)
            if parameters in self._tried or self._trials.are_over:
                continue
            self._tried.add(parameters)
            choice = self._first.with_parameters(parameters)
            if choice is not None:
                yield choice.tilings
                self._choices.append((parameters, choice))
                self._choices.sort(key=lambda pair: self._trials.value_of(pair[1].tilings))

    def _with_stretches_of_others(self) -> Iterator[Tilings]:
        """Yield the best tilings with stretches of the network tiled as somewhere else."""
        for _, choice in list(self._choices):
            for stretch in stretches(len(self._network.groups)):
                yield {**self._trials.best, **{one: choice.tilings[one] for one in stretch}}

    def _with_changes(self, changes: Changes, sets: list[list[int]]) -> Iterator[Tilings]:
        """Yield the best tilings with each change of each set of groups."""
        for members in sets:
            group, own = self._network.groups[members[0]], self._trials.best[members[0]]
            for tiling in changes(self._network, group, own):
                yield {**self._trials.best, **dict.fromkeys(members, tiling)}

    def _classes(self) -> list[list[int]]:
        """Return the groups that are alike, those first that delay the plan most."""
        members: dict[Hashable, list[int]] = {}
        for group in self._network.groups:
            waves = self._trials.best[group.index].waves
            kind = waves, self._space(waves).class_of(group)
            members.setdefault(kind, []).append(group.index)
        return self._longest_first(members.values())

    def _single_groups(self) -> list[list[int]]:
        alone = ([one] for members in self._classes() if len(members) > 1 for one in members)
        return self._longest_first(alone)

    def _longest_first(self, sets: Iterable[list[int]]) -> list[list[int]]:
        names = [group.name for group in self._network.groups]
        delays = self._delays()
        return sorted(sets, key=lambda members: -sum(delays.get(names[one], 0) for one in members))

    def _candidates(self, network: Network, group: Group, own: Tiling) -> Iterator[Tiling]:
        """Yield what estimates compare for a group, the most promising first."""
        for profile in self._space(own.waves).profiles(network.groups[group.index]):
            yield in_waves(profile.candidate.tiling, own.waves)

    def _space(self, waves: int) -> CandidateSpace:
        """Return the candidates that the estimate compared whose choice was the best."""
        spaces = self._choices[0][1].spaces
        return spaces.get(waves, spaces[1])


def _with_cuts(tilings: Tilings, cuts: Tilings) -> Tilings:
    """Return tilings with other ones for groups that do not compute in waves."""
    return tilings | {one: cut for one, cut in cuts.items() if tilings[one].waves == 1}
