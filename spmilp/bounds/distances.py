"""Least cycles and energy of bringing a value from some memories to others, over any transfers.

And the energy bound: tasks on their most frugal kinds, and each byte over its cheapest chain.
"""

from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import TypeAlias

from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import Routes, transfer_rate
from spmilp.problem.problem import Problem, Task
from spmilp.problem.union import bytes_read_of_buffers
from spmilp.units import BufferIdx, Bytes, Cycles, Femtojoules, MemoryIdx

MOST_MEMORIES = 48
"""On larger machines single transfers are not followed up; all distances are taken for 0."""

FAR = 1 << 90
"""Distance between memories that no chain of transfers connects."""

Table: TypeAlias = list[list[int]]
Cost: TypeAlias = Callable[[Cycles, Fraction, int], int]
"""Of a transfer, from its fixed cycles, rate and energy per byte."""


class Distances:
    """Least cycles and energy of chains of transfers on one machine.

    A value gets from one memory to another by transfers that follow one another (the next one
    starts when its source is valid), each of which lasts at least as long as the fastest engine
    takes alone. A multicast lasts no less than a transfer to each of its destinations alone, for
    its latency is the greatest of theirs, and its rate the least. A value may go in parts, so
    cycles are those of the bytes asked for, as a slice that is moved as a whole.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._machine = problem.machine
        self._routes = Routes(problem.machine)
        self._cycles: dict[Bytes, Table] = {}
        self._readable: dict[tuple[bool, ...], frozenset[MemoryIdx]] = {}
        self._written: dict[tuple[bool, ...], frozenset[MemoryIdx]] = {}

    @cached_property
    def worked_in(self) -> frozenset[MemoryIdx]:
        """The memories in which some core works."""
        return frozenset(core.memory for core in self._machine.cores)

    @cached_property
    def used(self) -> frozenset[MemoryIdx]:
        """The memories in which tasks read or write; all scratchpads with remote reads."""
        if self._machine.remote is None:
            return self.worked_in
        return self.worked_in | {memory.index for memory in self._machine.spms}

    def writable(self, task: Task) -> frozenset[MemoryIdx]:
        """Return the memories in which a task may work."""
        able = _able(task)
        if able not in self._written:
            self._written[able] = frozenset(
                core.memory for core in self._machine.cores if able[core.kind]
            )
        return self._written[able]

    def readable(self, task: Task) -> frozenset[MemoryIdx]:
        """Return the memories from which a task may read: with remote reads, all scratchpads."""
        able = _able(task)
        if able not in self._readable:
            found = self.writable(task)
            if self._machine.remote is not None:
                found |= {memory.index for memory in self._machine.spms}
            self._readable[able] = found
        return self._readable[able]

    def cycles(
        self, sources: Collection[MemoryIdx], targets: Collection[MemoryIdx], size: Bytes
    ) -> Cycles:
        """Return the least cycles for ``size`` bytes from one of the sources to one target."""
        if not self._is_small or not sources or not targets or not _apart(sources, targets):
            return 0
        if size not in self._cycles:
            self._cycles[size] = self._closed(
                lambda fixed, rate, _: fixed + ceil(Fraction(size) / rate)
            )
        return _least(self._cycles[size], sources, targets)

    def energy(
        self, sources: Collection[MemoryIdx], targets: Collection[MemoryIdx], size: Bytes
    ) -> Femtojoules:
        """Return the least energy for ``size`` bytes from one of the sources to one target."""
        if not self._is_small or not sources or not targets or not _apart(sources, targets):
            return 0
        return _least(self._energies, sources, targets) * size

    def entry(self, size: Bytes) -> Cycles:
        """Return the least cycles of one transfer into the memories that tasks use."""
        return self._least_step(size, into=True)

    def exit(self, size: Bytes) -> Cycles:
        """Return the least cycles of one transfer out of the memories that tasks use."""
        return self._least_step(size, into=False)

    def starts_in_dram(self, buffer: BufferIdx) -> bool:
        """Return whether a buffer lies in a DRAM at first in which no core works itself."""
        return self._is_far_dram(self._problem.buffers[buffer].starts_in)

    def ends_in_dram(self, buffer: BufferIdx) -> bool:
        """Return whether a buffer must end in a DRAM in which no core works itself."""
        return self._is_far_dram(self._problem.buffers[buffer].ends_in)

    def _least_step(self, size: Bytes, *, into: bool) -> Cycles:
        if not self._is_small:
            return 0
        return min(
            (
                fixed + ceil(Fraction(size) / rate)
                for (source, target), options in self._edges.items()
                if (target in self.used) == into and (source in self.used) != into
                for fixed, rate, _ in options
            ),
            default=0,
        )

    def _is_far_dram(self, memory: MemoryIdx | None) -> bool:
        return (
            memory is not None
            and self._machine.memories[memory].kind is MemoryKind.DRAM
            and memory not in self.worked_in
        )

    @property
    def _is_small(self) -> bool:
        return len(self._machine.memories) <= MOST_MEMORIES

    @cached_property
    def _energies(self) -> Table:
        return self._closed(lambda fixed, rate, energy: energy)

    @cached_property
    def _edges(self) -> dict[tuple[MemoryIdx, MemoryIdx], set[tuple[Cycles, Fraction, int]]]:
        """For each pair of memories the distinct ``(fixed cycles, rate, energy per byte)``."""
        found: dict[tuple[MemoryIdx, MemoryIdx], set[tuple[Cycles, Fraction, int]]] = {}
        for source in self._machine.memories:
            for target in self._machine.memories:
                pair = source.index, target.index
                route = self._routes.between(*pair)
                engines = self._routes.engines_for(*pair)
                if source is target or route is None or not engines:
                    continue
                energy = (source.energy_per_byte or 0) + (target.energy_per_byte or 0)
                energy += sum(self._machine.links[n].energy_per_byte or 0 for n in route.links)
                found[pair] = {
                    (engine.setup + route.latency, transfer_rate(engine, route), energy)
                    for engine in (self._machine.engines[index] for index in engines)
                }
        return found

    def _closed(self, cost: Cost) -> Table:
        """Return the least sums of a cost over chains (Floyd, CACM 5(6), 1962)."""
        memories = range(len(self._machine.memories))
        best = [[0 if a == b else FAR for b in memories] for a in memories]
        for (a, b), options in self._edges.items():
            best[a][b] = min(cost(*option) for option in options)
        for middle in memories:
            onward = best[middle]
            for row in best:
                first = row[middle]
                if first < FAR:
                    row[:] = [min(one, first + rest) for one, rest in zip(row, onward, strict=True)]
        return best


def _apart(sources: Collection[MemoryIdx], targets: Collection[MemoryIdx]) -> bool:
    """Return whether two sets of memories have none in common."""
    return sources is not targets and set(targets).isdisjoint(sources)


def _able(task: Task) -> tuple[bool, ...]:
    return tuple(cycles is not None for cycles in task.cycles)


def _least(distances: Table, sources: Iterable[MemoryIdx], targets: Collection[MemoryIdx]) -> int:
    """Return the least distance; 0 where there is none, for then no plan exists anyway."""
    least = min(distances[a][b] for a in sources for b in targets)
    return least if least < FAR else 0


def energy_bound(problem: Problem) -> Femtojoules:
    """Return the energy that no plan can do without.

    A task takes at least what its most frugal kind takes, of those that can run it and have cores;
    what is not stated counts nothing. Each byte that is read of a buffer which lies in DRAM at
    first comes from there to some reader's memory; a buffer that must end in DRAM gets there from
    its writer's; and what a task reads of another one's result gets from a memory of the one to a
    memory of the other. A byte takes at least the energy of its cheapest chain of transfers.
    Different buffers move by different transfers, so their energies add up; of one buffer the
    largest demand counts.
    """
    present = {core.kind for core in problem.machine.cores}
    total = 0
    for task in problem.tasks:
        able = [kind for kind in present if task.cycles[kind] is not None]
        if task.energy and able:
            total += min(task.energy[kind] or 0 for kind in able)
    return total + _movement(problem)


def _movement(problem: Problem) -> Femtojoules:
    distances = Distances(problem)
    writers = problem.writers()
    # Most tasks read from the same memories: sets of them are collected, not memories.
    readable: dict[BufferIdx, set[frozenset[MemoryIdx]]] = {}
    least: dict[BufferIdx, Femtojoules] = {}
    for task in problem.tasks:
        for read in task.reads:
            slice_ = problem.slices[read]
            readable.setdefault(slice_.buffer, set()).add(distances.readable(task))
            writer = writers[slice_.buffer]
            if writer is not None:
                sources = distances.writable(problem.tasks[writer])
                moved = distances.energy(sources, distances.readable(task), slice_.bytes)
                least[slice_.buffer] = max(moved, least.get(slice_.buffer, 0))
    for buffer, size in zip(problem.buffers, bytes_read_of_buffers(problem), strict=True):
        start, end, writer = buffer.starts_in, buffer.ends_in, writers[buffer.index]
        if start is not None and size > 0:
            targets = frozenset[MemoryIdx]().union(*readable[buffer.index])
            least[buffer.index] = distances.energy((start,), targets, size)
        if writer is not None and end is not None:
            stored = distances.energy(
                distances.writable(problem.tasks[writer]), (end,), buffer.bytes
            )
            least[buffer.index] = max(stored, least.get(buffer.index, 0))
    return sum(least.values())
