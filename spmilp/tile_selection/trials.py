"""Tilings tried one after another, drawn from several neighbourhoods; and the best of them."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from math import inf

from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.problem.documents import collector_paused
from spmilp.problem.problem import Problem
from spmilp.solvers.common.operator_selection import ByCredit
from spmilp.tile_selection.tiled_problem import Worth

Evaluate = Callable[[Problem], Worth | None]
"""Gives what a problem is worth, for example a plan's makespan, then its traffic; less is better.
``None`` for a problem without a plan."""

Pass = Callable[[], Iterator[Tilings]]
"""Yields all that a neighbourhood holds around the best tilings so far."""


class Trials:
    """Evaluates tilings, each once, until a limit is reached.

    Parameters
    ----------
    lower
        Makes the problem of some tilings.
    budget
        Problems to evaluate at most; ``None`` without limit.
    is_over
        Asked before each evaluation whether to stop.
    affords
        Asked before each problem is made, but for the first one; what it refuses counts as tried.
    cuts
        What a tiling makes of a group, by its number; tilings that make the same of all groups are
        one trial.
    """

    def __init__(
        self,
        lower: Callable[[Tilings], Problem],
        evaluate: Evaluate,
        budget: int | None = None,
        is_over: Callable[[], bool] = lambda: False,
        affords: Callable[[Tilings], bool] = lambda tilings: True,
        cuts: Callable[[int, Tiling], Hashable] = lambda group, tiling: tiling,
    ) -> None:
        self.best: Tilings = {}
        self.least: Worth | None = None
        self._lower = lower
        self._evaluate = evaluate
        self._left = inf if budget is None else budget
        self._asked_whether_over = is_over
        self._affords = affords
        self._cuts = cuts
        self._first: dict[Hashable, Tiling] = {}
        self._same: dict[tuple[int, Tiling], Tiling] = {}
        self._values: dict[tuple[Tiling, ...], Worth | None] = {}

    @property
    def are_over(self) -> bool:
        """Whether a limit is reached."""
        return self._left <= 0 or self._asked_whether_over()

    def are_new(self, tilings: Tilings) -> bool:
        """Return whether tilings have not been tried."""
        return self._key(tilings) not in self._values

    def try_all(self, candidates: Iterator[tuple[Tilings, Callable[[bool], None]]]) -> None:
        """Evaluate tilings until there are no more or it is over.

        Parameters
        ----------
        candidates
            Tilings, and what to call with whether they are better than all before. They are asked
            for one by one.
        """
        while not self.are_over:
            following = next(candidates, None)
            if following is None:
                return
            tilings, on_result = following
            on_result(self.is_better(tilings))

    def is_better(self, tilings: Tilings) -> bool:
        """Evaluate tilings, and keep them if they are better than all before."""
        key = self._key(tilings)
        if key in self._values or self.are_over:
            return False
        self._values[key] = None
        if self.least is not None and not self._affords(tilings):
            return False
        with collector_paused():
            problem = self._lower(tilings)
            if groups_that_do_not_fit(problem):
                return False
            self._left -= 1
            found = self._values[key] = self._evaluate(problem)
        if found is None or (self.least is not None and found >= self.least):
            return False
        self.best, self.least = tilings, found
        return True

    def value_of(self, tilings: Tilings) -> tuple[float, ...]:
        """Return what tilings are worth; infinity where that is nothing or they were not tried."""
        return self._values.get(self._key(tilings)) or (inf,)

    def _key(self, tilings: Tilings) -> tuple[Tiling, ...]:
        """Return for each group the first tiling that was seen to cut it in the same way."""
        return tuple(self._first_like(index, tilings[index]) for index in sorted(tilings))

    def _first_like(self, group: int, tiling: Tiling) -> Tiling:
        found = self._same.get((group, tiling))
        if found is None:
            found = self._first.setdefault((group, self._cuts(group, tiling)), tiling)
            self._same[group, tiling] = found
        return found


class NeighbourhoodSearch:
    """Tries the tilings of several neighbourhoods until nothing in any of them is better.

    Each has trials in proportion to how often it has found something better of late.

    Parameters
    ----------
    neighbourhoods
        What each is expected to be worth, and its pass.
    """

    def __init__(self, trials: Trials, neighbourhoods: Iterable[tuple[float, Pass]]) -> None:
        self._trials = trials
        expected = {_Neighbourhood(trials, one): worth for worth, one in neighbourhoods}
        self._selection = ByCredit(expected)

    def run(self) -> None:
        """Go on until everything is tried, or a limit is reached."""
        least = None
        while least != self._trials.least:
            least = self._trials.least
            self._trials.try_all(self._candidates())

    def _candidates(self) -> Iterator[tuple[Tilings, Callable[[bool], None]]]:
        while True:
            for one in self._selection.in_turn():
                tilings = one.next()
                if tilings is not None:
                    yield tilings, partial(self._selection.learn, one)
                    break
            else:
                return


class _Neighbourhood:
    """One neighbourhood, and how far it was searched."""

    def __init__(self, trials: Trials, whole_pass: Pass) -> None:
        self._trials = trials
        self._whole_pass = whole_pass
        self._left: Iterator[Tilings] = iter(())
        self._around: Tilings | None = None

    def next(self) -> Tilings | None:
        """Return the next tilings that are new; ``None`` where all around the best are known."""
        while True:
            for tilings in self._left:
                if self._trials.are_new(tilings):
                    return tilings
            if self._around is self._trials.best:
                return None
            self._around = self._trials.best
            self._left = self._whole_pass()
