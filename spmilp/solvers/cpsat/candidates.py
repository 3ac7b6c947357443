"""In which memories a slice can and need lie: reached from its origin, and on the way to a use."""

from collections.abc import Iterable

from spmilp.solvers.cpsat.tables import Tables
from spmilp.units import BufferIdx, MemoryIdx, SliceIdx


class Candidates:
    """The memories of each slice in which some plan may use a residency of it.

    A residency that nothing reads, copies or needs at the end can be left out of any plan, together
    with the transfer that fills it. What remains lies on a chain of transfers from the slice's
    origin to a use; both ends of that chain are searched here. Only the residencies that a task
    writes must exist whether used or not, so they are always among the candidates.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._memories = range(len(tables.machine.memories))
        self._of: dict[SliceIdx, tuple[MemoryIdx, ...]] = {}
        for buffer in tables.problem.buffers:
            self._find(buffer.index)

    def of(self, slice_: SliceIdx) -> tuple[MemoryIdx, ...]:
        """Return the memories of a slice, sorted; none for a slice that nothing reads."""
        return self._of.get(slice_, ())

    def slices(self) -> Iterable[SliceIdx]:
        """Return the slices that have candidates, in order."""
        return sorted(self._of)

    def origins(self, buffer: BufferIdx) -> tuple[MemoryIdx, ...]:
        """Return where a buffer can come into being."""
        starts = self._tables.problem.buffers[buffer].starts_in
        if starts is not None:
            return (starts,)
        writer = self._tables.writers[buffer]
        return () if writer is None else self._tables.memories_of(writer)

    def _find(self, buffer: BufferIdx) -> None:
        parts = self._tables.parts[buffer]
        origins = set(self.origins(buffer))
        reached = self._spread(buffer, origins)
        useful_parts: dict[SliceIdx, set[MemoryIdx]] = {}
        for part in parts:
            first = {m for m in self._memories if self._can_come(part, buffer, reached, m)}
            useful_parts[part] = self._gather(part, self._uses(part))
            self._of[part] = tuple(sorted(self._spread(part, first) & useful_parts[part]))
        wanted = self._uses(buffer)
        for part in parts:
            wanted |= self._uses(part)
            wanted |= {
                m
                for m in self._memories
                if any(self._leads(part, buffer, m, to) for to in useful_parts[part])
            }
        ends = self._tables.problem.buffers[buffer].ends_in
        if ends is not None:
            wanted.add(ends)
        self._of[buffer] = tuple(sorted(reached & self._gather(buffer, wanted) | origins))

    def _uses(self, slice_: SliceIdx) -> set[MemoryIdx]:
        """Return the memories in which a residency of the slice could serve one of its readers."""
        tables = self._tables
        local = {m for task, _ in tables.readers[slice_] for m in tables.memories_of(task)}
        return {
            memory
            for memory in self._memories
            if any(tables.remote_cycles(slice_, memory, there) is not None for there in local)
        }

    def _spread(self, slice_: SliceIdx, found: set[MemoryIdx]) -> set[MemoryIdx]:
        """Return the memories that copies reach from some first ones."""
        found, waiting = set(found), sorted(found)
        while waiting:
            here = waiting.pop()
            for there in self._memories:
                if there not in found and self._leads(slice_, slice_, here, there):
                    found.add(there)
                    waiting.append(there)
        return found

    def _gather(self, slice_: SliceIdx, found: set[MemoryIdx]) -> set[MemoryIdx]:
        """Return the memories from which copies reach one of some last ones."""
        found, waiting = set(found), sorted(found)
        while waiting:
            there = waiting.pop()
            for here in self._memories:
                if here not in found and self._leads(slice_, slice_, here, there):
                    found.add(here)
                    waiting.append(here)
        return found

    def _can_come(
        self, part: SliceIdx, buffer: BufferIdx, sources: set[MemoryIdx], memory: MemoryIdx
    ) -> bool:
        return any(self._leads(part, buffer, source, memory) for source in sources)

    def _leads(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> bool:
        ways = self._tables.ways
        return self._tables.fits(slice_, destination) and any(
            ways.can_copy(way, slice_, holder) for way in ways.between(slice_, source, destination)
        )
