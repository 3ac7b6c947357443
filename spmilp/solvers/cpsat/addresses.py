"""Addresses for a draft: residencies and tensors with given lifetimes, packed memory by memory.

First by a greedy fit; where that fails, exactly by CP-SAT, which also shows when there are none.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

from ortools.sat.python import cp_model

from spmilp.machine.machine import Memory, MemoryKind
from spmilp.plan.plan import Residency
from spmilp.problem.strides import layout_at_place, layout_in_slice
from spmilp.solvers.cpsat.extract import Draft
from spmilp.solvers.cpsat.greedy import Group, Piece, fit_greedily
from spmilp.solvers.cpsat.tables import Tables, first_blocks
from spmilp.solvers.cpsat.variables import Item
from spmilp.units import Bytes, MemoryIdx, ResidencyIdx

SECONDS_OF_A_PACKING = 5.0
"""Deterministic time for one exact packing."""

MOST_TRIALS = 60
"""Packings tried to make a crowd smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The residencies with their offsets, and the address of each tensor."""

    residencies: tuple[Residency, ...]
    tensors: tuple[Bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Items of a memory for which no addresses were found at their times; proven if ``proven``."""

    memory: MemoryIdx
    items: frozenset[Item]
    proven: bool


def find_addresses(tables: Tables, draft: Draft, low: bool) -> Addresses | Crowd:
    """Return addresses, or items of one memory that have none.

    Parameters
    ----------
    low
        Whether scratchpads are packed as low as can be shown within the time of one packing.
    """
    return _Packer(tables, draft, low).addresses()


class _Packer:
    def __init__(self, tables: Tables, draft: Draft, low: bool) -> None:
        self._tables = tables
        self._draft = draft
        self._low = low
        self._grain = lcm(1, *(engine.congruence for engine in tables.machine.engines))

    def addresses(self) -> Addresses | Crowd:
        offsets: dict[ResidencyIdx, Bytes] = {}
        tensors = [0] * len(self._tables.problem.tensors)
        for memory in self._tables.machine.memories:
            groups = self._groups(memory)
            if not groups:
                continue
            found = self._pack(memory, groups)
            if found is None:
                return self._crowd(memory, groups)
            for group, offset in zip(groups, found, strict=True):
                for member in group.members:
                    offsets[member] = offset
                if group.tensor is not None:
                    tensors[group.tensor] = offset
        residencies = tuple(
            replace(one, offset=self._at_place(one, tensors, offsets))
            for one in self._draft.residencies
        )
        return Addresses(residencies=residencies, tensors=tuple(tensors))

    def _at_place(
        self, one: Residency, tensors: Sequence[Bytes], offsets: dict[ResidencyIdx, Bytes]
    ) -> Bytes:
        if one.index in offsets:
            return offsets[one.index]
        if one.slice is None:
            return 0
        problem = self._tables.problem
        place = problem.buffers[problem.slices[one.slice].buffer].place
        home = 0 if place is None else tensors[place.tensor]
        return home + layout_at_place(problem, one.slice).offset

    def _groups(self, memory: Memory) -> list[Group]:
        """Return what lies in a memory: tensors, and residencies with what shares their bytes."""
        draft = self._draft
        leader = {one.index: one.index for one in draft.residencies}
        for _, old, new in sorted(draft.pairs, key=lambda p: draft.placements[p[0]].start):
            leader[new] = leader[old]
        members: dict[ResidencyIdx, list[ResidencyIdx]] = defaultdict(list)
        for one in draft.residencies:
            placed = one.slice is not None and self._tables.ways.at_place(one.slice, memory.index)
            if one.memory == memory.index and not placed:
                members[leader[one.index]].append(one.index)
        end = max((one.end for one in draft.residencies), default=0) + 1
        groups = [
            Group(members=(), tensor=t.index, pieces=(Piece(0, end, 0, t.bytes),), size=t.bytes)
            for t in self._tables.problem.tensors
            if t.memory == memory.index
        ]
        for some in members.values():
            pieces = tuple(piece for index in some for piece in self._pieces(index))
            size = max(draft.residencies[index].bytes for index in some)
            groups.append(Group(members=tuple(some), tensor=None, pieces=pieces, size=size))
        return groups

    def _pieces(self, index: ResidencyIdx) -> list[Piece]:
        """Return the bytes of a residency; what its successor in place takes over is left out."""
        one, pieces = self._draft.residencies[index], []
        until = one.end
        for task, old, new in self._draft.pairs:
            if old == index:
                placement = self._draft.placements[task]
                until = placement.start
                kept = self._draft.residencies[new].bytes
                if one.bytes > kept:
                    pieces.append(Piece(placement.start, placement.end, kept, one.bytes))
        if until > one.start:
            pieces.append(Piece(one.start, until, 0, one.bytes))
        return pieces

    def _pack(self, memory: Memory, groups: list[Group]) -> list[Bytes] | None:
        residues = self._residues(memory, groups)
        unit = lcm(memory.alignment, self._grain) if memory.size is None else memory.alignment
        low = self._low and memory.kind is MemoryKind.SPM
        if not low and not any(residues):
            greedy = fit_greedily(memory, groups, unit)
            if greedy is not None:
                return greedy
        if memory.size is None and not any(residues):
            return None
        return _pack_exactly(memory, groups, residues, self._grain, low)

    def _residues(self, memory: Memory, groups: list[Group]) -> list[tuple[int, int] | None]:
        """Return for each group ``(modulus, residue)`` that its offset must have, if any.

        Tensors lie at multiples of all moduli, so that places in them have known residues; from
        there the residue follows the transfers. Packed residencies of different scratchpads that
        exchange data agree on 0.
        """
        wanted: dict[ResidencyIdx, tuple[int, int]] = {}
        while self._spread(wanted, start=False) or self._spread(wanted, start=True):
            pass
        found: list[tuple[int, int] | None] = []
        for group in groups:
            of_members = [wanted[index] for index in group.members if index in wanted]
            if group.tensor is not None and self._grain > 1:
                of_members = [(self._grain, 0)]
            found.append(max(of_members) if of_members else None)
        return found

    def _spread(self, wanted: dict[ResidencyIdx, tuple[int, int]], start: bool) -> bool:
        """Make the two ends of a transfer equal modulo its engine's congruence; say if one was.

        Only transfers with a known end, unless ``start`` lets one begin with 0.
        """
        for move in self._draft.transfers:
            modulus = self._tables.machine.engines[move.engine].congruence
            if modulus == 1:
                continue
            inner = self._inner(move.slice, self._draft.residencies[move.source])
            ends = [(move.source, inner), *((target, 0) for target in move.destinations)]
            known = [self._known(index, part, modulus, wanted) for index, part in ends]
            residue = next((one for one in known if one is not None), 0 if start else None)
            new = [end for end, own in zip(ends, known, strict=True) if own is None]
            if residue is None or not new:
                continue
            for index, part in new:
                wanted[index] = (modulus, (residue - part) % modulus)
            return True
        return False

    def _known(
        self,
        index: ResidencyIdx,
        inner: Bytes,
        modulus: int,
        wanted: dict[ResidencyIdx, tuple[int, int]],
    ) -> int | None:
        one = self._draft.residencies[index]
        if one.slice is not None and self._tables.ways.at_place(one.slice, one.memory):
            return (layout_at_place(self._tables.problem, one.slice).offset + inner) % modulus
        if index in wanted:
            return (wanted[index][1] + inner) % modulus
        return None

    def _inner(self, slice_: int, source: Residency) -> Bytes:
        """Return how far a slice lies from the address of the residency that holds it."""
        if source.slice is None or self._tables.ways.at_place(slice_, source.memory):
            problem = self._tables.problem
            start = layout_at_place(problem, slice_).offset
            return start - layout_at_place(problem, source.slice or 0).offset
        return layout_in_slice(self._tables.problem, slice_, source.slice).offset

    def _crowd(self, memory: Memory, groups: list[Group]) -> Crowd:
        """Return a small set of items that cannot be packed."""
        residues = self._residues(memory, groups)
        kept, proven = list(range(len(groups))), not any(residues)
        smallest = sorted(kept, key=lambda g: (groups[g].size, g))
        for index in smallest[:MOST_TRIALS] if proven else ():
            rest = [g for g in kept if g != index]
            some = [groups[g] for g in rest]
            if _is_impossible(memory, some):
                kept = rest
        items = frozenset(self._draft.items[m] for g in kept for m in groups[g].members)
        return Crowd(memory=memory.index, items=items, proven=proven)


def _is_impossible(memory: Memory, groups: list[Group]) -> bool:
    model, _ = _packing(memory, groups, [None] * len(groups), 1)
    return _solver().solve(model) == cp_model.INFEASIBLE


def _pack_exactly(
    memory: Memory,
    groups: list[Group],
    residues: list[tuple[int, int] | None],
    grain: int,
    low: bool,
) -> list[Bytes] | None:
    model, offsets = _packing(memory, groups, residues, grain)
    if low:
        top = model.new_int_var(0, memory.size or 2**48, "top")
        for group, offset in zip(groups, offsets, strict=True):
            model.add(top >= offset * memory.alignment + group.size)
        model.minimize(top)
    solver = _solver()
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return [solver.value(offset) * memory.alignment for offset in offsets]


def _packing(
    memory: Memory, groups: list[Group], residues: list[tuple[int, int] | None], grain: int
) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    """Return the model of a packing, with offsets counted in blocks."""
    model = cp_model.CpModel()
    times, extents, offsets = [], [], []
    for group, residue in zip(groups, residues, strict=True):
        ranges = first_blocks(memory, group.size)
        domain = cp_model.Domain.from_intervals([list(one) for one in ranges])
        offset = model.new_int_var_from_domain(domain, "")
        if residue is not None:
            modulus, value = residue
            turns = model.new_int_var(-(2**40), 2**40, "")
            model.add(offset * memory.alignment == turns * modulus + value)
        offsets.append(offset)
        for piece in group.pieces:
            first = -(-piece.low // memory.alignment)
            last = -(-piece.high // memory.alignment)
            times.append(
                model.new_fixed_size_interval_var(piece.start, piece.end - piece.start, "")
            )
            extents.append(model.new_fixed_size_interval_var(offset + first, last - first, ""))
    model.add_no_overlap_2d(times, extents)
    return model, offsets


def _solver() -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = SECONDS_OF_A_PACKING
    solver.parameters.catch_sigint_signal = False
    return solver
