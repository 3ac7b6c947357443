"""Offsets in several memories whose transfers want congruent addresses, by CP-SAT."""

from collections.abc import Sequence

from ortools.sat.python import cp_model

from spmilp.machine.machine import Memory, MemoryKind
from spmilp.solvers.formulation.offsets import Address, Group
from spmilp.solvers.formulation.tables import WITHOUT_LIMIT, first_blocks
from spmilp.units import Bytes, MemoryIdx

SECONDS = 5.0
"""Deterministic time for one packing."""


class JointPacking:
    """A model with an offset for each group of each memory that was added."""

    def __init__(self) -> None:
        self._model = cp_model.CpModel()
        self._groups: dict[MemoryIdx, tuple[Memory, list[Group], list[cp_model.IntVar]]] = {}

    def add(self, memory: Memory, groups: list[Group]) -> None:
        """Give each group an offset, a multiple of the alignment, where it overlaps no other."""
        times, extents, offsets = [], [], []
        for group in groups:
            ranges = [list(one) for one in first_blocks(memory, group.size)]
            domain = cp_model.Domain.from_intervals(ranges)
            offset = self._model.new_int_var_from_domain(domain, "")
            offsets.append(offset)
            for piece in group.pieces:
                first = -(-piece.low // memory.alignment)
                last = -(-piece.high // memory.alignment)
                length = piece.end - piece.start
                times.append(self._model.new_fixed_size_interval_var(piece.start, length, ""))
                extent = self._model.new_fixed_size_interval_var(offset + first, last - first, "")
                extents.append(extent)
        self._model.add_no_overlap_2d(times, extents)
        self._groups[memory.index] = (memory, groups, offsets)

    def tie(self, modulus: Bytes, ends: tuple[Address, Address]) -> None:
        """Make two addresses equal modulo a number."""
        multiple = self._model.new_int_var(-WITHOUT_LIMIT, WITHOUT_LIMIT, "")
        one, other = (self._address(end) for end in ends)
        self._model.add(one == other + modulus * multiple)

    def solve(self, *, low: bool) -> dict[MemoryIdx, list[Bytes]]:
        """Return the offsets of each memory's groups; nothing if there are none or time is out.

        Parameters
        ----------
        low
            Whether scratchpads are packed as low as can be found in the time.
        """
        if low:
            self._model.minimize(self._top())
        solver = self._solver()
        if solver.solve(self._model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return {}
        return {
            index: [solver.value(offset) * memory.alignment for offset in offsets]
            for index, (memory, _, offsets) in self._groups.items()
        }

    def _top(self) -> cp_model.IntVar:
        top = self._model.new_int_var(0, WITHOUT_LIMIT, "top")
        for memory, groups, offsets in self._groups.values():
            if memory.kind is MemoryKind.SPM:
                for group, offset in zip(groups, offsets, strict=True):
                    self._model.add(top >= offset * memory.alignment + group.size)
        return top

    def _address(self, end: Address) -> cp_model.LinearExpr:
        memory, groups, offsets = self._groups[end.memory]
        return offsets[_position(groups, end)] * memory.alignment + end.distance

    def _solver(self) -> cp_model.CpSolver:
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = SECONDS
        solver.parameters.catch_sigint_signal = False
        return solver


def _position(groups: Sequence[Group], end: Address) -> int:
    return next(
        position
        for position, group in enumerate(groups)
        if (end.residency is not None and end.residency in group.members)
        or (end.tensor is not None and group.tensor == end.tensor)
    )
