"""Which kind of step comes next: the one that has saved most for its time, as a rule."""

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Generic, TypeVar

import numpy as np

K = TypeVar("K", bound=Hashable)

TRIED_FIRST = 2
"""Steps of each kind before anything is known of them."""

CURIOUS = 0.1
"""Share of the steps that are of any kind, for what pays changes on the way."""

FORGETTING = 0.8
"""Weight of what was known before a step."""

LITTLE = 1.0
"""Cycles for each second: when nothing saves more, all kinds have their turns."""

STEPS_PER_WINDOW = 10
"""Where there is no clock."""


class Step(Enum):
    """Some activities wait, some loads go first, CP-SAT times a window, or tasks change cores."""

    PERTURB = 0
    ADVANCE_LOADS = 1
    WINDOW = 2
    REASSIGN = 3


class Choice(Generic[K]):
    """Learns from the cycles that steps save for each second.

    Parameters
    ----------
    kinds
        Of steps, or of windows.
    rare
        Taken once for ``STEPS_PER_WINDOW`` others where there is no clock; else all have turns.
    """

    def __init__(
        self,
        random: np.random.Generator,
        kinds: Sequence[K],
        *,
        has_clock: bool,
        rare: K | None = None,
    ) -> None:
        self._random = random
        self._kinds = kinds
        self._has_clock = has_clock
        self._rare = rare
        self._count = dict.fromkeys(kinds, 0)
        self._saved = dict.fromkeys(kinds, 0.0)
        self._spent = dict.fromkeys(kinds, 0.0)
        self._total = dict.fromkeys(kinds, 0.0)

    def next(self) -> K:
        """Return the kind of the next step."""
        if len(self._kinds) == 1:
            return self._kinds[0]
        if not self._has_clock:
            return self._next_in_turn()
        for step in self._kinds:
            if self._count[step] < TRIED_FIRST:
                return step
        paid = {step: self._saved[step] / max(1e-6, self._spent[step]) for step in self._kinds}
        best = max(self._kinds, key=lambda step: paid[step])
        if paid[best] < LITTLE or self._random.random() < CURIOUS:
            # In equal time rather than in equal numbers: a window takes as long as many kicks.
            return min(self._kinds, key=lambda step: self._total[step])
        return best

    def _next_in_turn(self) -> K:
        position = sum(self._count.values()) % (STEPS_PER_WINDOW + 1)
        often = [step for step in self._kinds if step != self._rare]
        if self._rare is not None and self._rare in self._kinds and position == STEPS_PER_WINDOW:
            return self._rare
        return often[sum(self._count[step] for step in often) % len(often)]

    def learn(self, step: K, saved: int, seconds: float) -> None:
        """Note what a step has saved, in cycles, and how long it took."""
        self._count[step] += 1
        self._saved[step] = self._saved[step] * FORGETTING + saved
        self._spent[step] = self._spent[step] * FORGETTING + seconds
        self._total[step] += seconds
