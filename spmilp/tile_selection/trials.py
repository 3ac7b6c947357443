"""Tilings that are tried one after another, and the best of them."""

from collections.abc import Callable
from math import inf

from spmilp.lowering.fit import groups_that_do_not_fit
from spmilp.lowering.tiling import Tiling
from spmilp.problem.problem import Problem
from spmilp.tile_selection.first_choice import Tilings

Evaluate = Callable[[Problem], int | None]
"""Gives the value of a problem, for example a plan's makespan; less is better. ``None`` for a
problem without a plan."""


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
    """

    def __init__(
        self,
        lower: Callable[[Tilings], Problem],
        evaluate: Evaluate,
        budget: int | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.best: Tilings = {}
        self.least: int | None = None
        self._lower = lower
        self._evaluate = evaluate
        self._left = inf if budget is None else budget
        self._asked_whether_over = is_over
        self._values: dict[tuple[Tiling, ...], int | None] = {}

    @property
    def are_over(self) -> bool:
        """Whether a limit is reached."""
        return self._left <= 0 or self._asked_whether_over()

    def are_new(self, tilings: Tilings) -> bool:
        """Say whether tilings have not been tried."""
        return _key(tilings) not in self._values

    def is_better(self, tilings: Tilings) -> bool:
        """Evaluate tilings, and keep them if they are better than all before."""
        key = _key(tilings)
        if key in self._values or self.are_over:
            return False
        self._values[key] = None
        problem = self._lower(tilings)
        if groups_that_do_not_fit(problem):
            return False
        self._left -= 1
        found = self._values[key] = self._evaluate(problem)
        if found is None or (self.least is not None and found >= self.least):
            return False
        self.best, self.least = tilings, found
        return True

    def value_of(self, tilings: Tilings) -> float:
        """Return what tilings were found to be worth; infinity if nothing was found."""
        found = self._values.get(_key(tilings))
        return inf if found is None else found


def _key(tilings: Tilings) -> tuple[Tiling, ...]:
    return tuple(tilings[index] for index in sorted(tilings))
