"""Least cost of moving data between DRAM and the chip, over whatever engine and route."""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from spmilp.bounds.cut_links import least_rate
from spmilp.machine.routes import Routes, transfer_cycles, transfer_rate
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, Cycles, EngineIdx, LinkIdx, MemoryIdx


class Movement:
    """Least cycles and least link use of the transfers of one machine."""

    def __init__(self, problem: Problem) -> None:
        self._machine = problem.machine
        self._routes = Routes(problem.machine)
        self._out: dict[MemoryIdx, tuple[tuple[EngineIdx, MemoryIdx], ...]] = {}
        self._in: dict[MemoryIdx, tuple[tuple[EngineIdx, MemoryIdx], ...]] = {}
        self._cache: dict[tuple[MemoryIdx, Bytes, bool], Cycles] = {}
        for dram in self._machine.drams:
            self._out[dram.index] = tuple(self._options(dram.index, outwards=True))
            self._in[dram.index] = tuple(self._options(dram.index, outwards=False))
        self._overhead_out = {
            dram: self._least_overhead(options, dram, True) for dram, options in self._out.items()
        }
        self._overhead_in = {
            dram: self._least_overhead(options, dram, False) for dram, options in self._in.items()
        }

    def least_load(self, dram: MemoryIdx, size: Bytes) -> Cycles:
        """Return the cycles of the fastest transfer of ``size`` bytes out of a DRAM; 0 if none."""
        return self._least(self._out[dram], dram, size, True)

    def least_store(self, dram: MemoryIdx, size: Bytes) -> Cycles:
        """Return the cycles of the fastest transfer of ``size`` bytes into a DRAM; 0 if none."""
        return self._least(self._in[dram], dram, size, False)

    def least_load_use(self, dram: MemoryIdx, size: Bytes) -> Fraction:
        """Return the least rate times cycles that bringing ``size`` bytes out of a DRAM holds.

        However many transfers share the bytes, each holds ``rate * (fixed + ceil(n / rate))``,
        which is at least ``rate * fixed + n``; so together at least ``min (rate * fixed) + size``.
        """
        return self._overhead_out[dram] + size

    def least_store_use(self, dram: MemoryIdx, size: Bytes) -> Fraction:
        """Return the least rate times cycles that bringing ``size`` bytes into a DRAM holds."""
        return self._overhead_in[dram] + size

    def rate_out(self, dram: MemoryIdx) -> Fraction:
        """Return bytes per cycle that all transfers out of a DRAM together cannot exceed."""
        return least_rate(self._machine.links, self._routes_of(dram, outwards=True))

    def rate_in(self, dram: MemoryIdx) -> Fraction:
        """Return bytes per cycle that all transfers into a DRAM together cannot exceed."""
        return least_rate(self._machine.links, self._routes_of(dram, outwards=False))

    def rate_both_ways(self, dram: MemoryIdx) -> Fraction:
        """Return bytes per cycle that all transfers from and to a DRAM together cannot exceed."""
        out, back = self._routes_of(dram, outwards=True), self._routes_of(dram, outwards=False)
        return least_rate(self._machine.links, [*out, *back])

    def _routes_of(self, dram: MemoryIdx, outwards: bool) -> list[tuple[LinkIdx, ...]]:
        options = self._out[dram] if outwards else self._in[dram]
        return [self._route(dram, other, outwards) for _, other in options]

    def _options(self, dram: MemoryIdx, outwards: bool) -> Iterator[tuple[EngineIdx, MemoryIdx]]:
        """Yield one transfer option for each set of engine parameters and route, to compare few."""
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

    def _least(
        self,
        options: tuple[tuple[EngineIdx, MemoryIdx], ...],
        dram: MemoryIdx,
        size: Bytes,
        outwards: bool,
    ) -> Cycles:
        """Return the cycles of the fastest option; many buffers are of one size."""
        key = dram, size, outwards
        if key not in self._cache:
            cycles = (self._cycles(option, dram, size, outwards) for option in options)
            self._cache[key] = min(cycles, default=0)
        return self._cache[key]

    def _cycles(
        self, option: tuple[EngineIdx, MemoryIdx], dram: MemoryIdx, size: Bytes, outwards: bool
    ) -> Cycles:
        engine, other = option
        route = self._routes.between(*((dram, other) if outwards else (other, dram)))
        if route is None:
            return 0
        return transfer_cycles(self._machine.engines[engine], route, size)

    def _least_overhead(
        self, options: tuple[tuple[EngineIdx, MemoryIdx], ...], dram: MemoryIdx, outwards: bool
    ) -> Fraction:
        overheads = []
        for index, other in options:
            route = self._routes.between(*((dram, other) if outwards else (other, dram)))
            if route is not None:
                engine = self._machine.engines[index]
                fixed = engine.setup + route.latency
                overheads.append(transfer_rate(engine, route) * fixed)
        return min(overheads, default=Fraction(0))


def cycles_at(use: Fraction, rate: Fraction) -> Cycles:
    """Return the whole cycles that ``use`` (bytes) needs at ``rate`` (bytes per cycle)."""
    return ceil(use / rate)
