"""What transfers a machine offers for a slice: engine, links, cycles and costs."""

from dataclasses import dataclass
from fractions import Fraction

from spmilp.machine.controllers import CONTROLLERS, MOST_DIMENSIONS, Block, defects_of, unit_of
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
from spmilp.solvers.formulation.places import home
from spmilp.units import Bytes, Cycles, EngineIdx, Femtojoules, LinkIdx, MemoryIdx, SliceIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferOption:
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


class TransferOptions:
    """The transfer options of every slice, computed when first asked for."""

    def __init__(self, problem: Problem, routes: Routes) -> None:
        self._problem = problem
        self._routes = routes
        self._found: dict[tuple[Bytes, MemoryIdx, MemoryIdx], tuple[TransferOption, ...]] = {}
        self._out_of: dict[
            tuple[SliceIdx, SliceIdx, MemoryIdx, MemoryIdx], tuple[TransferOption, ...]
        ] = {}

    def between(
        self, slice_: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> tuple[TransferOption, ...]:
        """Return the transfers from one memory to another that are long enough for the slice."""
        size = self._problem.slices[slice_].bytes
        key = size, source, destination
        if key not in self._found:
            self._found[key] = self._make(size, source, destination)
        return self._found[key]

    def out_of(
        self, holder: SliceIdx, slice_: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> tuple[TransferOption, ...]:
        """Return the transfers that can copy a slice out of what holds it in the source."""
        key = holder, slice_, source, destination
        found = self._out_of.get(key)
        if found is None:
            options = self.between(slice_, source, destination)
            found = tuple(option for option in options if self.can_copy(option, slice_, holder))
            self._out_of[key] = found
        return found

    def can_copy(self, option: TransferOption, slice_: SliceIdx, holder: SliceIdx) -> bool:
        """Say whether a transfer can copy a slice out of what holds it.

        The engine's dimensions and its controller's limits are exact, where residencies and tensors
        begin at the controller's unit. Of its congruence only that is asked which holds whatever
        the addresses are; the rest is a matter of the addresses.
        """
        engine = self._problem.machine.engines[option.engine]
        if engine.dimensions is not None or unit_of(engine.controller) > 1:
            copy = self._copy_of(slice_, holder, option.source, option.destination)
            if 1 + len(copy.loops) > (engine.dimensions or MOST_DIMENSIONS):
                return False
            if engine.controller and any(defects_of(copy, CONTROLLERS[engine.controller])):
                return False
        ends = (option.source, option.destination)
        packed = not any(self._at_place(slice_, memory) for memory in ends)
        aligned = all(
            self._problem.machine.memories[memory].alignment % engine.congruence == 0
            for memory in ends
        )
        if packed and aligned:
            return layout_in_slice(self._problem, slice_, holder).offset % engine.congruence == 0
        return True

    def _at_place(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        return home(self._problem, slice_, memory) is not None

    def _copy_of(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> Block:
        problem = self._problem
        box = problem.slices[slice_]
        start = layout_in_slice(problem, slice_, holder)
        if self._at_place(slice_, source):
            start = layout_at_place(problem, slice_)
        end = packed_layout(problem, slice_)
        if self._at_place(slice_, destination):
            end = layout_at_place(problem, slice_)
        item = problem.buffers[box.buffer].item
        copy = strided_copy(box.extent, item, Layout(0, start.strides), Layout(0, end.strides))
        return Block(source=start.offset, destination=end.offset, run=copy.run, loops=copy.loops)

    def _make(
        self, size: Bytes, source: MemoryIdx, destination: MemoryIdx
    ) -> tuple[TransferOption, ...]:
        route = self._routes.between(source, destination)
        if route is None:
            return ()
        return tuple(
            self._option(engine, route, size, (source, destination))
            for engine in self._routes.engines_for(source, destination)
            if self._is_long_enough(engine, size)
        )

    def _is_long_enough(self, engine: EngineIdx, size: Bytes) -> bool:
        longest = self._problem.machine.engines[engine].longest
        return longest is None or size <= longest

    def _option(
        self, index: EngineIdx, route: Route, size: Bytes, ends: tuple[MemoryIdx, MemoryIdx]
    ) -> TransferOption:
        machine = self._problem.machine
        engine = machine.engines[index]
        cycles = transfer_cycles(engine, route, size)
        memories = [machine.memories[memory] for memory in ends]
        drams = sum(memory.kind is MemoryKind.DRAM for memory in memories)
        per_byte = sum(memory.energy_per_byte or 0 for memory in memories)
        per_byte += sum(machine.links[link].energy_per_byte or 0 for link in route.links)
        return TransferOption(
            engine=index,
            source=ends[0],
            destination=ends[1],
            cycles=cycles,
            latency=route.latency,
            moving=cycles - engine.setup - route.latency,
            links=route.links,
            rate=transfer_rate(engine, route),
            traffic=size * drams,
            energy=size * per_byte,
        )
