"""Offsets in several memories whose transfers want congruent addresses, by CP-SAT."""

from ortools.sat.python import cp_model

from spmilp.machine.machine import Memory, MemoryKind
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.formulation.offsets import Address, Group
from spmilp.solvers.formulation.tables import WITHOUT_LIMIT, first_blocks
from spmilp.units import Bytes, MemoryIdx, ResidencyIdx, TensorIdx

SECONDS = 5.0
"""Deterministic time for one packing."""


class JointPacking:
    """A model with an offset for each group of each memory that was added."""

    def __init__(self) -> None:
        self._model = cp_model.CpModel()
        self._offsets: dict[MemoryIdx, list[cp_model.LinearExpr]] = {}
        self._of: dict[tuple[ResidencyIdx | None, TensorIdx | None], cp_model.LinearExpr] = {}
        self._ends_in_spm: list[cp_model.LinearExpr] = []

    def add(self, memory: Memory, groups: list[Group]) -> None:
        """Give each group an offset, a multiple of the alignment, where it overlaps no other."""
        times, extents, offsets = [], [], []
        for group in groups:
            ranges = [list(one) for one in first_blocks(memory, group.size)]
            if group.fixed is not None:
                ranges = [[group.fixed // memory.alignment] * 2]
            block = self._model.new_int_var_from_domain(cp_model.Domain.from_intervals(ranges), "")
            offset = block * memory.alignment
            offsets.append(offset)
            self._of[None, group.tensor] = offset
            self._of.update({(member, None): offset for member in group.members})
            if memory.kind is MemoryKind.SPM:
                self._ends_in_spm.append(offset + group.size)
            for piece in group.pieces:
                first = -(-piece.low // memory.alignment)
                last = -(-piece.high // memory.alignment)
                length = piece.end - piece.start
                times.append(self._model.new_fixed_size_interval_var(piece.start, length, ""))
                extent = self._model.new_fixed_size_interval_var(block + first, last - first, "")
                extents.append(extent)
        self._model.add_no_overlap_2d(times, extents)
        self._offsets[memory.index] = offsets

    def tie(self, modulus: Bytes, ends: tuple[Address, Address]) -> None:
        """Make two addresses equal modulo a number."""
        multiple = self._model.new_int_var(-WITHOUT_LIMIT, WITHOUT_LIMIT, "")
        one, other = (self._address(end) for end in ends)
        self._model.add(one == other + modulus * multiple)

    def solve(self, *, low: bool, clock: Clock) -> dict[MemoryIdx, list[Bytes]]:
        """Return the offsets of each memory's groups; nothing if there are none or time is out.

        Parameters
        ----------
        low
            Whether scratchpads are packed as low as can be found in the time.
        clock
            Of the solve, which ends it sooner.
        """
        if low:
            top = self._model.new_int_var(0, WITHOUT_LIMIT, "top")
            for end in self._ends_in_spm:
                self._model.add(top >= end)
            self._model.minimize(top)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = SECONDS
        left = clock.seconds_left()
        if left is not None:
            solver.parameters.max_time_in_seconds = left
        solver.parameters.catch_sigint_signal = False
        if solver.solve(self._model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return {}
        return {
            memory: [solver.value(offset) for offset in offsets]
            for memory, offsets in self._offsets.items()
        }

    def _address(self, end: Address) -> cp_model.LinearExpr:
        return self._of[end.residency, end.tensor] + end.distance
