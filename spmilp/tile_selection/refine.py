"""Better tilings by trying others, each once: the neighbourhoods of the search for tile sizes."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf

from spmilp.formats import collector_paused
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import OutOfTimeError
from spmilp.tile_selection.coarse import CoarseTilings, nearby
from spmilp.tile_selection.estimate import ALTERNATIVES
from spmilp.tile_selection.first_choice import CandidateSpace, FirstChoice
from spmilp.tile_selection.fused import FusedBands
from spmilp.tile_selection.tiled_problem import Worth

Evaluate = Callable[[Problem], Worth | None]
"""Gives what a problem is worth, for example a plan's makespan, then its traffic; less is better.
``None`` for a problem without a plan."""


def refine_tilings(
    first: FirstChoice,
    trials: "Trials",
    starts: Sequence[Tilings] = (),
    delays: Callable[[], Mapping[str, int]] = dict,
) -> Tilings:
    """Improve tilings: in bands, by other estimates, then class of groups by class.

    The first tilings are evaluated first, then the tilings of the quickest plans
    (:mod:`spmilp.tile_selection.coarse`); with the first ones, bands where results do not fit
    (:mod:`spmilp.tile_selection.fused`); what estimates with very different parameters choose, and
    all these with the bands that were better. From the best on, class of like groups by class,
    those first that delay the plan most, all of its groups get one of its candidates, or take a
    step from their own tiling (:func:`nearby`), until nothing is better.

    An :class:`OutOfTimeError` or a ``MemoryError`` ends the search as the trials' end does, but
    passes on as long as no value is known. A ``KeyboardInterrupt`` always passes on: all else is to
    end, too.

    Parameters
    ----------
    starts
        Tilings, the first of which with a plan are evaluated before those of the first choice.
    delays
        For the best problem so far, how many cycles longer each group makes the plan, by name;
        groups that it leaves out come last.

    Returns
    -------
    Tilings
        Tilings whose value is at most that of those to start with.
    """
    trials.best = first.tilings
    try:
        for tilings in starts or [first.tilings]:
            if trials.least is None:
                trials.is_better(tilings)
        if not trials.are_over:
            _Search(first, trials, delays).run()
    except (OutOfTimeError, MemoryError):
        if trials.least is None:
            raise
    return trials.best


class Trials:
    """Evaluates tilings, each once, until a limit is reached.

    Parameters
    ----------
    budget
        Problems to evaluate at most, the starting one included; ``None`` without limit.
    is_over
        Asked before each evaluation whether to stop.
    affords
        Asked before each problem is made whether its tilings can be evaluated; else they are
        left out.
    """

    def __init__(
        self,
        lower: Callable[[Tilings], Problem],
        evaluate: Evaluate,
        budget: int | None = None,
        is_over: Callable[[], bool] = lambda: False,
        affords: Callable[[Tilings], bool] = lambda tilings: True,
    ) -> None:
        self.best: Tilings = {}
        self.least: Worth | None = None
        self._lower, self._evaluate = lower, evaluate
        self._left = inf if budget is None else budget
        self._is_over, self._affords = is_over, affords
        self._values: dict[tuple[Tiling, ...], Worth | None] = {}

    @property
    def are_over(self) -> bool:
        """Whether a limit is reached."""
        return self._left <= 0 or self._is_over()

    def try_all(self, changes: Iterable[Tilings]) -> list[Tilings]:
        """Try changes of the best tilings until there are no more or it is over.

        Returns
        -------
        list of Tilings
            Those that were tried.
        """
        left, tried = iter(changes), list[Tilings]()
        while not self.are_over and (change := next(left, None)) is not None:
            tried.append({**self.best, **change})
            self.is_better(tried[-1])
        return tried

    def is_better(self, tilings: Tilings) -> bool:
        """Evaluate tilings, and keep them if they are better than all before."""
        key = key_of(tilings)
        if key in self._values or self.are_over:
            return False
        self._values[key] = None
        if self.least is not None and not self._affords(tilings):
            return False
        with collector_paused():
            found = self._values[key] = self._worth_of(tilings)
        self._left -= 1
        if found is None or (self.least is not None and found >= self.least):
            return False
        self.best, self.least = tilings, found
        return True

    def _worth_of(self, tilings: Tilings) -> Worth | None:
        problem = self._lower(tilings)
        return None if groups_that_do_not_fit(problem) else self._evaluate(problem)

    def value_of(self, tilings: Tilings) -> tuple[float, ...]:
        """Return what tilings are worth; infinity where that is nothing or they were not tried."""
        return self._values.get(key_of(tilings)) or (inf,)


class _Search:
    """The search from a first choice on; its ``_choices`` are what estimates have chosen."""

    def __init__(
        self, first: FirstChoice, trials: Trials, delays: Callable[[], Mapping[str, int]]
    ) -> None:
        self._first = first
        self._network, self._machine = first.subject.network, first.subject.machine
        self._trials = trials
        self._delays = delays
        self._choices = [first]

    def run(self) -> None:
        """Try tilings that are far apart, then what is near the best of them."""
        trials = self._trials
        trials.is_better(self._first.tilings)
        first = trials.best
        quickest = CoarseTilings(self._network, self._machine)
        coarse = trials.try_all(sorted(quickest, key=self._first.cycles_of))
        fused = self._fused_on(first)
        others = filter(None, map(self._first.with_parameters, ALTERNATIVES))
        chosen = trials.try_all(self._chosen(others))
        ranked = sorted([*chosen, *coarse], key=trials.value_of)
        trials.try_all(tilings | fused for tilings in ranked)
        around: Tilings | None = None
        while around is not trials.best and not trials.are_over:
            around = trials.best
            trials.try_all(self._nearby())

    def _fused_on(self, first: Tilings) -> Tilings:
        """Try bands where results do not fit, and return the groups that gain by them.

        They are tried with the first choice, for what other groups gain by other tiles does not
        show beside results that leave the scratchpads and come back.
        """
        cuts = FusedBands(self._network, self._machine).tilings()
        tried = self._trials.try_all(first | some for some in cuts)
        best = min([first, *tried], key=self._trials.value_of)
        return {group: tiling for group, tiling in best.items() if tiling != first[group]}

    def _chosen(self, choices: Iterable[FirstChoice]) -> Iterator[Tilings]:
        """Yield the tilings of choices, which are kept."""
        for choice in choices:
            self._choices.append(choice)
            yield choice.tilings

    def _nearby(self) -> Iterator[Tilings]:
        """Yield the changes of each class of groups.

        These are what estimates compare, the most promising first, and steps from its own tiling.
        """
        for members in self._classes():
            group, own = self._network.groups[members[0]], self._trials.best[members[0]]
            space = self._space()
            found = (one.candidate.tiling for one in space.profiles(group))
            for tiling in chain(found, nearby(space.models.model(group), own)):
                yield dict.fromkeys(members, tiling)

    def _classes(self) -> list[list[int]]:
        """Return the groups that are alike, those first that delay the plan most."""
        members: dict[Hashable, list[int]] = {}
        for group in self._network.groups:
            members.setdefault(self._space().class_of(group), []).append(group.index)
        names, delays = [group.name for group in self._network.groups], self._delays()
        return sorted(
            members.values(), key=lambda some: -sum(delays.get(names[one], 0) for one in some)
        )

    def _space(self) -> CandidateSpace:
        """Return the candidates that the estimate compared whose choice was the best."""
        return min(self._choices, key=lambda one: self._trials.value_of(one.tilings)).space


def key_of(tilings: Tilings) -> tuple[Tiling, ...]:
    """Return what is equal for equal tilings of all groups."""
    return tuple(tilings[index] for index in sorted(tilings))
