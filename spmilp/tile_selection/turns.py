"""Several neighbourhoods take turns; those that pay have more of them."""

from collections.abc import Callable, Iterable, Iterator

from spmilp.solvers.common.operator_selection import ByCredit
from spmilp.tile_selection.first_choice import Tilings
from spmilp.tile_selection.trials import Trials

Pass = Callable[[], Iterator[Tilings]]
"""Yields all that a neighbourhood holds around the best tilings so far."""


class Turns:
    """Tries what neighbourhoods hold until there is nothing better in any of them.

    Their turns are in proportion to how often they have found something better of late.

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
        while not self._trials.are_over:
            for one in self._selection.in_turn():
                tilings = one.next()
                if tilings is not None:
                    self._selection.learn(one, self._trials.is_better(tilings))
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
