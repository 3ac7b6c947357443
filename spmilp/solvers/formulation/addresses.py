"""Addresses for a plan whose times are known, packed memory by memory.

First by a greedy fit; where that fails, exactly, which also shows when there are none and which few
residencies stand in each other's way. Where engines want the addresses of both ends to be
congruent, CP-SAT packs all memories together.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from spmilp.bounds.best import Bound
from spmilp.machine.machine import Memory, MemoryKind
from spmilp.packing import Item as PackingItem
from spmilp.packing import Packing, PackingOptions, PackingProblem, minimise, pack
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.strides import layout_at_place, layout_in_slice
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.formulation.extraction import Item, TimedPlan
from spmilp.solvers.formulation.tables import WITHOUT_LIMIT, ProblemTables, first_blocks
from spmilp.units import (
    Bytes,
    Cycles,
    EngineIdx,
    MemoryIdx,
    ResidencyIdx,
    SliceIdx,
    TaskIdx,
    TensorIdx,
    align_up,
)

LIMITS = PackingOptions(node_limit=2_000_000)
"""A few seconds; a limit on nodes gives the same answer everywhere."""


class Piece(NamedTuple):
    """Bytes ``[low, high)`` from a group's offset, during ``[start, end)``."""

    start: Cycles
    end: Cycles
    low: Bytes
    high: Bytes


class Group(NamedTuple):
    """What has one offset: a tensor, or residencies that take each other's bytes over.

    ``size`` is the most bytes that it has at one time, ``fixed`` the offset to which it is pinned.
    """

    members: tuple[ResidencyIdx, ...]
    tensor: TensorIdx | None
    pieces: tuple[Piece, ...]
    size: Bytes
    fixed: Bytes | None = None

    @property
    def span(self) -> Cycles:
        """Cycles from its beginning to its end."""
        start = min((piece.start for piece in self.pieces), default=0)
        return max((piece.end for piece in self.pieces), default=0) - start


class Address(NamedTuple):
    """An address: so many bytes behind that of a residency or of a tensor."""

    memory: MemoryIdx
    residency: ResidencyIdx | None
    tensor: TensorIdx | None
    distance: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets:
    """What a packing has found.

    Parameters
    ----------
    of_groups
        An offset for each group; ``None`` if none were found.
    conflict
        Groups, by position, that were not packed together: few of them where that is proven, all
        where a limit came first. Empty when there are offsets.
    """

    of_groups: tuple[Bytes, ...] | None
    conflict: tuple[int, ...] = ()


def groups_in(tables: ProblemTables, plan: TimedPlan, memory: Memory) -> list[Group]:
    """Return what lies in a memory, tensors first; what lies at its place in one is left out."""
    first = {one.index: one.index for one in plan.residencies}
    for _, old, new in sorted(plan.pairs, key=lambda p: plan.placements[p[0]].start):
        first[new] = first[old]
    members: dict[ResidencyIdx, list[ResidencyIdx]] = defaultdict(list)
    for one in plan.residencies:
        placed = one.slice is not None and tables.at_place(one.slice, memory.index)
        if one.memory == memory.index and not placed:
            members[first[one.index]].append(one.index)
    taken_over = {old: (task, new) for task, old, new in plan.pairs}
    end = max((one.end for one in plan.residencies), default=0) + 1
    groups = [
        Group(members=(), tensor=t.index, pieces=(Piece(0, end, 0, t.bytes),), size=t.bytes)
        for t in tables.problem.tensors
        if t.memory == memory.index
    ]
    for some in members.values():
        pieces = tuple(
            piece for index in some for piece in _pieces(plan, index, taken_over.get(index))
        )
        size = max(plan.residencies[index].bytes for index in some)
        pinned = (tables.address(plan.residencies[index].slice, memory.index) for index in some)
        fixed = next((address for address in pinned if address is not None), None)
        groups.append(
            Group(members=tuple(some), tensor=None, pieces=pieces, size=size, fixed=fixed)
        )
    return groups


def _pieces(
    plan: TimedPlan, index: ResidencyIdx, successor: tuple[TaskIdx, ResidencyIdx] | None
) -> list[Piece]:
    """Return the bytes of a residency; what its successor in place takes over is left out."""
    one, pieces = plan.residencies[index], []
    until = one.end
    if successor is not None:
        task, new = successor
        placement = plan.placements[task]
        until = placement.start
        kept = plan.residencies[new].bytes
        if one.bytes > kept:
            pieces.append(Piece(placement.start, placement.end, kept, one.bytes))
    if until > one.start:
        pieces.append(Piece(one.start, until, 0, one.bytes))
    return pieces


def find_offsets(
    memory: Memory, plan: TimedPlan, groups: list[Group], *, low: bool, clock: Clock
) -> Offsets:
    """Return offsets for groups within a memory; ``low`` ones in a scratchpad if that is asked."""
    low = low and memory.kind is MemoryKind.SPM
    greedy = None if low else _fit_greedily(memory, groups)
    if greedy is not None or not groups:
        return Offsets(of_groups=tuple(greedy or ()))
    if any(group.fixed is not None for group in groups):
        return _search_around_fixed(memory, groups, low, clock)
    return _search(memory, plan, groups, low, clock)


_ORDERS: tuple[Callable[[Group], tuple[int, ...]], ...] = (
    lambda group: (group.tensor is None, -group.size * group.span),
    lambda group: (group.tensor is None, -group.size),
    lambda group: (group.tensor is None, -group.span),
)


def _fit_greedily(memory: Memory, groups: list[Group]) -> list[Bytes] | None:
    """Return the offsets of the first order that leads to a fit."""
    for order in _ORDERS:
        indices = sorted(
            range(len(groups)),
            key=lambda index: (groups[index].fixed is None, *order(groups[index]), index),
        )
        found = _first_fit(memory, groups, indices)
        if found is not None:
            return found
    return None


class _Placed:
    """The pieces of what has an offset, at their addresses: a row for each, as arrays."""

    def __init__(self, groups: list[Group]) -> None:
        count = sum(len(group.pieces) for group in groups)
        self._times = np.empty((2, count), dtype=np.int64)
        self._bytes = np.empty((2, count), dtype=np.int64)
        self._count = 0

    def add(self, group: Group, offset: Bytes) -> None:
        """Place a group."""
        for piece in group.pieces:
            self._times[:, self._count] = piece.start, piece.end
            self._bytes[:, self._count] = offset + piece.low, offset + piece.high
            self._count += 1

    def beside(self, piece: Piece) -> list[tuple[Bytes, Bytes]]:
        """Return the addresses ``[low, high)`` of what is placed and lives while a piece does."""
        starts, ends = self._times[:, : self._count]
        lows, highs = self._bytes[:, : self._count]
        lives = (starts < piece.end) & (ends > piece.start)
        return list(zip(lows[lives].tolist(), highs[lives].tolist(), strict=True))


def _first_fit(memory: Memory, groups: list[Group], order: list[int]) -> list[Bytes] | None:
    offsets: list[Bytes] = [0] * len(groups)
    placed = _Placed(groups)
    for index in order:
        group = groups[index]
        offset = _lowest(memory, group, placed)
        if offset is None:
            return None
        offsets[index] = offset
        placed.add(group, offset)
    return offsets


def _lowest(memory: Memory, group: Group, placed: _Placed) -> Bytes | None:
    """Return the lowest address, or the pinned one, where no byte is taken at the same time."""
    taken = [(one.start - group.size + 1, one.end) for one in memory.reserved]
    taken += [
        (low - piece.high + 1, high - piece.low)
        for piece in group.pieces
        for low, high in placed.beside(piece)
    ]
    if group.fixed is not None:
        is_taken = any(first <= group.fixed < last for first, last in taken)
        is_inside = memory.size is None or group.fixed + group.size <= memory.size
        return None if is_taken or not is_inside else group.fixed
    offset = 0
    for first, last in sorted(taken):
        if first <= offset < last:
            offset = align_up(last, memory.alignment)
    if memory.size is not None and offset + group.size > memory.size:
        return None
    return offset


def _search_around_fixed(memory: Memory, groups: list[Group], low: bool, clock: Clock) -> Offsets:
    """Search exactly where some offsets are pinned."""

    packing = JointPacking()
    packing.add(memory, groups)
    found = packing.solve(low=low, clock=clock)
    if not found:
        return Offsets(of_groups=None, conflict=tuple(range(len(groups))))
    return Offsets(of_groups=tuple(found[memory.index]))


def _search(
    memory: Memory, plan: TimedPlan, groups: list[Group], low: bool, clock: Clock
) -> Offsets:
    """Search exactly (:mod:`spmilp.packing`).

    A residency and the one that takes its bytes over have one offset and share bytes for as long as
    both live, which is what the packing calls *together*.
    """
    items: list[PackingItem] = []
    owners: list[int] = []
    together: list[tuple[int, int]] = []
    for position, group in enumerate(groups):
        first = len(items)
        for size, start, end in _lives(plan, group):
            if len(items) > first:
                together.append((len(items) - 1, len(items)))
            items.append(
                PackingItem(size=size, lifetimes=((start, end),), alignment=memory.alignment)
            )
            owners.append(position)
    problem = PackingProblem(
        items=tuple(items),
        capacity=memory.size,
        reserved=tuple((taken.start, taken.end) for taken in memory.reserved),
        together=tuple(together),
    )
    limits = replace(LIMITS, time_limit=clock.seconds_left())
    found: Packing = minimise(problem, limits) if low else pack(problem, limits)
    if found.offsets is None:
        stuck = owners if found.conflict is None else [owners[item] for item in found.conflict]
        return Offsets(of_groups=None, conflict=tuple(sorted(set(stuck))))
    offsets = [0] * len(groups)
    for owner, offset in zip(owners, found.offsets, strict=True):
        offsets[owner] = offset
    return Offsets(of_groups=tuple(offsets))


def _lives(plan: TimedPlan, group: Group) -> list[tuple[Bytes, int, int]]:
    """Return ``(bytes, start, end)`` of what lies at a group's offset, in order of time."""
    if group.tensor is not None:
        return [(piece.high, piece.start, piece.end) for piece in group.pieces]
    members = (plan.residencies[index] for index in group.members)
    lives = [(one.bytes, one.start, one.end) for one in members if one.start < one.end]
    return sorted(lives, key=lambda life: life[1:])


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The residencies with their offsets, and the address of each tensor."""

    residencies: tuple[Residency, ...]
    tensors: tuple[Bytes, ...]

    def plan(self, tables: ProblemTables, timed: TimedPlan, bound: Bound, solver: str) -> Plan:
        """Return the plan that has these times and addresses."""
        placements, transfers = timed.placements, timed.transfers
        measures = measure(tables.problem, placements, self.residencies, transfers)
        return Plan(
            placements=placements,
            residencies=self.residencies,
            transfers=transfers,
            tensors=self.tensors,
            claim=claim_of(measures, bound.value, bound.name),
            solver=solver,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictSet:
    """Items of a memory for which no addresses were found at their times.

    None of them when several memories stand against each other.
    """

    memory: MemoryIdx
    items: frozenset[Item]


class _Congruence(NamedTuple):
    """What an engine asks of the addresses of both ends of a transfer."""

    engine: EngineIdx
    ends: tuple[Address, Address]


def find_addresses(
    tables: ProblemTables, plan: TimedPlan, *, low: bool, clock: Clock | None = None
) -> Addresses | ConflictSet:
    """Return addresses, or items of one memory for which none were found.

    Parameters
    ----------
    low
        Whether scratchpads are packed as low as can be shown within the time of one packing.
    clock
        When it is over, no more addresses are looked for.
    """
    return _Packer(tables, plan, low, clock or Clock(None)).addresses()


class _Packer:
    def __init__(self, tables: ProblemTables, plan: TimedPlan, low: bool, clock: Clock) -> None:
        self._tables = tables
        self._plan = plan
        self._low = low
        self._clock = clock
        memories = tables.machine.memories
        self._groups = {memory.index: groups_in(tables, plan, memory) for memory in memories}

    def addresses(self) -> Addresses | ConflictSet:
        congruences = tuple(self._congruences())
        if congruences:
            return self._pack_jointly(congruences)
        found: dict[MemoryIdx, Sequence[Bytes]] = {}
        for memory in self._tables.machine.memories:
            groups = self._groups[memory.index]
            offsets = find_offsets(memory, self._plan, groups, low=self._low, clock=self._clock)
            if offsets.of_groups is None:
                return self._conflict(memory, offsets.conflict)
            found[memory.index] = offsets.of_groups
        return self._finished(found)

    def _conflict(self, memory: Memory, groups: Sequence[int]) -> ConflictSet:
        found = (self._groups[memory.index][position] for position in groups)
        members = (member for group in found for member in group.members)
        items = frozenset(self._plan.items[member] for member in members)
        return ConflictSet(memory=memory.index, items=items)

    def _pack_jointly(self, congruences: Sequence[_Congruence]) -> Addresses | ConflictSet:

        packing, machine = JointPacking(), self._tables.machine
        for memory in machine.memories:
            packing.add(memory, self._groups[memory.index])
        for engine, ends in congruences:
            packing.tie(machine.engines[engine].congruence, ends)
        found = packing.solve(low=self._low, clock=self._clock)
        if not found:
            limited = next(m for m in machine.memories if self._groups[m.index])
            return ConflictSet(memory=limited.index, items=frozenset())
        return self._finished(found)

    def _finished(self, found: Mapping[MemoryIdx, Sequence[Bytes]]) -> Addresses:
        offsets: dict[ResidencyIdx, Bytes] = {}
        tensors = [0] * len(self._tables.problem.tensors)
        for memory, groups in self._groups.items():
            for group, offset in zip(groups, found.get(memory, ()), strict=True):
                offsets.update(dict.fromkeys(group.members, offset))
                if group.tensor is not None:
                    tensors[group.tensor] = offset
        residencies = tuple(
            replace(one, offset=offsets.get(one.index, self._at_place(one, tensors)))
            for one in self._plan.residencies
        )
        return Addresses(residencies=residencies, tensors=tuple(tensors))

    def _at_place(self, one: Residency, tensors: Sequence[Bytes]) -> Bytes:
        home = self._home(one)
        if home is None or one.slice is None:
            return 0
        return tensors[home] + layout_at_place(self._tables.problem, one.slice).offset

    def _home(self, one: Residency) -> TensorIdx | None:
        return None if one.slice is None else self._tables.home(one.slice, one.memory)

    def _congruences(self) -> Iterator[_Congruence]:
        for move in self._plan.transfers:
            if self._tables.machine.engines[move.engine].congruence == 1:
                continue
            for target in move.destinations:
                ends = (self._end(move.slice, move.source), self._end(move.slice, target))
                yield _Congruence(move.engine, ends)

    def _end(self, slice_: SliceIdx, residency: ResidencyIdx) -> Address:
        """Return the address of a slice in a residency."""
        problem, one = self._tables.problem, self._plan.residencies[residency]
        home = self._home(one)
        if home is not None:
            return Address(one.memory, None, home, layout_at_place(problem, slice_).offset)
        inner = layout_in_slice(problem, slice_, slice_ if one.slice is None else one.slice)
        return Address(one.memory, residency, None, inner.offset)
