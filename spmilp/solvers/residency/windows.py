"""Which tasks may change places next."""

from random import Random

from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.residency.course import Course
from spmilp.solvers.residency.scope import Scope, window

FIRST_SIZE = 8
"""Tasks of the first windows."""

GROWTH = 1.5
"""From one round of windows without any gain to the next."""


class Windows:
    """Windows over all steps, round by round, in random order; larger ones once nothing is gained.

    A window overlaps half of the next one. In a window that was not searched to its end in time,
    larger ones are of no use, and smaller ones are tried.
    """

    def __init__(self, tables: Tables, seed: int) -> None:
        self._tables = tables
        self._random = Random(seed)
        self._size = FIRST_SIZE
        self._firsts: list[int] = []
        self._gained = True
        self._completed = True
        self._began = False

    def next(self, course: Course) -> Scope | None:
        """Return the next scope; ``None`` when one with all tasks has been searched to its end."""
        steps = len(course.order)
        if not self._firsts:
            if self._began and not self._gained:
                if self._completed and self._size >= steps:
                    return None
                self._size = self._resized(steps)
            self._began, self._gained, self._completed = True, False, True
            size = min(self._size, steps)
            self._firsts = sorted({*range(0, steps - size, max(1, size // 2)), steps - size})
            self._random.shuffle(self._firsts)
        first = self._firsts.pop()
        return window(self._tables, course, first, min(first + self._size, steps), pools=True)

    def learn(self, *, improved: bool, complete: bool) -> None:
        """Take note of how the last window went."""
        self._gained |= improved
        self._completed &= complete

    def _resized(self, steps: int) -> int:
        if self._completed:
            return min(steps, int(self._size * GROWTH) + 1)
        return max(FIRST_SIZE // 2, int(self._size / GROWTH))
