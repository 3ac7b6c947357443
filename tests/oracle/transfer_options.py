"""The transfers that a machine can make, and how far each memory is from each other one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import ceil

from spmilp.machine.controllers import CONTROLLERS, Block, defects_of, unit_of
from spmilp.machine.machine import Engine
from spmilp.problem.strides import (
    Layout,
    layout_at_place,
    layout_in_slice,
    packed_layout,
    strided_copy,
)
from spmilp.units import Bytes, Cycles, EngineIdx, Femtojoules, LinkIdx, MemoryIdx, SliceIdx
from tests.oracle.tables import ProblemTables

UNREACHABLE = 1 << 90
"""Larger than any sum of costs: there is no chain of transfers."""


@dataclass(frozen=True, slots=True)
class TransferOption:
    """A transfer that an engine can make.

    Parameters
    ----------
    rate
        Of its bytes on each link, in the unit of :class:`.ProblemTables`.
    traffic
        Bytes out of DRAMs and into DRAMs.
    """

    engine: EngineIdx
    destinations: tuple[MemoryIdx, ...]
    links: tuple[LinkIdx, ...]
    rate: int
    cycles: Cycles
    traffic: Bytes
    energy: Femtojoules


class TransferOptions:
    """Transfers by slice and source."""

    def __init__(self, tables: ProblemTables) -> None:
        self._tables = tables
        self._memories = range(len(tables.machine.memories))
        self._found: dict[tuple[SliceIdx, MemoryIdx, SliceIdx], tuple[TransferOption, ...]] = {}
        engines = tables.machine.engines
        self.are_particular = any(
            e.dimensions is not None or e.congruence > 1 or unit_of(e.controller) > 1
            for e in engines
        )
        """Whether it matters to an engine how its source lies."""
        self.fastest = tuple(
            self._closure(lambda p: p.cycles, part.index) for part in tables.problem.slices
        )
        """The least cycles for each slice from each memory to each other, capacities ignored."""
        self.cheapest = tuple(
            self._closure(lambda p: p.energy, part.index) for part in tables.problem.slices
        )
        """The same for energy."""

    def of(self, slice_: SliceIdx, source: MemoryIdx, held: SliceIdx) -> tuple[TransferOption, ...]:
        """Return the transfers of a slice out of a memory, from a residency of ``held``."""
        key = slice_, source, held
        if key not in self._found:
            self._found[key] = tuple(self._options(slice_, source, held))
        return self._found[key]

    def offset_in_source(self, slice_: SliceIdx, source: MemoryIdx, held: SliceIdx) -> Layout:
        """Return how a slice lies in a residency, or at its place from the tensor's address."""
        problem = self._tables.problem
        if self._tables.home(slice_, source) is not None:
            return layout_at_place(problem, slice_)
        return layout_in_slice(problem, slice_, held)

    def _options(
        self, slice_: SliceIdx, source: MemoryIdx, held: SliceIdx
    ) -> Iterator[TransferOption]:
        for engine in self._tables.machine.engines:
            able = [
                memory
                for memory in self._memories
                if engine.serves(source, memory)
                and self._tables.routes.between(source, memory) is not None
                and self._can_copy(engine, slice_, source, held, memory)
            ]
            most = len(able) if engine.multicast else 1
            for count in range(1, most + 1):
                for destinations in combinations(able, count):
                    yield self._option(engine, slice_, source, destinations)

    def _can_copy(
        self,
        engine: Engine,
        slice_: SliceIdx,
        source: MemoryIdx,
        held: SliceIdx,
        destination: MemoryIdx,
    ) -> bool:
        problem = self._tables.problem
        part = problem.slices[slice_]
        if engine.longest is not None and part.bytes > engine.longest:
            return False
        at_place = self._tables.home(slice_, destination) is not None
        start = self.offset_in_source(slice_, source, held)
        end = layout_at_place(problem, slice_) if at_place else packed_layout(problem, slice_)
        copy = strided_copy(part.extent, problem.buffers[part.buffer].item, start, end)
        if engine.controller is not None:
            block = Block(
                source=start.offset, destination=end.offset, run=copy.run, loops=copy.loops
            )
            if any(defects_of(block, CONTROLLERS[engine.controller])):
                return False
        return engine.dimensions is None or copy.dimensions <= engine.dimensions

    def _option(
        self,
        engine: Engine,
        slice_: SliceIdx,
        source: MemoryIdx,
        destinations: tuple[MemoryIdx, ...],
    ) -> TransferOption:
        machine = self._tables.machine
        links: dict[LinkIdx, None] = {}
        latency = 0
        for destination in destinations:
            route = self._tables.routes.between(source, destination)
            if route is not None:
                links.update(dict.fromkeys(route.links))
                latency = max(latency, route.latency)
        rate = min([engine.rate, *(machine.links[link].rate for link in links)])
        size = self._tables.problem.slices[slice_].bytes
        ends = [machine.memories[memory] for memory in (source, *destinations)]
        per_byte = sum(memory.energy_per_byte or 0 for memory in ends)
        per_byte += sum(machine.links[link].energy_per_byte or 0 for link in links)
        return TransferOption(
            engine=engine.index,
            destinations=destinations,
            links=tuple(links),
            rate=self._tables.in_units(rate),
            cycles=engine.setup + latency + ceil(size / rate),
            traffic=size * sum(self._tables.is_dram[memory.index] for memory in ends),
            energy=size * per_byte,
        )

    def _closure(
        self, cost: Callable[[TransferOption], int], slice_: SliceIdx
    ) -> tuple[tuple[int, ...], ...]:
        """Return the least sum of a cost over chains of transfers, for a slice in any residency.

        Where an engine cannot copy a slice alone, the whole buffer may come in its place.
        """
        whole = self._tables.whole[slice_]
        best = [[0 if a == b else UNREACHABLE for b in self._memories] for a in self._memories]
        for a in self._memories:
            for moved, held in {(slice_, slice_), (slice_, whole), (whole, whole)}:
                for option in self.of(moved, a, held):
                    if len(option.destinations) == 1:
                        b = option.destinations[0]
                        best[a][b] = min(best[a][b], cost(option))
        for middle in self._memories:
            for a in self._memories:
                for b in self._memories:
                    best[a][b] = min(best[a][b], best[a][middle] + best[middle][b], UNREACHABLE)
        return tuple(map(tuple, best))
