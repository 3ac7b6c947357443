"""The problem's tables, and with them unconstrained memories and slices that last.

And windows: when a slice can be in a memory at the earliest, and of use there at the latest.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import gcd, lcm
from typing import NamedTuple

from spmilp.machine.machine import Memory, MemoryKind
from spmilp.problem.problem import Problem
from spmilp.solvers.formulation.candidates import CandidateMemories
from spmilp.solvers.formulation.places import SliceInMemory, overlapping_places
from spmilp.solvers.formulation.tables import ProblemTables, first_blocks
from spmilp.units import Cycles, MemoryIdx, SliceIdx, align_up


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
        if tables.is_resident(slice_, memory):
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


class MilpTables(ProblemTables):
    """Tables of a problem.

    Attributes
    ----------
    pairs
        Each slice with each memory in which it may lie.
    modulus
        The least common multiple of the engines' congruences; 1 when there are none.
    contested
        For each pair at a place in a tensor, the pairs that share elements with it, unless both
        hold initial data; a pair contests itself when it can be transferred there.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.modulus = lcm(*(engine.congruence for engine in self.machine.engines))
        self.pairs = tuple(self._all_pairs())
        self.windows = Windows(self, self.pairs)
        overlapping = overlapping_places(problem, self.pairs)
        self.contested = {pair: (*some, pair) for pair, some in overlapping.items()}

    def unconstrained_memories(self, addressed: bool) -> frozenset[MemoryIdx]:
        """Return the memories that are large enough for all that could ever lie in them.

        Parameters
        ----------
        addressed
            Whether every address in a scratchpad counts.
        """
        memories = self.machine.memories
        return frozenset(m.index for m in memories if self._is_unconstrained(m, addressed))

    def lasting_pairs(self, unconstrained: frozenset[MemoryIdx]) -> frozenset[SliceInMemory]:
        """Return the pairs whose slice lasts once it is there.

        In an unconstrained memory any two residencies of a slice can become one, filled by
        whichever of the fills ends first: nothing has to leave. The same holds at a place that
        nothing else contests.
        """
        return frozenset(
            pair
            for pair in self.pairs
            if (pair not in self.contested if self.at_place(*pair) else pair[1] in unconstrained)
        )

    def residues(self, memory: MemoryIdx) -> int:
        """Return how many multiples of the alignment differ modulo the engines' congruences."""
        return self.modulus // gcd(self.modulus, self.machine.memories[memory].alignment)

    def _is_unconstrained(self, memory: Memory, addressed: bool) -> bool:
        """Say whether one free range holds everything, each on bytes of its own."""
        if memory.size is None:
            return True
        if memory.index in self.fixed_memories or (addressed and memory.kind is MemoryKind.SPM):
            return False
        slack = lcm(memory.alignment, self.modulus) if self.modulus > 1 else 0
        sizes = [t.bytes for t in self.problem.tensors if t.memory == memory.index]
        sizes += [
            self.problem.slices[slice_].bytes
            for slice_, where in self.pairs
            if where == memory.index and not self.at_place(slice_, where)
        ]
        sizes += [
            task.scratch
            for task in self.problem.tasks
            if task.scratch and memory.index in self.memories_of(task.index)
        ]
        wanted = sum(align_up(size, memory.alignment) + slack for size in sizes)
        return bool(first_blocks(memory, wanted))

    def _all_pairs(self) -> Iterator[SliceInMemory]:
        candidates = CandidateMemories(self)
        for slice_ in candidates.slices():
            buffer = self.problem.slices[slice_].buffer
            for memory in candidates.of(slice_):
                # Where the whole buffer lies from the start, a part at its place adds nothing.
                starts = self.problem.buffers[buffer].starts_in == memory
                if slice_ == buffer or not starts or not self.at_place(slice_, memory):
                    yield slice_, memory
