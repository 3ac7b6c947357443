"""When a slice can be in a memory at the earliest, and when it is of use there at the latest."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from spmilp.bounds.paths import Paths
from spmilp.problem.problem import Problem
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import Cycles, MemoryIdx, SliceIdx

Pair: TypeAlias = tuple[SliceIdx, MemoryIdx]
"""A slice in a memory."""


class Step(NamedTuple):
    """The fastest transfer of a slice, or of a part of it, out of one memory into another."""

    source: Pair
    target: Pair
    cycles: Cycles


class Windows:
    """Cycles that must pass before and after, by the shortest chains of transfers.

    What is of no use can be left out of any plan, with the transfer that brings it. What is left
    comes after its origin and each transfer from there, and before a read, or before the transfers
    that lead to one; the tasks have their own paths before and after them.
    """

    def __init__(
        self, problem: Problem, tables: ProblemTables, paths: Paths, pairs: Iterable[Pair]
    ) -> None:
        self._problem = problem
        self._tables = tables
        self._paths = paths
        self._pairs = tuple(pairs)
        self._steps = tuple(self._all_steps())
        self._valid = self._earliest()
        self._rest = self._least_rest()
        self._start: dict[Pair, Cycles] = {}
        for step in self._steps:
            if step.source in self._valid:
                start = self._valid[step.source]
                self._start[step.target] = min(start, self._start.get(step.target, start))

    def start(self, pair: Pair) -> Cycles:
        """Return a cycle before which no transfer of the slice into the memory can begin."""
        return self._start.get(pair, 0)

    def valid(self, pair: Pair) -> Cycles:
        """Return a cycle before which the slice is not valid in the memory."""
        return self._valid.get(pair, 0)

    def rest(self, pair: Pair) -> Cycles:
        """Return cycles that pass from when it is valid there to the makespan, if it is used."""
        return self._rest.get(pair, 0)

    def _all_steps(self) -> Iterator[Step]:
        ways = self._tables.transfers
        memories: dict[SliceIdx, list[MemoryIdx]] = {}
        for slice_, memory in self._pairs:
            memories.setdefault(slice_, []).append(memory)
        for slice_, memory in self._pairs:
            parent = self._problem.slices[slice_].buffer
            for holder in dict.fromkeys((slice_, parent)):
                for source in memories.get(holder, ()):
                    cycles = [
                        way.cycles
                        for way in ways.between(slice_, source, memory)
                        if ways.can_copy(way, slice_, holder)
                    ]
                    if cycles:
                        yield Step((holder, source), (slice_, memory), min(cycles))

    def _earliest(self) -> dict[Pair, Cycles]:
        found: dict[Pair, Cycles] = {}
        for slice_, memory in self._pairs:
            if slice_ != self._problem.slices[slice_].buffer:
                continue
            writer = self._tables.writers[slice_]
            if self._problem.buffers[slice_].starts_in == memory:
                found[slice_, memory] = 0
            elif writer is not None and memory in self._tables.memories_of(writer):
                found[slice_, memory] = self._paths.head[writer] + self._paths.cycles[writer]
        self._relax(found, self._steps)
        return found

    def _least_rest(self) -> dict[Pair, Cycles]:
        found: dict[Pair, Cycles] = {}
        for pair in self._pairs:
            uses = list(self._rests_of_uses(pair))
            if uses:
                found[pair] = min(uses)
        self._relax(found, [Step(step.target, step.source, step.cycles) for step in self._steps])
        return found

    def _rests_of_uses(self, pair: Pair) -> Iterator[Cycles]:
        slice_, memory = pair
        whole = slice_ == self._problem.slices[slice_].buffer
        if whole and self._problem.buffers[slice_].ends_in == memory:
            yield 0
        for part in (slice_, *(self._tables.parts[slice_] if whole else ())):
            for task, _ in self._tables.readers[part]:
                local = self._tables.memories_of(task)
                if any(self._tables.remote_cycles(part, memory, m) is not None for m in local):
                    yield self._paths.tail[task]

    def _relax(self, found: dict[Pair, Cycles], steps: Iterable[Step]) -> None:
        """Shorten the distances along the steps until none gets shorter."""
        steps = tuple(steps)
        changed = True
        while changed:
            changed = False
            for source, target, cycles in steps:
                if source in found and found[source] + cycles < found.get(target, 1 << 62):
                    found[target] = found[source] + cycles
                    changed = True
