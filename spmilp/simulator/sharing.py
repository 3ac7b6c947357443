"""Bytes per cycle of transfers that are on the same links at one time: max-min fair.

No transfer can get more without another one that has no more getting less (D. Bertsekas and R.
Gallager, Data Networks, 1992, section 6.5.2). Rates are raised together; where a link is full, or a
transfer as fast as its engine, those that it holds keep the rate reached.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import cython
import numpy as np
from numpy.typing import NDArray

from spmilp.compiled import address, in_c

if cython.compiled:
    pass  # the .pxd says what these are in C
else:
    from math import inf as NEVER  # noqa: N812 - as in C

    from spmilp.compiled import longs_at as traffic_at
    from spmilp.compiled import whole

    # The relative difference by which a link counts as full; the bytes at which all is sent.
    FULL, REST = 1e-9, 1e-6

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


class Traffic(NamedTuple):
    """All transfers; of those that are ``active``, the ones that send now come first.

    The links of transfer ``t`` are ``links[first[t]:first[t + 1]]``. Each has a limit, and a rate
    now, in bytes per cycle, and bytes that are left. Each link has a capacity, in bytes per cycle,
    of which nobody has yet what is ``free``, and a number of users that still want some; ``used``
    are the links that are in use.
    """

    first: Ints
    links: Ints
    limit: Floats
    left: Floats
    rate: Floats
    active: Ints
    capacity: Floats
    free: Floats
    users: Ints
    used: Ints


class Sharing:
    """Transfers that send side by side: their links, each once, and their sizes in bytes.

    ``capacity`` has bytes per cycle of each link, ``limit`` those that each transfer sends at most.
    """

    def __init__(
        self,
        capacity: Sequence[float],
        links: Sequence[Sequence[int]],
        limit: Sequence[float],
        size: Sequence[int],
    ) -> None:
        first = np.zeros(len(links) + 1, np.int64)
        np.cumsum([len(each) for each in links], out=first[1:])
        here = np.array(capacity, np.float64)
        self.traffic = Traffic(
            first=first,
            links=np.array([link for each in links for link in each], np.int64),
            limit=np.array(limit, np.float64),
            left=np.array(size, np.float64),
            rate=np.zeros(len(links)),
            active=np.zeros(len(links) + 1, np.int64),
            capacity=here,
            free=here.copy(),
            users=np.zeros(here.size, np.int64),
            used=np.zeros(here.size, np.int64),
        )
        self._in_c = in_c(self.traffic)
        self._count = 0

    def begin(self, transfer: int) -> None:
        """Let a transfer send from now on; rates are to be shared anew."""
        self.traffic.active[self._count] = transfer
        self._count += 1

    def shared(self) -> float:
        """Share the rates anew; return in how many cycles a transfer has sent all, or infinity."""
        return _share(traffic_at(address(self._in_c)), whole(self._count))

    def after(self, cycles: float) -> list[int]:
        """Let some cycles pass; return the transfers that have sent all, which send no more."""
        before = self._count
        self._count = _pass(traffic_at(address(self._in_c)), whole(before), cycles)
        done: list[int] = self.traffic.active[self._count : before].tolist()
        return sorted(done)


def _share(traffic: Traffic, count: int) -> float:
    """Find the rates of ``count`` transfers, and in how many cycles the first of them ends."""
    used = 0
    for place in range(count):
        t = traffic.active[place]
        traffic.rate[t] = -1.0
        for k in range(traffic.first[t], traffic.first[t + 1]):
            link = traffic.links[k]
            if traffic.users[link] == 0:
                traffic.free[link] = traffic.capacity[link]
                traffic.used[used] = link
                used += 1
            traffic.users[link] += 1
    waiting = count
    while waiting > 0:
        waiting -= _raise_rates(traffic, count, used)
    soonest = NEVER
    for place in range(count):
        t = traffic.active[place]
        soonest = min(soonest, traffic.left[t] / traffic.rate[t])
    return soonest


def _raise_rates(traffic: Traffic, count: int, used: int) -> int:
    """Raise all rates that are not settled until some must be; return how many are."""
    level = NEVER
    for place in range(used):
        link = traffic.used[place]
        if traffic.users[link] > 0:
            level = min(level, traffic.free[link] / traffic.users[link])
    for place in range(count):
        t = traffic.active[place]
        if traffic.rate[t] < 0.0:
            level = min(level, traffic.limit[t])
    settled = 0
    for place in range(count):
        t = traffic.active[place]
        if traffic.rate[t] < 0.0 and _is_held(traffic, t, level):
            traffic.rate[t] = level
            settled += 1
            for k in range(traffic.first[t], traffic.first[t + 1]):
                link = traffic.links[k]
                traffic.free[link] -= level
                traffic.users[link] -= 1
    return settled


def _is_held(traffic: Traffic, t: int, level: float) -> bool:
    """Return whether a transfer cannot have more than ``level`` bytes per cycle."""
    if traffic.limit[t] <= level:
        return True
    for k in range(traffic.first[t], traffic.first[t + 1]):
        link = traffic.links[k]
        if traffic.free[link] <= level * traffic.users[link] * (1.0 + FULL):
            return True
    return False


def _pass(traffic: Traffic, count: int, cycles: float) -> int:
    """Send for some cycles; put those that are done behind the others, return how many are left."""
    place = 0
    while place < count:
        t = traffic.active[place]
        traffic.left[t] -= traffic.rate[t] * cycles
        if traffic.left[t] > REST:
            place += 1
        else:
            count -= 1
            traffic.active[place] = traffic.active[count]
            traffic.active[count] = t
    return count
