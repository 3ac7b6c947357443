"""Several neighbourhoods take turns; those that pay have more of them."""

from collections.abc import Callable, Iterable, Iterator

from spmilp.tile_selection.first_choice import Tilings
from spmilp.tile_selection.trials import Trials

KEPT = 0.9
"""Of what a neighbourhood was worth so far, after one more trial."""

LEAST_WORTH = 0.03
"""Of a neighbourhood that has not paid for long; the worth of one whose every trial pays is 1."""

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
        self._neighbourhoods = [_Neighbourhood(trials, one, worth) for worth, one in neighbourhoods]

    def run(self) -> None:
        """Go on until everything is tried, or a limit is reached."""
        while not self._trials.are_over:
            total = sum(one.worth for one in self._neighbourhoods)
            for one in self._neighbourhoods:
                one.credit += one.worth
            for one in sorted(self._neighbourhoods, key=lambda one: -one.credit):
                tilings = one.next()
                if tilings is not None:
                    one.credit -= total
                    one.learn(self._trials.is_better(tilings))
                    break
            else:
                return


class _Neighbourhood:
    """One neighbourhood, how far it was searched, and what it was worth."""

    def __init__(self, trials: Trials, whole_pass: Pass, worth: float) -> None:
        self.worth = worth
        self.credit = 0.0
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

    def learn(self, has_paid: bool) -> None:
        """Take note of how a trial went."""
        self.worth = max(LEAST_WORTH, KEPT * self.worth + (1 - KEPT) * has_paid)
