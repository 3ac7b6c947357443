"""Which tasks may change places next."""

from random import Random

from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.residency.course import Course
from spmilp.solvers.residency.scope import Scope, window

FIRST_SIZE = 5
"""Tasks of the first windows."""

GROWTH = 1.5
"""From one round of windows to the next, when nothing was gained."""

FIRST_LIMIT = 1.0
"""Deterministic time for a window at first; about a second."""


class Windows:
    """Windows over all steps, round by round, each of which overlaps half of the next one.

    After a round without any gain windows grow, and get more time if some were not searched to
    their end.

    Attributes
    ----------
    limit
        Deterministic time for the next window.
    """

    def __init__(self, tables: ProblemTables, seed: int) -> None:
        self._tables = tables
        self._random = Random(seed)
        self._size = 0
        self._firsts: list[int] = []
        self._has_gained = False
        self._is_complete = True
        self.limit = FIRST_LIMIT

    def next(self, course: Course) -> Scope | None:
        """Return the next scope; ``None`` when one with all tasks has been searched to its end."""
        steps = len(course.order)
        if not self._firsts:
            if self._size >= steps and self._is_complete and not self._has_gained:
                return None
            self._begin_round(steps)
        first = self._firsts.pop()
        return window(self._tables, course, first, min(first + self._size, steps))

    def learn(self, *, has_gained: bool, is_complete: bool) -> None:
        """Take note of how the last window went."""
        self._has_gained |= has_gained
        self._is_complete &= is_complete

    def _begin_round(self, steps: int) -> None:
        if not self._has_gained:
            self.limit *= 1.0 if self._is_complete else GROWTH
            self._size = min(steps, max(FIRST_SIZE, int(self._size * GROWTH)))
        self._has_gained, self._is_complete = False, True
        last = steps - self._size
        self._firsts = sorted({*range(0, last, max(1, self._size // 2)), last})
        self._random.shuffle(self._firsts)
