"""Candidate residencies, and the memories in which a slice has any."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import BufferIdx, MemoryIdx, SliceIdx


class CandidateResidency(NamedTuple):
    """A residency that a model may have; those of a slice in a memory are numbered by time."""

    slice: SliceIdx
    memory: MemoryIdx
    number: int


class CandidateMemories:
    """The memories of each slice in which some plan may use a residency of it.

    A residency that nothing reads, copies or needs at the end can be left out of any plan, together
    with the transfer that fills it. What remains lies on a chain of transfers from the slice's
    origin to a use; both ends of that chain are searched here. Only the residencies that a task
    writes must exist whether used or not, so they are always among the candidates.
    """

    def __init__(self, tables: ProblemTables) -> None:
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

    def _origins(self, buffer: BufferIdx) -> tuple[MemoryIdx, ...]:
        """Return where a buffer can come into being."""
        starts = self._tables.problem.buffers[buffer].starts_in
        if starts is not None:
            return (starts,)
        writer = self._tables.writers[buffer]
        return () if writer is None else self._tables.memories_of(writer)

    def _find(self, buffer: BufferIdx) -> None:
        parts = self._tables.parts[buffer]
        origins = set(self._origins(buffer))
        reached = self._reachable_from(buffer, origins)
        useful: dict[SliceIdx, set[MemoryIdx]] = {}
        for part in parts:
            first = {
                m for m in self._memories if any(self._leads(part, buffer, s, m) for s in reached)
            }
            useful[part] = self._leading_to(part, self._uses(part))
            self._of[part] = tuple(sorted(self._reachable_from(part, first) & useful[part]))
        wanted = self._uses(buffer)
        for part in parts:
            wanted |= self._uses(part)
            wanted |= {
                m
                for m in self._memories
                if any(self._leads(part, buffer, m, to) for to in useful[part])
            }
        ends = self._tables.problem.buffers[buffer].ends_in
        if ends is not None:
            wanted.add(ends)
        wanted |= {m for m in self._memories if self._tables.is_resident(buffer, m)}
        self._of[buffer] = tuple(sorted(reached & self._leading_to(buffer, wanted) | origins))

    def _uses(self, slice_: SliceIdx) -> set[MemoryIdx]:
        """Return the memories in which a residency of the slice could serve one of its readers."""
        tables = self._tables
        local = {m for task, _ in tables.readers[slice_] for m in tables.memories_of(task)}
        return {memory for memory in self._memories if tables.can_serve(slice_, memory, local)}

    def _reachable_from(self, slice_: SliceIdx, found: set[MemoryIdx]) -> set[MemoryIdx]:
        """Return the memories that copies reach from some first ones."""
        return self._closure(found, lambda here, there: self._leads(slice_, slice_, here, there))

    def _leading_to(self, slice_: SliceIdx, found: set[MemoryIdx]) -> set[MemoryIdx]:
        """Return the memories from which copies reach one of some last ones."""
        return self._closure(found, lambda there, here: self._leads(slice_, slice_, here, there))

    def _closure(
        self, found: set[MemoryIdx], leads: Callable[[MemoryIdx, MemoryIdx], bool]
    ) -> set[MemoryIdx]:
        found, waiting = set(found), sorted(found)
        while waiting:
            one = waiting.pop()
            new = [other for other in self._memories if other not in found and leads(one, other)]
            found.update(new)
            waiting += new
        return found

    def _leads(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, destination: MemoryIdx
    ) -> bool:
        return self._tables.fits(slice_, destination) and bool(
            self._tables.transfers.out_of(holder, slice_, source, destination)
        )
