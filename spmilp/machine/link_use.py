"""What transfers can use of links: whole transfers only, each of which holds its own rate."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import gcd, lcm
from typing import NamedTuple

from spmilp.machine.machine import Machine
from spmilp.machine.routes import Route, Routes, transfer_rate
from spmilp.units import EngineIdx, MemoryIdx

MOST_STEPS = 1 << 16
"""Multiples of the rates' common divisor that are told apart on one link."""


class DramTransfer(NamedTuple):
    """What moves from a DRAM to another memory, or to it from there."""

    engine: EngineIdx
    other: MemoryIdx
    route: Route
    rate: Fraction


def dram_transfers(routes: Routes, dram: MemoryIdx, *, outwards: bool) -> Iterator[DramTransfer]:
    """Yield the transfers out of a DRAM, or into it, one of those that are alike.

    Alike are those over the same links that take as long and hold the same rate.
    """
    seen, engines = set(), routes.machine.engines
    for memory in routes.machine.memories:
        ends = (dram, memory.index) if outwards else (memory.index, dram)
        route = None if memory.index == dram else routes.between(*ends)
        if route is None:
            continue
        for index in routes.engines_for(*ends):
            rate = transfer_rate(engines[index], route)
            key = (engines[index].setup, rate, route.latency, route.links)
            if key not in seen:
                seen.add(key)
                yield DramTransfer(index, memory.index, route, rate)


def usable_rates(machine: Machine, transfers: Iterable[DramTransfer]) -> tuple[Fraction, ...]:
    """Return the bytes per cycle that some transfers can use of each link at most; 0 if none.

    A multicast has the rate of one of those to its destinations, on the links of all of them.
    """
    over = [set[Fraction]() for _ in machine.links]
    for one in transfers:
        for index in one.route.links:
            over[index].add(one.rate)
    if any(engine.multicast for engine in machine.engines):
        rates = set[Fraction]().union(*over)
        over = [rates if some else some for some in over]
    known: dict[tuple[Fraction, frozenset[Fraction]], Fraction] = {}
    found = []
    for link in machine.links:
        key = link.rate, frozenset(over[link.index])
        if key not in known:
            known[key] = most_in_use(*key)
        found.append(known[key])
    return tuple(found)


def most_in_use(capacity: Fraction, rates: Iterable[Fraction]) -> Fraction:
    """Return the bytes per cycle of a link that transfers can use at most at one time.

    A transfer holds its rate on the link, no part of it: of a link of 48 bytes per cycle,
    transfers of 32 use no more than 32. So this is the largest sum of some of the rates, each as
    often as one likes, that is no more than the capacity (an unbounded knapsack); where there are
    too many sums, the largest multiple of their common divisor, which is no less.
    """
    fitting = sorted({rate for rate in rates if 0 < rate <= capacity})
    if not fitting:
        return Fraction(0)
    scale = lcm(*(rate.denominator for rate in fitting))
    steps = [int(rate * scale) for rate in fitting]
    divisor = gcd(*steps)
    room = int(capacity * scale) // divisor
    if room <= MOST_STEPS:
        room = _largest_sum([step // divisor for step in steps], room)
    return Fraction(room * divisor, scale)


def _largest_sum(steps: list[int], room: int) -> int:
    """Return the largest sum of some steps, each as often as one likes, up to ``room``."""
    sums = 1  # bit n is set where n is a sum
    within = (1 << (room + 1)) - 1
    for step in steps:
        times = step
        while times <= room:
            sums |= sums << times & within
            times *= 2
    return sums.bit_length() - 1
