"""A problem's lookups that every exact model needs, computed once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import Paths, paths_of
from spmilp.machine.machine import Memory, MemoryKind
from spmilp.machine.routes import routes_of
from spmilp.plan.plan import Plan
from spmilp.problem.allowed import may_lie
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.formulation.places import home
from spmilp.solvers.formulation.transfer_options import TransferOptions
from spmilp.units import (
    BufferIdx,
    Bytes,
    CoreIdx,
    Cycles,
    KindIdx,
    MemoryIdx,
    SliceIdx,
    TaskIdx,
    TensorIdx,
    align_up,
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
    can use the rest of its last one, and counting whole blocks loses nothing.

    Attributes
    ----------
    capacity
        Of each memory in blocks, tensors taken off; ``None`` without limit.
    readers
        For each slice, the tasks that read it, each with the read's position.
    parts
        For each buffer, the slices of it that some task reads, itself left out.
    pins, not_after
        Where buffers are pinned to lie, and when tasks are pinned to have ended; what else is
        pinned, kinds of cores and tasks say.
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
        self._pools_of = tuple(tuple(self._able_pools(task)) for task in problem.tasks)

    @cached_property
    def paths(self) -> Paths:
        """Critical paths before and after each task."""
        return paths_of(self.problem, Movement(self.problem))

    @cached_property
    def ancestors(self) -> tuple[frozenset[TaskIdx], ...]:
        """For each task, all tasks that must have ended before it starts."""
        found: list[frozenset[TaskIdx]] = [frozenset() for _ in self.problem.tasks]
        for task in self.problem.topological_order():
            direct = self.predecessors[task]
            found[task] = frozenset(direct).union(*(found[earlier] for earlier in direct))
        return tuple(found)

    def pools_of(self, task: TaskIdx) -> tuple[int, ...]:
        """Return the pools that can run a task, each of whose results fits there by itself."""
        return self._pools_of[task]

    def _able_pools(self, task: Task) -> Iterable[int]:
        for pool in self.pools:
            if task.cycles[pool.kind] is not None and self._results_fit(task, pool.memory):
                yield pool.index

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

    def has_single_core(self, memory: MemoryIdx) -> bool:
        """Say whether exactly one core works in a memory."""
        return sum(core.memory == memory for core in self.machine.cores) == 1

    def is_dram(self, memory: MemoryIdx) -> bool:
        """Say whether a memory is a DRAM."""
        return self.machine.memories[memory].kind is MemoryKind.DRAM

    def holders(self, slice_: SliceIdx) -> tuple[SliceIdx, ...]:
        """Return what a slice can be copied out of or read in: itself, and its buffer."""
        return tuple(dict.fromkeys((slice_, self.problem.slices[slice_].buffer)))

    def home(self, slice_: SliceIdx, memory: MemoryIdx) -> TensorIdx | None:
        """Return the tensor in which a slice lies in a memory; ``None`` if it lies by itself."""
        return home(self.problem, slice_, memory)

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

    def working_set(self, task: TaskIdx, memory: MemoryIdx) -> int:
        """Return blocks that a task has for itself while it runs in a memory, at the least.

        Its results and scratch. In the memory of a single core its operands too: of each buffer
        what it reads as a whole, or the parts, which may lie apart or inside the whole. What
        results may take over from operands counts once.
        """
        problem, wanted = self.problem, self.problem.tasks[task]
        total = self.blocks(wanted.scratch, memory)
        results = {b: self._own_blocks(b, memory) for b in wanted.writes}
        total += sum(results.values())
        if self.machine.remote is not None or not self.has_single_core(memory):
            taken = {written for _, written in wanted.in_place}
            return total - sum(results[b] for b in taken)
        parts: dict[BufferIdx, int] = {}
        for read in wanted.reads:
            buffer = problem.slices[read].buffer
            parts[buffer] = parts.get(buffer, 0) + self._own_blocks(read, memory)
        total += sum(min(n, self._own_blocks(b, memory)) for b, n in parts.items())
        for written in wanted.writes:
            over = [self._own_blocks(r, memory) for r, w in wanted.in_place if w == written]
            total -= min(results[written], max(over, default=0))
        return total

    def _own_blocks(self, slice_: SliceIdx, memory: MemoryIdx) -> int:
        return 0 if self.at_place(slice_, memory) else self.blocks_of(slice_, memory)

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
