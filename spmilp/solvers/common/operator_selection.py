"""Adaptive operator selection: which operator of a search comes next, by what each has gained.

Records are kept in the way of adaptive large-neighbourhood search (Ropke and Pisinger,
Transportation Science 40, 2006): the gain of an operator and its uses, both fading. Operators share
the uses in proportion to the rates of one to the other, without chance.
"""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

COST = 10.0
"""Weight of what an operator is expected to gain, in uses."""

MEMORY = 0.9
"""Part of a record that is left after the operator's next use."""

LEAST = 0.03
"""The rate of an operator that has gained nothing for long."""


class OperatorSelection(Generic[K]):
    """What the operators of a search have gained.

    Each use gives all operators credit by their rates; the one that was used pays for all.
    ``rates`` are what each operator is expected to gain for each use.
    """

    def __init__(self, rates: Mapping[K, float]) -> None:
        self._gain = {operator: rate * COST for operator, rate in rates.items()}
        self._cost = dict.fromkeys(rates, COST)
        self._credit = dict(rates)

    def rate(self, operator: K) -> float:
        """Return what an operator has gained lately for each use."""
        return max(LEAST, self._gain[operator] / self._cost[operator])

    def in_turn(self) -> list[K]:
        """Return the operators, those with most credit first."""
        return sorted(self._credit, key=lambda operator: -self._credit[operator])

    def learn(self, operator: K, gain: float) -> None:
        """Note what one use of an operator has gained."""
        self._credit[operator] -= sum(map(self.rate, self._credit))
        self._gain[operator] = MEMORY * self._gain[operator] + gain
        self._cost[operator] = MEMORY * self._cost[operator] + 1.0
        for one in self._credit:
            self._credit[one] += self.rate(one)
