"""A problem's lookups that every exact model needs, computed once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations
from typing import TypeAlias

from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import Paths, paths_of
from spmilp.machine.controllers import (
    CONTROLLERS,
    MOST_DIMENSIONS,
    StridedCopy,
    defects_of,
    unit_of,
)
from spmilp.machine.machine import Memory, MemoryKind
from spmilp.machine.routes import Route, Routes, routes_of, transfer_cycles, transfer_rate
from spmilp.plan.memory import box_at_place, home
from spmilp.plan.plan import Plan
from spmilp.problem.contradictions import may_lie
from spmilp.problem.problem import Problem, Task
from spmilp.problem.strides import layout_at_place, layout_in_slice, packed_layout, strided_copy
from spmilp.units import (
    BufferIdx,
    Bytes,
    CoreIdx,
    Cycles,
    EngineIdx,
    Femtojoules,
    KindIdx,
    LinkIdx,
    MemoryIdx,
    SliceIdx,
    TaskIdx,
    align_up,
)

SliceInMemory: TypeAlias = tuple[SliceIdx, MemoryIdx]
"""A slice, and a memory in which it may lie."""


def overlapping_places(
    problem: Problem, pairs: Iterable[tuple[BufferIdx, MemoryIdx]]
) -> dict[BufferIdx, set[BufferIdx]]:
    """Return, for buffers at a place in a tensor, the others that share elements with them.

    Two buffers that both show what is there at cycle 0 do not disturb each other.
    """
    found: dict[BufferIdx, set[BufferIdx]] = {}
    placed = [(*pair, at) for pair in pairs if (at := home(problem, *pair)) is not None]
    boxes = {buffer: box_at_place(problem, buffer) for buffer, _, _ in placed}
    for (one, memory, at), (other, _, other_at) in combinations(placed, 2):
        are_initial = all(problem.buffers[b].starts_in == memory for b in (one, other))
        ranges = zip(boxes[one], boxes[other], strict=False)
        overlap = all(min(b, d) > max(a, c) for (a, b), (c, d) in ranges)
        if at == other_at and not are_initial and overlap:
            found.setdefault(one, set()).add(other)
            found.setdefault(other, set()).add(one)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferOption:
    """A transfer of one slice from one memory to another by one engine.

    It holds its links from the cycle ``on_links`` after its start, at ``rate`` bytes per cycle
    each, until all is ``sent``, and has arrived after ``cycles``. ``traffic`` counts bytes read
    from a DRAM and those written to one; ``energy`` is in femtojoules, as far as the machine states
    them.
    """

    engine: EngineIdx
    source: MemoryIdx
    destination: MemoryIdx
    on_links: Cycles
    sent: Cycles
    cycles: Cycles
    links: tuple[LinkIdx, ...]
    rate: Fraction
    traffic: Bytes
    energy: Femtojoules

    @property
    def moving(self) -> Cycles:
        """The cycles in which bytes move."""
        return self.sent - self.on_links


class TransferOptions:
    """The transfer options of every slice, computed when first asked for."""

    def __init__(self, problem: Problem, routes: Routes) -> None:
        self._problem = problem
        self._routes = routes
        self._made = cache(self._make)
        self.out_of = cache(self._out_of)

    def between(
        self, slice_: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> tuple[TransferOption, ...]:
        """Return the transfers from one memory to another that are long enough for the slice."""
        return self._made(self._problem.slices[slice_].bytes, source, destination)

    def _out_of(
        self, holder: SliceIdx, slice_: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> tuple[TransferOption, ...]:
        """Return the transfers that can copy a slice out of what holds it in the source."""
        options = self.between(slice_, source, destination)
        return tuple(option for option in options if self.can_copy(option, slice_, holder))

    def can_copy(self, option: TransferOption, slice_: SliceIdx, holder: SliceIdx) -> bool:
        """Say whether a transfer can copy a slice out of what holds it.

        The engine's dimensions and its controller's limits are exact, where residencies and tensors
        begin at the controller's unit. Of its congruence only that is asked which holds whatever
        the addresses are; the rest is a matter of the addresses.
        """
        engine = self._problem.machine.engines[option.engine]
        if engine.dimensions is not None or unit_of(engine.controller) > 1:
            copy = self._copy_of(slice_, holder, option.source, option.destination)
            if copy.dimensions > (engine.dimensions or MOST_DIMENSIONS):
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
    ) -> StridedCopy:
        problem = self._problem
        box = problem.slices[slice_]
        start = layout_in_slice(problem, slice_, holder)
        if self._at_place(slice_, source):
            start = layout_at_place(problem, slice_)
        end = packed_layout(problem, slice_)
        if self._at_place(slice_, destination):
            end = layout_at_place(problem, slice_)
        item = problem.buffers[box.buffer].item
        return strided_copy(box.extent, item, start, end)

    def _make(
        self, size: Bytes, source: MemoryIdx, destination: MemoryIdx
    ) -> tuple[TransferOption, ...]:
        route = self._routes.between(source, destination)
        if route is None:
            return ()
        engines = self._problem.machine.engines
        return tuple(
            self._option(engine, route, size, (source, destination))
            for engine in self._routes.engines_for(source, destination)
            if (longest := engines[engine].longest) is None or size <= longest
        )

    def _option(
        self, index: EngineIdx, route: Route, size: Bytes, ends: tuple[MemoryIdx, MemoryIdx]
    ) -> TransferOption:
        machine = self._problem.machine
        engine = machine.engines[index]
        takes = transfer_cycles(engine, route, size)
        memories = [machine.memories[memory] for memory in ends]
        drams = sum(memory.kind is MemoryKind.DRAM for memory in memories)
        per_byte = sum(memory.energy_per_byte or 0 for memory in memories)
        per_byte += sum(machine.links[link].energy_per_byte or 0 for link in route.links)
        return TransferOption(
            engine=index,
            source=ends[0],
            destination=ends[1],
            on_links=takes.on_links,
            sent=takes.sent,
            cycles=takes.arrived,
            links=route.links,
            rate=transfer_rate(engine, route),
            traffic=size * drams,
            energy=size * per_byte,
        )


WITHOUT_LIMIT = 2**42
"""Addresses in a DRAM without limit stay below this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Cores of one kind that work in one memory: nothing tells them apart."""

    index: int
    kind: KindIdx
    memory: MemoryIdx
    cores: tuple[CoreIdx, ...]


class ProblemTables:
    """A problem with its pools of cores, its transfer options and its memories in blocks.

    A *block* of a memory is as long as its alignment. A residency begins with a block, so no other
    can use the rest of its last one, and counting whole blocks loses nothing. ``capacity`` is that
    of each memory in blocks, tensors taken off; ``None`` without limit. ``readers`` are for each
    slice the tasks that read it, each with the read's position; ``parts`` for each buffer the
    slices of it that some task reads, itself left out. ``pins`` and ``not_after`` say where buffers
    are pinned to lie, and when tasks are pinned to have ended; what else is pinned, kinds of cores
    and tasks say.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.machine = problem.machine
        self.routes = routes_of(problem.machine)
        self.transfers = TransferOptions(problem, self.routes)
        self.pools = _pools(problem)
        self.writers = problem.writers()
        self.predecessors = problem.predecessors()
        self.capacity = tuple(self._blocks_of_memory(m) for m in problem.machine.memories)
        self.readers: tuple[tuple[tuple[TaskIdx, int], ...], ...] = _readers(problem)
        self.parts = _parts(problem, self.readers)
        self.pins = {pin.buffer: pin for pin in problem.pins.buffers}
        self.not_after = {
            pin.task: pin.not_after for pin in problem.pins.tasks if pin.not_after is not None
        }
        self._pools_of = tuple(
            tuple(
                pool.index
                for pool in self.pools
                if task.cycles[pool.kind] is not None and self._results_fit(task, pool.memory)
            )
            for task in problem.tasks
        )

    @cached_property
    def paths(self) -> Paths:
        """Critical paths before and after each task."""
        return paths_of(self.problem, Movement(self.problem))

    def pools_of(self, task: TaskIdx) -> tuple[int, ...]:
        """Return the pools that can run a task, each of whose results fits there by itself."""
        return self._pools_of[task]

    def pools_of_plan(self, plan: Plan) -> tuple[int, ...]:
        """Return the pool in which each task of a plan runs."""
        pool_of = {core: pool.index for pool in self.pools for core in pool.cores}
        return tuple(pool_of[placement.core] for placement in plan.placements)

    def cycles_on(self, task: TaskIdx, pool: int) -> Cycles:
        """Return a task's cycles in a pool that can run it, remote reads left aside."""
        return self.problem.tasks[task].cycles[self.pools[pool].kind] or 0

    def memories_of(self, task: TaskIdx) -> tuple[MemoryIdx, ...]:
        """Return the memories in which a task may run."""
        found = (self.pools[pool].memory for pool in self.pools_of(task))
        return tuple(dict.fromkeys(found))

    def is_dram(self, memory: MemoryIdx) -> bool:
        """Say whether a memory is a DRAM."""
        return self.machine.memories[memory].kind is MemoryKind.DRAM

    def holders(self, slice_: SliceIdx) -> tuple[SliceIdx, ...]:
        """Return what a slice can be copied out of or read in: itself, and its buffer."""
        return tuple(dict.fromkeys((slice_, self.problem.slices[slice_].buffer)))

    def at_place(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether a slice lies inside a DRAM tensor when it lies in that memory."""
        return home(self.problem, slice_, memory) is not None

    def fits(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether a slice fits a memory at all: at its place, or between reserved ranges.

        And whether no pin keeps it out.
        """
        if self.at_place(slice_, memory):
            return True
        room = first_blocks(self.machine.memories[memory], self.problem.slices[slice_].bytes)
        return bool(room) and self._may_lie(slice_, memory)

    def _may_lie(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether pins let a slice lie in a memory."""
        buffer = self.problem.slices[slice_].buffer
        pin = self.pins.get(buffer)
        if pin is not None and pin.whole and memory in pin.memories:
            return slice_ == buffer
        return may_lie(self.machine, pin, memory)

    def address(self, slice_: SliceIdx | None, memory: MemoryIdx) -> Bytes | None:
        """Return the address to which a slice is pinned in a memory, if it is."""
        pin = None if slice_ is None else self.pins.get(self.problem.slices[slice_].buffer)
        return None if pin is None or memory not in pin.memories else pin.address

    @cached_property
    def fixed_memories(self) -> frozenset[MemoryIdx]:
        """The memories in which something is pinned to an address."""
        fixed = (pin for pin in self.pins.values() if pin.address is not None)
        return frozenset(memory for pin in fixed for memory in pin.memories)

    def is_resident(self, slice_: SliceIdx, memory: MemoryIdx) -> bool:
        """Say whether a slice is a buffer that is pinned to be resident in a memory."""
        pin = self.pins.get(slice_)
        return pin is not None and pin.resident and memory in pin.memories

    def residents(self) -> Iterator[tuple[BufferIdx, MemoryIdx]]:
        """Yield the buffers that are pinned to be resident, with their memories."""
        for pin in self.pins.values():
            for memory in pin.memories if pin.resident else ():
                yield pin.buffer, memory

    def readers_of_any(self, buffer: BufferIdx) -> tuple[TaskIdx, ...]:
        """Return the tasks that read a buffer or a slice of it."""
        parts = (buffer, *self.parts[buffer])
        return tuple(sorted({task for part in parts for task, _ in self.readers[part]}))

    def _results_fit(self, task: Task, memory: MemoryIdx) -> bool:
        """Say whether a task's results and scratch fit a memory, each by itself."""
        alone = first_blocks(self.machine.memories[memory], task.scratch)
        return bool(alone) and all(self.fits(written, memory) for written in task.writes)

    def blocks(self, size: Bytes, memory: MemoryIdx) -> int:
        """Return the blocks that so many bytes occupy in a memory."""
        return -(-size // self.machine.memories[memory].alignment)

    def blocks_of(self, slice_: SliceIdx, memory: MemoryIdx) -> int:
        """Return the blocks that a slice occupies when it lies in a memory by itself."""
        return self.blocks(self.problem.slices[slice_].bytes, memory)

    def can_serve(self, slice_: SliceIdx, memory: MemoryIdx, local: Iterable[MemoryIdx]) -> bool:
        """Say whether a task in one of some local memories can read a slice in a memory."""
        return any(self.remote_cycles(slice_, memory, here) is not None for here in local)

    def remote_cycles(self, slice_: SliceIdx, source: MemoryIdx, local: MemoryIdx) -> Cycles | None:
        """Return the extra cycles of reading a slice elsewhere; ``None`` if that is impossible."""
        if source == local:
            return 0
        remote = self.machine.remote
        if remote is None or self.machine.memories[source].kind is not MemoryKind.SPM:
            return None
        route = self.routes.between(source, local)
        if route is None:
            return None
        if remote.longest_route is not None and route.hops > remote.longest_route:
            return None
        size = self.problem.slices[slice_].bytes
        extra = size * route.hops * remote.cycles_per_byte_hop
        return -(-extra.numerator // extra.denominator)

    def _blocks_of_memory(self, memory: Memory) -> int | None:
        """Return the blocks of a memory in which a residency may lie, tensors taken off.

        A residency may begin wherever a block begins between two reserved ranges, and ends before
        the next range: the last, shorter block of such a stretch counts as a whole one.
        """
        if memory.size is None:
            return None
        blocks, low = 0, 0
        for start, end in (*((r.start, r.end) for r in memory.reserved), (memory.size, None)):
            first = align_up(low, memory.alignment)
            if start > first:
                blocks += -(-(start - first) // memory.alignment)
            low = end or 0
        for tensor in self.problem.tensors:
            if tensor.memory == memory.index:
                blocks -= self.blocks(tensor.bytes, memory.index)
        return blocks


def first_blocks(memory: Memory, size: Bytes) -> list[tuple[int, int]]:
    """Return the ranges of blocks, both ends included, with which so many bytes may begin."""
    found, low = [], 0
    limit = memory.size if memory.size is not None else WITHOUT_LIMIT
    for start, end in (*((r.start, r.end) for r in memory.reserved), (limit, limit)):
        first, last = -(-low // memory.alignment), (start - size) // memory.alignment
        if first <= last:
            found.append((first, last))
        low = end
    return found


def _pools(problem: Problem) -> tuple[Pool, ...]:
    together: dict[tuple[KindIdx, MemoryIdx], list[CoreIdx]] = {}
    for core in problem.machine.cores:
        together.setdefault((core.kind, core.memory), []).append(core.index)
    return tuple(
        Pool(index=index, kind=kind, memory=memory, cores=tuple(cores))
        for index, ((kind, memory), cores) in enumerate(together.items())
    )


def _readers(problem: Problem) -> tuple[tuple[tuple[TaskIdx, int], ...], ...]:
    found: list[list[tuple[TaskIdx, int]]] = [[] for _ in problem.slices]
    for task in problem.tasks:
        for position, read in enumerate(task.reads):
            found[read].append((task.index, position))
    return tuple(tuple(some) for some in found)


def _parts(
    problem: Problem, readers: tuple[tuple[tuple[TaskIdx, int], ...], ...]
) -> tuple[tuple[SliceIdx, ...], ...]:
    found: list[list[SliceIdx]] = [[] for _ in problem.buffers]
    for slice_ in problem.slices[len(problem.buffers) :]:
        if readers[slice_.index]:
            found[slice_.buffer].append(slice_.index)
    return tuple(tuple(some) for some in found)
