"""Better tilings by trying others with a solver as the judge."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

from spmilp.frontend.graph import Group, Network
from spmilp.lowering.choose import FirstChoice, first_choice
from spmilp.lowering.cost import NO_MEASUREMENTS
from spmilp.lowering.cycle_table import CycleTable
from spmilp.lowering.fused import Fusion
from spmilp.lowering.landscape import Landscape
from spmilp.lowering.leaning import OTHERS, USUAL
from spmilp.lowering.lower import lower
from spmilp.lowering.moves import nearby, stretches
from spmilp.lowering.starts import Starts
from spmilp.lowering.tiling import Tiling
from spmilp.lowering.trials import Evaluate, Tilings, Trials
from spmilp.lowering.waves import in_waves
from spmilp.machine.machine import Machine
from spmilp.problem.objective import DEFAULT_OBJECTIVE, Objective
from spmilp.problem.problem import Problem

Waits = Callable[[], Mapping[str, int]]

Alternatives = Callable[[Network, Group, Tiling], Iterator[Tiling]]


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
    (:mod:`spmilp.lowering.fused`), then what estimates that lean another way would choose
    (:mod:`spmilp.lowering.starts`), further and further in the direction that helps. From the best
    of these on, stretches of the network are tiled as in the others, which changes neighbouring
    groups together; then classes of like groups are changed, those first for which the plan waits
    longest, and at last single groups, until nothing that is tried is better. A
    ``KeyboardInterrupt`` ends the search like ``is_over``, but passes on as long as no value is
    known.

    Parameters
    ----------
    tilings
        Where to start, for example what
        :func:`~spmilp.lowering.choose.choose_tilings` has found.
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
        self._landscapes: Mapping[int, Landscape] = {}

    def go_on_from(self, starts: Starts, fusion: Fusion) -> None:
        """Try one kind of tilings after another, until nothing is better."""
        waves = self._in_waves(starts)
        self._fuse(fusion)
        choices = [starts.first, *waves, *self._leaning(starts)]
        choices.sort(key=lambda choice: self._trials.value_of(choice.tilings))
        self._landscapes = choices[0].landscapes
        for choice in choices:
            self._take_stretches_of(choice.tilings)
        for alternatives in (nearby, self._candidates):
            while self._improves(alternatives, self._classes):
                pass
            while self._improves(alternatives, self._single_groups):
                pass

    def _in_waves(self, starts: Starts) -> list[FirstChoice]:
        """Try choices in which all groups compute in equally many waves."""
        choices = list(starts.in_waves())
        for choice in choices:
            self._trials.is_better(choice.tilings)
        return choices

    def _fuse(self, fusion: Fusion) -> None:
        """Cut groups whose results do not fit into bands, where they do not compute in waves."""
        for bands in fusion.bands():
            best = self._trials.best
            changed = {one: tiling for one, tiling in bands.items() if best[one].waves == 1}
            self._trials.is_better({**best, **changed})

    def _leaning(self, starts: Starts) -> list[FirstChoice]:
        """Try what other estimates choose, and the ones nearer and nearer to the best."""
        choices: list[FirstChoice] = []
        best, leanings = USUAL, list(OTHERS)
        while leanings:
            for leaning in leanings:
                if self._trials.are_over:
                    return choices
                found = starts.leaning(leaning)
                if found is not None:
                    choices.append(found)
                    best = leaning if self._trials.is_better(found.tilings) else best
            leanings = [one for one in best.nearby() if not starts.has_tried(one)]
        return choices

    def _take_stretches_of(self, other: Tilings) -> None:
        """Tile stretches of the network as somewhere else, where that is better."""
        for stretch in stretches(len(self._network.groups)):
            self._trials.is_better({**self._trials.best, **{one: other[one] for one in stretch}})

    def _improves(self, alternatives: Alternatives, sets: Callable[[], list[list[int]]]) -> bool:
        """Try all alternatives for each set of groups once; say whether one was better."""
        improved = False
        for members in sets():
            group, own = self._network.groups[members[0]], self._trials.best[members[0]]
            for tiling in alternatives(self._network, group, own):
                changed = dict.fromkeys(members, tiling)
                improved |= self._trials.is_better({**self._trials.best, **changed})
        return improved

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
        return self._landscapes.get(waves, self._landscapes[1])
