"""Adaptive operator selection: which operator of a search comes next, by what each has gained.

Records are kept in the way of adaptive large-neighbourhood search (Ropke and Pisinger,
Transportation Science 40, 2006): the gain of an operator and what it cost, both fading. Operators
share what a search costs in proportion to the rates of one to the other, without chance.
"""

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

LEAST_COST = 1e-6
"""Below it a cost says nothing."""


class OperatorSelection(Generic[K]):
    """What the operators of a search have gained for what they cost.

    Each use gives all operators credit by their rates; the one that was used pays for all.

    Parameters
    ----------
    rates
        What each operator is expected to gain for a unit of cost.
    cost
        Weight of that expectation, in units of cost.
    memory
        Part of a record that is left after the operator's next use.
    least
        The rate of an operator that has gained nothing for long.
    """

    def __init__(
        self,
        rates: Mapping[K, float],
        *,
        cost: float = 10.0,
        memory: float = 0.9,
        least: float = 0.03,
    ) -> None:
        self._gain = {operator: rate * cost for operator, rate in rates.items()}
        self._cost = dict.fromkeys(rates, cost)
        self._credit = dict(rates)
        self._memory = memory
        self._least = least

    def rate(self, operator: K) -> float:
        """Return what an operator has gained lately for each unit of cost."""
        gained = self._gain[operator] / max(LEAST_COST, self._cost[operator])
        return max(self._least, gained)

    def in_turn(self) -> list[K]:
        """Return the operators, those with most credit first."""
        return sorted(self._credit, key=lambda operator: -self._credit[operator])

    def learn(self, operator: K, gain: float, cost: float = 1.0) -> None:
        """Note what one use of an operator has gained and cost."""
        self._credit[operator] -= cost * sum(map(self.rate, self._credit))
        self._gain[operator] = self._memory * self._gain[operator] + gain
        self._cost[operator] = self._memory * self._cost[operator] + cost
        for one in self._credit:
            self._credit[one] += cost * self.rate(one)
