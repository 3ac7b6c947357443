"""Who hands what to whom, so that claims on a resource keep their order while their times move."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Claim(NamedTuple):
    """An amount of something, held for ``[begin, end)`` in cycles."""

    begin: int
    end: int
    amount: int


def handovers(claims: Sequence[Claim], capacity: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of claims, the first of which ends before the second begins.

    As long as they all do, the claims fit, whatever their times; they have to fit at the times
    given. These are the chains of Policella, Cesta, Oddo and Smith (AI Communications 20, 2007).
    What has been idle longest is handed on first: that leaves the second most room to begin sooner.

    Parameters
    ----------
    claims
        In the order in which they begin.
    """
    idle: deque[tuple[int, int | None]] = deque([(capacity, None)])
    busy: list[int] = []
    for index, claim in enumerate(claims):
        ended = sorted((claims[one].end, one) for one in busy if claims[one].end <= claim.begin)
        busy = [one for one in busy if claims[one].end > claim.begin]
        idle.extend((claims[one].amount, one) for _, one in ended)
        need = claim.amount
        while need > 0 and idle:
            amount, giver = idle.popleft()
            if giver is not None:
                yield giver, index
            if amount > need:
                idle.appendleft((amount - need, giver))
            need -= amount
        busy.append(index)
