"""When a slice can be in a memory at the earliest, and when it is of use there at the latest."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from spmilp.solvers.formulation.places import SliceInMemory
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import Cycles, MemoryIdx, SliceIdx


class Step(NamedTuple):
    """The fastest transfer of a slice, or of a part of it, out of one memory into another."""

    source: SliceInMemory
    target: SliceInMemory
    cycles: Cycles


class Windows:
    """Cycles that must pass before and after, by the shortest chains of transfers.

    A residency that nothing uses can be left out of any plan, with the transfer that fills it. The
    others come after their origin and each transfer from there, and before a read, or before the
    transfers that lead to one; the tasks have their own paths before and after them.
    """

    def __init__(self, tables: ProblemTables, pairs: Iterable[SliceInMemory]) -> None:
        self._tables = tables
        self._pairs = tuple(pairs)
        steps = tuple(self._all_steps())
        self._valid = _shortest(self._origins(), steps)
        backward = [Step(step.target, step.source, step.cycles) for step in steps]
        self._rest = _shortest(self._uses(), backward)
        self._start: dict[SliceInMemory, Cycles] = {}
        for step in steps:
            if step.source in self._valid:
                start = self._valid[step.source]
                self._start[step.target] = min(start, self._start.get(step.target, start))

    def start(self, pair: SliceInMemory) -> Cycles:
        """Return a cycle before which no transfer of the slice into the memory can begin."""
        return self._start.get(pair, 0)

    def rest(self, pair: SliceInMemory) -> Cycles:
        """Return cycles that pass from when it is valid there to the makespan, if it is used."""
        return self._rest.get(pair, 0)

    def _all_steps(self) -> Iterator[Step]:
        memories: dict[SliceIdx, list[MemoryIdx]] = defaultdict(list)
        for slice_, memory in self._pairs:
            memories[slice_].append(memory)
        for slice_, memory in self._pairs:
            for holder in self._tables.holders(slice_):
                for source in memories.get(holder, ()):
                    options = self._tables.transfers.out_of(holder, slice_, source, memory)
                    if options:
                        cycles = min(option.cycles for option in options)
                        yield Step((holder, source), (slice_, memory), cycles)

    def _origins(self) -> dict[SliceInMemory, Cycles]:
        """Return when each buffer is in the memories where it comes into being."""
        tables, found = self._tables, {}
        for slice_, memory in self._pairs:
            if slice_ != tables.problem.slices[slice_].buffer:
                continue
            writer = tables.writers[slice_]
            if tables.problem.buffers[slice_].starts_in == memory:
                found[slice_, memory] = 0
            elif writer is not None and memory in tables.memories_of(writer):
                found[slice_, memory] = tables.paths.head[writer] + tables.paths.cycles[writer]
        return found

    def _uses(self) -> dict[SliceInMemory, Cycles]:
        """Return the least cycles from a direct use of each pair to the makespan."""
        uses = {pair: list(self._rests_of_uses(pair)) for pair in self._pairs}
        return {pair: min(some) for pair, some in uses.items() if some}

    def _rests_of_uses(self, pair: SliceInMemory) -> Iterator[Cycles]:
        tables, (slice_, memory) = self._tables, pair
        whole = slice_ == tables.problem.slices[slice_].buffer
        if whole and tables.problem.buffers[slice_].ends_in == memory:
            yield 0
        for part in (slice_, *(tables.parts[slice_] if whole else ())):
            for task, _ in tables.readers[part]:
                if tables.can_serve(part, memory, tables.memories_of(task)):
                    yield tables.paths.tail[task]


def _shortest(
    found: dict[SliceInMemory, Cycles], steps: Iterable[Step]
) -> dict[SliceInMemory, Cycles]:
    """Shorten the distances along the steps until none gets shorter."""
    steps = tuple(steps)
    changed = True
    while changed:
        changed = False
        for source, target, cycles in steps:
            if source in found and found[source] + cycles < found.get(target, 1 << 62):
                found[target] = found[source] + cycles
                changed = True
    return found
