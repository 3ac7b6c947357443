"""Least cycles and energy of bringing a value from some memories to others, over any transfers."""

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.machine.machine import MemoryKind
from spmilp.machine.routes import routes_of, transfer_rate
from spmilp.problem.problem import Problem, Task
from spmilp.units import BufferIdx, Bytes, Cycles, Femtojoules, MemoryIdx

MOST_MEMORIES = 96
"""On larger machines chains of transfers are not followed up: one transfer, by the best engine over
the best links of either end, is all that is counted of their cycles, and nothing of their energy.
"""

FAR = 1 << 60
"""Distance between memories that no chain of transfers connects."""

Ints: TypeAlias = NDArray[np.int64]
Ends: TypeAlias = frozenset[MemoryIdx]


class Option(NamedTuple):
    """A way to move data straight from one memory to another.

    Parameters
    ----------
    fixed
        Cycles before the first byte arrives.
    rate
        Bytes per cycle.
    energy
        Of a byte.
    """

    fixed: Cycles
    rate: Fraction
    energy: Femtojoules

    def cycles(self, size: Bytes) -> Cycles:
        """Return the cycles of a transfer."""
        return self.fixed + ceil(Fraction(size) / self.rate)


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
        self._cycles: dict[Bytes, Ints] = {}
        self._between: dict[tuple[Ends, Ends, Bytes], Cycles] = {}
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

    def cycles(self, sources: Ends, targets: Ends, size: Bytes) -> Cycles:
        """Return the least cycles for ``size`` bytes from one of the sources to one target."""
        return self.cycles_away(sources, targets, size) if sources.isdisjoint(targets) else 0

    def cycles_away(self, sources: Ends, targets: Ends, size: Bytes) -> Cycles:
        """Return the least cycles for ``size`` bytes from one of the sources to another memory.

        The other one is among the targets; 0 where there is no way between two of them.
        """
        key = sources, targets, size
        if key not in self._between:
            if self.is_small:
                if size not in self._cycles:
                    self._cycles[size] = self._closed(lambda option: option.cycles(size))
                self._between[key] = _least(self._cycles[size], sources, targets)
            else:
                arriving = self._alone(targets, size, arriving=True)
                leaving = self._alone(sources, size, arriving=False)
                self._between[key] = max(arriving, leaving)
        return self._between[key]

    def energy(self, sources: Ends, targets: Ends, size: Bytes) -> Femtojoules:
        """Return the least energy for ``size`` bytes from one of the sources to one target."""
        if not self.is_small or not sources.isdisjoint(targets):
            return 0
        return _least(self._energies, sources, targets) * size

    def starts_in_dram(self, buffer: BufferIdx) -> bool:
        """Return whether a buffer lies in a DRAM at first in which no core works itself."""
        return self._is_far_dram(self._problem.buffers[buffer].starts_in)

    def ends_in_dram(self, buffer: BufferIdx) -> bool:
        """Return whether a buffer must end in a DRAM in which no core works itself."""
        return self._is_far_dram(self._problem.buffers[buffer].ends_in)

    @property
    def is_small(self) -> bool:
        """Whether chains of transfers are followed up."""
        return len(self._machine.memories) <= MOST_MEMORIES

    @cached_property
    def options(self) -> dict[tuple[MemoryIdx, MemoryIdx], set[Option]]:
        """For each pair of memories that a transfer can connect, what it may be like."""
        found: dict[tuple[MemoryIdx, MemoryIdx], set[Option]] = {}
        routes = routes_of(self._machine)
        for source in self._machine.memories:
            for target in self._machine.memories:
                pair = source.index, target.index
                engines = () if source is target else routes.engines_for(*pair)
                route = routes.between(*pair) if engines else None
                if route is None:
                    continue
                energy = (source.energy_per_byte or 0) + (target.energy_per_byte or 0)
                energy += sum(self._machine.links[n].energy_per_byte or 0 for n in route.links)
                found[pair] = {
                    Option(engine.setup + route.latency, transfer_rate(engine, route), energy)
                    for engine in (self._machine.engines[index] for index in engines)
                }
        return found

    def _is_far_dram(self, memory: MemoryIdx | None) -> bool:
        return (
            memory is not None
            and self._machine.memories[memory].kind is MemoryKind.DRAM
            and memory not in self.worked_in
        )

    def _alone(self, ends: Ends, size: Bytes, *, arriving: bool) -> Cycles:
        """Return cycles that no transfer is below whose target (or source) is one of some memories.

        Its route ends (or begins) with a link of that memory.
        """
        names = {self._machine.memories[memory].name for memory in ends}
        links = [
            link
            for link in self._machine.links
            if (link.target if arriving else link.source) in names
        ]
        engines = self._machine.engines
        if not links or not engines:
            return 0
        rate = min(max(link.rate for link in links), max(engine.rate for engine in engines))
        fixed = min(link.latency for link in links) + min(engine.setup for engine in engines)
        return fixed + ceil(Fraction(size) / rate)

    @cached_property
    def _sorts(self) -> tuple[tuple[frozenset[Option], ...], Ints]:
        """Return the different options of pairs, and a table of which a pair has; -1 for none."""
        count = len(self._machine.memories)
        number: dict[frozenset[Option], int] = {}
        which = np.full((count, count), -1, np.int64)
        for pair, options in self.options.items():
            which[pair] = number.setdefault(frozenset(options), len(number))
        return tuple(number), which

    @cached_property
    def _energies(self) -> Ints:
        return self._closed(lambda option: option.energy)

    def _closed(self, cost: Callable[[Option], int]) -> Ints:
        """Return the least sums of a cost over chains (Floyd, CACM 5(6), 1962)."""
        count = len(self._machine.memories)
        sorts, which = self._sorts
        costs = [min(FAR, *(cost(option) for option in options)) for options in sorts]
        best = np.array([*costs, FAR], np.int64)[which]
        for middle in range(count):
            np.minimum(best, best[:, middle, None] + best[None, middle, :], out=best)
        return best


def _able(task: Task) -> tuple[bool, ...]:
    return tuple(cycles is not None for cycles in task.cycles)


def _least(distances: Ints, sources: Ends, targets: Ends) -> int:
    """Return the least distance between two memories; 0 where there is none.

    (Where a value has to move and no way leads there, no plan exists anyway.)
    """
    rows, columns = sorted(sources), sorted(targets)
    if not rows or not columns:
        return 0
    apart = np.array(rows)[:, None] != np.array(columns)[None, :]
    found = distances[np.ix_(rows, columns)][apart]
    least = int(found.min()) if found.size else FAR
    return least if least < FAR else 0
