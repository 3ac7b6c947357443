"""Adaptive operator selection: which operator of a search comes next, by what each has gained.

Records are kept in the way of adaptive large-neighbourhood search (Ropke and Pisinger,
Transportation Science 40, 2006): the gain of an operator and what it cost, both fading. Two rules
choose by the rate of one to the other: in turn as often as the rates are high (:class:`ByCredit`),
or mostly the best (:class:`ByBestRate`).
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

K = TypeVar("K", bound=Hashable)

LEAST_COST = 1e-6
"""Below it a cost says nothing."""


class OperatorSelection(Generic[K]):
    """What the operators of a search have gained for what they cost.

    Parameters
    ----------
    gains
        What each operator is expected to gain at first.
    cost
        Of each, in the same way.
    memory
        Part of a record that is left after the operator's next use.
    weight
        Of that use in the record.
    """

    def __init__(
        self, gains: Mapping[K, float], *, cost: float, memory: float, weight: float = 1.0
    ) -> None:
        self._gain = dict(gains)
        self._cost = dict.fromkeys(gains, cost)
        self._memory = memory
        self._weight = weight

    def rate(self, operator: K) -> float:
        """Return what an operator has gained lately for each unit of cost."""
        return self._gain[operator] / max(LEAST_COST, self._cost[operator])

    def learn(self, operator: K, gain: float, cost: float = 1.0) -> None:
        """Note what one use of an operator has gained and cost."""
        self._gain[operator] = self._memory * self._gain[operator] + self._weight * gain
        self._cost[operator] = self._memory * self._cost[operator] + self._weight * cost


class ByCredit(OperatorSelection[K]):
    """Lets operators take turns as often as their rates are high, without chance.

    In each round all get credit by their rates; one with most credit is used, and pays for all.

    Parameters
    ----------
    expected
        The rate of each operator at first; one whose every use pays has a rate of 1.
    """

    MEMORY = 0.9
    LEAST_RATE = 0.03
    """Of an operator that has not paid for long."""

    def __init__(self, expected: Mapping[K, float]) -> None:
        super().__init__(expected, cost=1.0, memory=self.MEMORY, weight=1 - self.MEMORY)
        self._credit = dict.fromkeys(expected, 0.0)

    def in_turn(self) -> list[K]:
        """Begin a round; return the operators, those with most credit first."""
        for operator in self._credit:
            self._credit[operator] += self.rate(operator)
        return sorted(self._credit, key=lambda operator: -self._credit[operator])

    def learn(self, operator: K, gain: float, cost: float = 1.0) -> None:
        """Let the operator of this round pay, and note what it has gained."""
        self._credit[operator] -= sum(map(self.rate, self._credit))
        super().learn(operator, gain, cost)
        self._gain[operator] = max(self.LEAST_RATE * self._cost[operator], self._gain[operator])


class ByBestRate(OperatorSelection[K]):
    """Takes the operator that gains most for its cost, and now and then another one.

    Parameters
    ----------
    has_clock
        Whether costs, in seconds, may decide; else operators take turns, the same each time.
    """

    MEMORY = 0.8
    CURIOSITY = 0.1
    """Share of the uses that are of any operator, for what pays changes on the way."""
    TRIED_FIRST = 2
    """Uses of each operator before anything is known of them."""
    LEAST_RATE = 1.0
    """Gain for each second: when nothing gains more, all operators have their turns."""

    def __init__(
        self,
        operators: Sequence[K],
        random: np.random.Generator,
        *,
        has_clock: bool,
    ) -> None:
        super().__init__(dict.fromkeys(operators, 0.0), cost=0.0, memory=self.MEMORY)
        self._operators = tuple(operators)
        self._random = random
        self._has_clock = has_clock
        self._count = dict.fromkeys(operators, 0)
        self._total = dict.fromkeys(operators, 0.0)

    def next(self) -> K:
        """Return the next operator."""
        if len(self._operators) == 1:
            return self._operators[0]
        if not self._has_clock:
            return self._operators[sum(self._count.values()) % len(self._operators)]
        for operator in self._operators:
            if self._count[operator] < self.TRIED_FIRST:
                return operator
        best = max(self._operators, key=self.rate)
        if self.rate(best) < self.LEAST_RATE or self._random.random() < self.CURIOSITY:
            # In equal time rather than in equal numbers: some take as long as many others.
            return min(self._operators, key=lambda operator: self._total[operator])
        return best

    def learn(self, operator: K, gain: float, cost: float = 1.0) -> None:
        """Note what one use of an operator has gained, and the seconds that it took."""
        super().learn(operator, gain, cost)
        self._count[operator] += 1
        self._total[operator] += cost
