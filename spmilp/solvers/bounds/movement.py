"""What moving data costs at least, whatever engine and route a plan takes."""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from spmilp.machine.routes import Routes, transfer_cycles, transfer_rate
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Cycles, EngineIdx, MemoryIdx


class Movement:
    """Least cycles and least link use of the transfers of one machine."""

    def __init__(self, problem: Problem) -> None:
        self._machine = problem.machine
        self._routes = Routes(problem.machine)
        self._out: dict[MemoryIdx, tuple[tuple[EngineIdx, MemoryIdx], ...]] = {}
        self._in: dict[MemoryIdx, tuple[tuple[EngineIdx, MemoryIdx], ...]] = {}
        for dram in self._machine.drams:
            self._out[dram.index] = tuple(self._ways(dram.index, outwards=True))
            self._in[dram.index] = tuple(self._ways(dram.index, outwards=False))

    def least_load(self, dram: MemoryIdx, size: Bytes) -> Cycles:
        """Return the cycles of the fastest transfer of ``size`` bytes out of a DRAM; 0 without way."""
        return min((self._cycles(way, dram, size, True) for way in self._out[dram]), default=0)

    def least_store(self, dram: MemoryIdx, size: Bytes) -> Cycles:
        """Return the cycles of the fastest transfer of ``size`` bytes into a DRAM; 0 without way."""
        return min((self._cycles(way, dram, size, False) for way in self._in[dram]), default=0)

    def least_load_use(self, dram: MemoryIdx, size: Bytes) -> Fraction:
        """Return the least rate times cycles that bringing ``size`` bytes out of a DRAM holds.

        However many transfers share the bytes, each holds ``rate * (fixed + ceil(n / rate))``, which
        is at least ``rate * fixed + n``; so together at least ``min (rate * fixed) + size``.
        """
        return self._least_overhead(self._out[dram], dram, True) + size

    def least_store_use(self, dram: MemoryIdx, size: Bytes) -> Fraction:
        """Return the least rate times cycles that bringing ``size`` bytes into a DRAM holds."""
        return self._least_overhead(self._in[dram], dram, False) + size

    def rate_out(self, dram: MemoryIdx) -> Fraction:
        """Return the bytes per cycle of all links that leave a DRAM."""
        name = self._machine.memories[dram].name
        return sum((link.rate for link in self._machine.links if link.source == name), Fraction(0))

    def rate_in(self, dram: MemoryIdx) -> Fraction:
        """Return the bytes per cycle of all links that lead into a DRAM."""
        name = self._machine.memories[dram].name
        return sum((link.rate for link in self._machine.links if link.target == name), Fraction(0))

    def shared_rate(self, dram: MemoryIdx) -> Fraction | None:
        """Return the least rate of a link that every transfer from and to a DRAM crosses, or None."""
        routes = [self._route(dram, other, True) for _, other in self._out[dram]]
        routes += [self._route(dram, other, False) for _, other in self._in[dram]]
        if not routes:
            return None
        common = set(routes[0]).intersection(*routes[1:])
        return min((self._machine.links[link].rate for link in common), default=None)

    def _ways(self, dram: MemoryIdx, outwards: bool) -> Iterator[tuple[EngineIdx, MemoryIdx]]:
        """Yield one way for each set of engine parameters and route, so that few are compared."""
        seen = set()
        for memory in self._machine.memories:
            ends = (dram, memory.index) if outwards else (memory.index, dram)
            route = None if memory.index == dram else self._routes.between(*ends)
            if route is None:
                continue
            for index in self._routes.engines_for(*ends):
                engine = self._machine.engines[index]
                key = (engine.setup, transfer_rate(engine, route), route.latency, route.links)
                if key not in seen:
                    seen.add(key)
                    yield index, memory.index

    def _route(self, dram: MemoryIdx, other: MemoryIdx, outwards: bool) -> tuple[int, ...]:
        route = self._routes.between(*((dram, other) if outwards else (other, dram)))
        return route.links if route else ()

    def _cycles(
        self, way: tuple[EngineIdx, MemoryIdx], dram: MemoryIdx, size: Bytes, outwards: bool
    ) -> Cycles:
        engine, other = way
        route = self._routes.between(*((dram, other) if outwards else (other, dram)))
        if route is None:
            return 0
        return transfer_cycles(self._machine.engines[engine], route, size)

    def _least_overhead(
        self, ways: tuple[tuple[EngineIdx, MemoryIdx], ...], dram: MemoryIdx, outwards: bool
    ) -> Fraction:
        overheads = []
        for index, other in ways:
            route = self._routes.between(*((dram, other) if outwards else (other, dram)))
            if route is not None:
                engine = self._machine.engines[index]
                fixed = engine.setup + route.latency
                overheads.append(transfer_rate(engine, route) * fixed)
        return min(overheads, default=Fraction(0))


def cycles_at(use: Fraction, rate: Fraction) -> Cycles:
    """Return the whole cycles that ``use`` (bytes) needs at ``rate`` (bytes per cycle)."""
    return ceil(use / rate)
