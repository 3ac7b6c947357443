"""What transfers a machine offers for a slice: engine, links, cycles and costs."""

from dataclasses import dataclass
from fractions import Fraction

from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import Route, Routes, transfer_cycles, transfer_rate
from spmilp.problem.problem import Problem
from spmilp.problem.strides import (
    Layout,
    layout_at_place,
    layout_in_slice,
    packed_layout,
    strided_copy,
)
from spmilp.units import Bytes, Cycles, EngineIdx, Femtojoules, LinkIdx, MemoryIdx, SliceIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A transfer of one slice from one memory to another by one engine.

    Parameters
    ----------
    latency, moving
        Cycles of the route, and those in which bytes move; with the engine's set-up they add up to
        ``cycles``.
    rate
        Bytes per cycle that it holds on each of its links.
    traffic
        Bytes read from a DRAM and written to one, both counted.
    energy
        Femtojoules, as far as the machine states them.
    """

    engine: EngineIdx
    source: MemoryIdx
    destination: MemoryIdx
    cycles: Cycles
    latency: Cycles
    moving: Cycles
    links: tuple[LinkIdx, ...]
    rate: Fraction
    traffic: Bytes
    energy: Femtojoules


class Ways:
    """The ways of every slice, found when first asked for."""

    def __init__(self, problem: Problem, routes: Routes) -> None:
        self._problem = problem
        self._routes = routes
        self._found: dict[tuple[Bytes, MemoryIdx, MemoryIdx], tuple[Way, ...]] = {}
        self._dimensions: dict[tuple[SliceIdx, SliceIdx, MemoryIdx, MemoryIdx], int] = {}

    def between(
        self, slice_: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> tuple[Way, ...]:
        """Return the ways from one memory to another that are long enough for the slice."""
        size = self._problem.slices[slice_].bytes
        key = size, source, destination
        if key not in self._found:
            self._found[key] = self._make(size, source, destination)
        return self._found[key]

    def can_copy(self, way: Way, slice_: SliceIdx, holder: SliceIdx) -> bool:
        """Say whether a way can copy a slice out of what holds it.

        The engine's dimensions are exact. Of its congruence only that is asked which holds
        whatever the addresses are; the rest is a matter of the addresses.
        """
        engine = self._problem.machine.engines[way.engine]
        if engine.dimensions is not None:
            needed = self._dimensions_of(slice_, holder, way.source, way.destination)
            if needed > engine.dimensions:
                return False
        ends = (way.source, way.destination)
        packed = not any(self.at_place(slice_, memory) for memory in ends)
        aligned = all(
            self._problem.machine.memories[memory].alignment % engine.congruence == 0
            for memory in ends
        )
        if packed and aligned:
            return layout_in_slice(self._problem, slice_, holder).offset % engine.congruence == 0
        return True

    def at_place(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether a slice lies inside a DRAM tensor when it lies in that memory."""
        place = self._problem.buffers[self._problem.slices[slice_].buffer].place
        return place is not None and self._problem.tensors[place.tensor].memory == memory

    def _dimensions_of(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> int:
        key = slice_, holder, source, destination
        if key not in self._dimensions:
            problem = self._problem
            box = problem.slices[slice_]
            start = layout_in_slice(problem, slice_, holder)
            if self.at_place(slice_, source):
                start = layout_at_place(problem, slice_)
            end = packed_layout(problem, slice_)
            if self.at_place(slice_, destination):
                end = layout_at_place(problem, slice_)
            item = problem.buffers[box.buffer].item
            copy = strided_copy(box.extent, item, Layout(0, start.strides), Layout(0, end.strides))
            self._dimensions[key] = copy.dimensions
        return self._dimensions[key]

    def _make(self, size: Bytes, source: MemoryIdx, destination: MemoryIdx) -> tuple[Way, ...]:
        route = self._routes.between(source, destination)
        if route is None:
            return ()
        engines = self._routes.engines_for(source, destination)
        return tuple(
            self._way(index, route, size, source, destination)
            for index in engines
            if self._is_long_enough(index, size)
        )

    def _is_long_enough(self, engine: EngineIdx, size: Bytes) -> bool:
        longest = self._problem.machine.engines[engine].longest
        return longest is None or size <= longest

    def _way(
        self,
        index: EngineIdx,
        route: Route,
        size: Bytes,
        source: MemoryIdx,
        destination: MemoryIdx,
    ) -> Way:
        machine = self._problem.machine
        engine = machine.engines[index]
        cycles = transfer_cycles(engine, route, size)
        memories = [machine.memories[memory] for memory in (source, destination)]
        drams = sum(memory.kind is MemoryKind.DRAM for memory in memories)
        per_byte = sum(memory.energy_per_byte or 0 for memory in memories)
        per_byte += sum(machine.links[link].energy_per_byte or 0 for link in route.links)
        return Way(
            engine=index,
            source=source,
            destination=destination,
            cycles=cycles,
            latency=route.latency,
            moving=cycles - engine.setup - route.latency,
            links=route.links,
            rate=transfer_rate(engine, route),
            traffic=size * drams,
            energy=size * per_byte,
        )
