"""What the model asks of a problem: where slices can lie, and where nothing has to give way.

The tables of routes, transfers and candidate memories are those of the CP-SAT solver: they say what
the problem is. What lasts, and everything from there on, is decided here anew.
"""

from collections.abc import Iterator
from math import gcd, lcm

from spmilp.bounds.movement import Movement
from spmilp.bounds.paths import paths_of
from spmilp.machine.machine import Memory, MemoryKind
from spmilp.problem.problem import Problem
from spmilp.solvers.formulation.candidates import CandidateMemories
from spmilp.solvers.formulation.places import SliceInMemory, overlapping_places
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.milp.windows import Windows
from spmilp.units import (
    Bytes,
    MemoryIdx,
    SliceIdx,
    TaskIdx,
    TensorIdx,
    align_up,
)


class Lookup:
    """A problem with its tables.

    Attributes
    ----------
    pairs
        Each slice with each memory in which it may lie.
    modulus
        What the engines want addresses to be congruent by, all together; 1 when none does.
    contested
        For each pair at a place in a tensor, the pairs that share elements with it and do not show
        what is there at cycle 0 like it; a pair contests itself when it can be moved in.
    before
        For each task, the tasks that must have ended before it starts, all of them.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.machine = problem.machine
        self.tables = ProblemTables(problem)
        self.paths = paths_of(problem, Movement(problem))
        self._candidates = CandidateMemories(self.tables)
        self._memories = tuple(self.tables.memories_of(task.index) for task in problem.tasks)
        self.modulus = lcm(*(engine.congruence for engine in self.machine.engines))
        self.pairs = tuple(self._all_pairs())
        self.windows = Windows(problem, self.tables, self.paths, self.pairs)
        self.contested = self._find_contested()
        self.before = self._all_before()

    def memories_of(self, task: TaskIdx) -> tuple[MemoryIdx, ...]:
        """Return the memories in which a task may run."""
        return self._memories[task]

    def home(self, slice_: SliceIdx, memory: MemoryIdx) -> TensorIdx | None:
        """Return the tensor at whose place a slice lies in a memory; ``None`` if it is packed."""
        return self.tables.home(slice_, memory)

    def roomy_memories(self, addressed: bool) -> frozenset[MemoryIdx]:
        """Return the memories with room for all that could ever lie in them.

        Parameters
        ----------
        addressed
            Whether every address in a scratchpad counts.
        """
        return frozenset(m.index for m in self.machine.memories if self._is_roomy(m, addressed))

    def lasting_pairs(self, roomy: frozenset[MemoryIdx]) -> frozenset[tuple[SliceIdx, MemoryIdx]]:
        """Return the pairs whose slice lasts once it is there.

        In a memory with room for everything, any two residencies of a slice can become one, filled
        by whichever of the fills ends first: nothing has to give way. The same holds at a place
        that nothing else contests.
        """
        return frozenset(
            (slice_, memory)
            for slice_, memory in self.pairs
            if (
                memory in roomy
                if self.home(slice_, memory) is None
                else (slice_, memory) not in self.contested
            )
        )

    def free_ranges(self, memory: Memory) -> list[tuple[Bytes, Bytes | None]]:
        """Return the ranges of addresses between the reserved ones."""
        starts = [0, *(taken.end for taken in memory.reserved)]
        ends = [*(taken.start for taken in memory.reserved), memory.size]
        return [
            (start, end)
            for start, end in zip(starts, ends, strict=True)
            if end is None or start < end
        ]

    def step(self, memory: Memory) -> Bytes:
        """Return a distance by which any address can be moved without changing its residues."""
        return lcm(memory.alignment, self.modulus)

    def residues(self, memory: Memory) -> int:
        """Return how many multiples of the alignment differ modulo the engines' congruences."""
        return self.modulus // gcd(self.modulus, memory.alignment)

    def _is_roomy(self, memory: Memory, addressed: bool) -> bool:
        """Say whether one free range holds everything, each on bytes of its own."""
        if memory.size is None:
            return True
        if addressed and memory.kind is MemoryKind.SPM:
            return False
        slack = self.step(memory) if self.modulus > 1 else 0
        sizes = [t.bytes for t in self.problem.tensors if t.memory == memory.index]
        sizes += [
            self.problem.slices[slice_].bytes
            for slice_, where in self.pairs
            if where == memory.index and self.home(slice_, where) is None
        ]
        sizes += [
            task.scratch
            for task in self.problem.tasks
            if task.scratch and memory.index in self.memories_of(task.index)
        ]
        wanted = sum(align_up(size, memory.alignment) + slack for size in sizes)
        return any(
            end is None or align_up(start, memory.alignment) + wanted <= end
            for start, end in self.free_ranges(memory)
        )

    def _all_pairs(self) -> Iterator[tuple[SliceIdx, MemoryIdx]]:
        for slice_ in self._candidates.slices():
            buffer = self.problem.slices[slice_].buffer
            for memory in self._candidates.of(slice_):
                # Where the whole buffer lies from the start, a part at its place adds nothing.
                starts = self.problem.buffers[buffer].starts_in == memory
                if slice_ == buffer or not starts or self.home(slice_, memory) is None:
                    yield slice_, memory

    def _find_contested(self) -> dict[SliceInMemory, tuple[SliceInMemory, ...]]:
        found = overlapping_places(self.problem, self.pairs)
        return {pair: (*some, pair) for pair, some in found.items()}

    def _all_before(self) -> tuple[frozenset[TaskIdx], ...]:
        found: list[frozenset[TaskIdx]] = [frozenset() for _ in self.problem.tasks]
        for task in self.problem.topological_order():
            direct = self.tables.predecessors[task]
            found[task] = frozenset(direct).union(*(found[earlier] for earlier in direct))
        return tuple(found)
