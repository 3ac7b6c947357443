"""Which kind of step comes next: the one that has saved most for its time, as a rule."""

from collections.abc import Sequence
from enum import Enum

import numpy as np

TRIED_FIRST = 2
"""Steps of each kind before anything is known of them."""

CURIOUS = 0.1
"""Share of the steps that are of any kind, for what pays changes on the way."""

FORGETTING = 0.8
"""Weight of what was known before a step."""

KICKS_PER_WINDOW = 10
"""Where there is no clock."""


class Step(Enum):
    """A kick of the whole plan, or a window for CP-SAT."""

    KICK = 0
    WINDOW = 1


class Choice:
    """Learns from the cycles that steps save for each second."""

    def __init__(
        self, random: np.random.Generator, kinds: Sequence[Step], *, has_clock: bool
    ) -> None:
        self._random = random
        self._kinds = kinds
        self._has_clock = has_clock
        self._count = dict.fromkeys(Step, 0)
        self._saved = dict.fromkeys(Step, 0.0)
        self._spent = dict.fromkeys(Step, 0.0)

    def next(self) -> Step:
        """Return the kind of the next step."""
        if len(self._kinds) == 1:
            return self._kinds[0]
        if not self._has_clock:
            due = sum(self._count.values()) % (KICKS_PER_WINDOW + 1) == KICKS_PER_WINDOW
            return Step.WINDOW if due else Step.KICK
        for step in Step:
            if self._count[step] < TRIED_FIRST:
                return step
        if self._random.random() < CURIOUS:
            # In equal time rather than in equal numbers: a window takes as long as many kicks.
            return min(Step, key=lambda step: self._spent[step])
        return max(Step, key=lambda step: self._saved[step] / max(1e-6, self._spent[step]))

    def learn(self, step: Step, saved: int, seconds: float) -> None:
        """Note what a step has saved, in cycles, and how long it took."""
        self._count[step] += 1
        self._saved[step] = self._saved[step] * FORGETTING + saved
        self._spent[step] = self._spent[step] * FORGETTING + seconds
