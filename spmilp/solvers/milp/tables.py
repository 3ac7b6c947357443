"""The problem's tables, and with them unconstrained memories and slices that last."""

from collections.abc import Iterator
from math import gcd, lcm

from spmilp.machine.machine import Memory, MemoryKind
from spmilp.problem.problem import Problem
from spmilp.solvers.formulation.candidates import CandidateMemories
from spmilp.solvers.formulation.places import SliceInMemory, overlapping_places
from spmilp.solvers.formulation.tables import ProblemTables, first_blocks
from spmilp.solvers.milp.windows import Windows
from spmilp.units import MemoryIdx, align_up


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
        if addressed and memory.kind is MemoryKind.SPM:
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
