"""The transfers that a machine can make, and how far each memory is from each other one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import ceil

from spmilp.machine.machine import Engine
from spmilp.problem.strides import (
    Layout,
    layout_at_place,
    layout_in_slice,
    packed_layout,
    strided_copy,
)
from spmilp.solvers.bruteforce.given import Given
from spmilp.units import Bytes, Cycles, EngineIdx, Femtojoules, LinkIdx, MemoryIdx, SliceIdx

FAR = 1 << 90
"""What no sum of costs reaches; where there is no way."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A transfer that an engine can make.

    Parameters
    ----------
    rate
        What it holds on each link, in the unit of :class:`.Given`.
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


class Passages:
    """Transfers by slice and source."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._memories = range(len(given.machine.memories))
        self._found: dict[tuple[SliceIdx, MemoryIdx, SliceIdx], tuple[Passage, ...]] = {}
        engines = given.machine.engines
        self.are_particular = any(e.dimensions is not None or e.congruence > 1 for e in engines)
        """Whether it matters to an engine how its source lies."""
        self.fastest = tuple(
            self._closure(lambda p: p.cycles, part.index) for part in given.problem.slices
        )
        """Cycles at least for each slice from each memory to each other, whatever is in the way."""
        self.cheapest = tuple(
            self._closure(lambda p: p.energy, part.index) for part in given.problem.slices
        )
        """The same for energy."""

    def of(self, slice_: SliceIdx, source: MemoryIdx, held: SliceIdx) -> tuple[Passage, ...]:
        """Return the transfers of a slice out of a memory, where it lies in a stay of ``held``."""
        key = slice_, source, held
        if key not in self._found:
            self._found[key] = tuple(self._passages(slice_, source, held))
        return self._found[key]

    def offset_in_source(self, slice_: SliceIdx, source: MemoryIdx, held: SliceIdx) -> Layout:
        """Return how a slice lies in a stay, or at its place from the tensor's address."""
        problem = self._given.problem
        if self._given.home(slice_, source) is not None:
            return layout_at_place(problem, slice_)
        return layout_in_slice(problem, slice_, held)

    def _passages(self, slice_: SliceIdx, source: MemoryIdx, held: SliceIdx) -> Iterator[Passage]:
        for engine in self._given.machine.engines:
            able = [
                memory
                for memory in self._memories
                if engine.serves(source, memory)
                and self._given.routes.between(source, memory) is not None
                and self._can_copy(engine, slice_, source, held, memory)
            ]
            most = len(able) if engine.multicast else 1
            for count in range(1, most + 1):
                for destinations in combinations(able, count):
                    yield self._passage(engine, slice_, source, destinations)

    def _can_copy(
        self,
        engine: Engine,
        slice_: SliceIdx,
        source: MemoryIdx,
        held: SliceIdx,
        destination: MemoryIdx,
    ) -> bool:
        problem = self._given.problem
        part = problem.slices[slice_]
        if engine.longest is not None and part.bytes > engine.longest:
            return False
        if engine.dimensions is None:
            return True
        at_place = self._given.home(slice_, destination) is not None
        copy = strided_copy(
            part.extent,
            problem.buffers[part.buffer].item,
            self.offset_in_source(slice_, source, held),
            layout_at_place(problem, slice_) if at_place else packed_layout(problem, slice_),
        )
        return copy.dimensions <= engine.dimensions

    def _passage(
        self,
        engine: Engine,
        slice_: SliceIdx,
        source: MemoryIdx,
        destinations: tuple[MemoryIdx, ...],
    ) -> Passage:
        machine = self._given.machine
        links: dict[LinkIdx, None] = {}
        latency = 0
        for destination in destinations:
            route = self._given.routes.between(source, destination)
            if route is not None:
                links.update(dict.fromkeys(route.links))
                latency = max(latency, route.latency)
        rate = min([engine.rate, *(machine.links[link].rate for link in links)])
        size = self._given.problem.slices[slice_].bytes
        ends = [machine.memories[memory] for memory in (source, *destinations)]
        per_byte = sum(memory.energy_per_byte or 0 for memory in ends)
        per_byte += sum(machine.links[link].energy_per_byte or 0 for link in links)
        return Passage(
            engine=engine.index,
            destinations=destinations,
            links=tuple(links),
            rate=self._given.in_units(rate),
            cycles=engine.setup + latency + ceil(size / rate),
            traffic=size * sum(self._given.is_dram[memory.index] for memory in ends),
            energy=size * per_byte,
        )

    def _closure(
        self, cost: Callable[[Passage], int], slice_: SliceIdx
    ) -> tuple[tuple[int, ...], ...]:
        """Return the least sum of a cost over chains of transfers, for a slice in any stay."""
        whole = self._given.whole[slice_]
        best = [[0 if a == b else FAR for b in self._memories] for a in self._memories]
        for a in self._memories:
            for held in {slice_, whole}:
                for passage in self.of(slice_, a, held):
                    if len(passage.destinations) == 1:
                        b = passage.destinations[0]
                        best[a][b] = min(best[a][b], cost(passage))
        for middle in self._memories:
            for a in self._memories:
                for b in self._memories:
                    best[a][b] = min(best[a][b], best[a][middle] + best[middle][b], FAR)
        return tuple(map(tuple, best))
