"""Addresses for a plan whose times are known, packed memory by memory.

First by a greedy fit; where that fails, by :mod:`spmilp.packing`, which also shows when there are
none and which few residencies stand in each other's way. Where engines want the addresses of both
ends to be congruent, CP-SAT packs all memories together.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from spmilp.bounds.best import Bound
from spmilp.machine.machine import Memory, MemoryKind
from spmilp.packing import Item as PackingItem
from spmilp.packing import PackingOptions, PackingProblem, minimise, pack
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.strides import layout_at_place, layout_in_slice
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.exact.formulation.extraction import Item, TimedPlan
from spmilp.solvers.exact.formulation.tables import WITHOUT_LIMIT, ProblemTables, first_blocks
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

SECONDS = 5.0
"""Deterministic time for one packing of all memories together."""


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

    Few of them where that is proven, all where a limit came first, none when several memories stand
    against each other.
    """

    memory: MemoryIdx
    items: frozenset[Item]


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


_ORDERS: tuple[Callable[[Group], tuple[int, ...]], ...] = (
    lambda group: (group.tensor is None, -group.size * group.span),
    lambda group: (group.tensor is None, -group.size),
    lambda group: (group.tensor is None, -group.span),
)


def _fit_greedily(memory: Memory, groups: Sequence[Group]) -> list[Bytes] | None:
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


class Placed:
    """The pieces of what has an offset, at their addresses: a row for each, as arrays."""

    def __init__(self, groups: Sequence[Group]) -> None:
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


def _first_fit(memory: Memory, groups: Sequence[Group], order: list[int]) -> list[Bytes] | None:
    offsets: list[Bytes] = [0] * len(groups)
    placed = Placed(groups)
    for index in order:
        group = groups[index]
        offset = lowest_offset(memory, group, placed)
        if offset is None:
            return None
        offsets[index] = offset
        placed.add(group, offset)
    return offsets


def lowest_offset(memory: Memory, group: Group, placed: Placed) -> Bytes | None:
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


def _search(
    memory: Memory, plan: TimedPlan, groups: Sequence[Group], low: bool, clock: Clock
) -> tuple[Sequence[Bytes] | None, Sequence[int]]:
    """Search exactly; return the offsets, or the positions of groups that do not fit together.

    A residency and the one that takes its bytes over have one offset and share bytes for as long as
    both live, which is what the packing calls *together*.
    """
    items: list[PackingItem] = []
    owners: list[int] = []
    together: list[tuple[int, int]] = []
    for position, group in enumerate(groups):
        for number, (size, start, end) in enumerate(_lives(plan, group)):
            if number:
                together.append((len(items) - 1, len(items)))
            items.append(
                PackingItem(
                    size=size,
                    lifetimes=((start, end),),
                    alignment=memory.alignment,
                    offset=group.fixed,
                )
            )
            owners.append(position)
    problem = PackingProblem(
        items=tuple(items),
        capacity=memory.size,
        reserved=tuple((taken.start, taken.end) for taken in memory.reserved),
        together=tuple(together),
    )
    limits = replace(LIMITS, time_limit=clock.seconds_left())
    found = minimise(problem, limits) if low else pack(problem, limits)
    if found.offsets is None:
        stuck = owners if found.conflict is None else [owners[item] for item in found.conflict]
        return None, sorted(set(stuck))
    offsets = [0] * len(groups)
    for owner, offset in zip(owners, found.offsets, strict=True):
        offsets[owner] = offset
    return offsets, ()


def _lives(plan: TimedPlan, group: Group) -> list[tuple[Bytes, int, int]]:
    """Return ``(bytes, start, end)`` of what lies at a group's offset, in order of time."""
    if group.tensor is not None:
        return [(piece.high, piece.start, piece.end) for piece in group.pieces]
    members = (plan.residencies[index] for index in group.members)
    lives = [(one.bytes, one.start, one.end) for one in members if one.start < one.end]
    return sorted(lives, key=lambda life: life[1:])


class _Address(NamedTuple):
    """So many bytes behind the address of a residency or of a tensor."""

    residency: ResidencyIdx | None
    tensor: TensorIdx | None
    distance: Bytes


class _Congruence(NamedTuple):
    """What an engine asks of the addresses of both ends of a transfer."""

    engine: EngineIdx
    ends: tuple[_Address, _Address]


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
        self._memories = tables.machine.memories
        self._groups = {one.index: groups_in(tables, plan, one) for one in self._memories}

    def addresses(self) -> Addresses | ConflictSet:
        congruences = tuple(self._congruences())
        if congruences:
            together = self._together(congruences)
            if together is None:
                limited = next(m for m in self._memories if self._groups[m.index])
                return ConflictSet(memory=limited.index, items=frozenset())
            return self._finished(together)
        found: dict[MemoryIdx, Sequence[Bytes]] = {}
        for memory in self._memories:
            groups = self._groups[memory.index]
            low = self._low and memory.kind is MemoryKind.SPM
            offsets: Sequence[Bytes] | None = None if low else _fit_greedily(memory, groups)
            stuck: Sequence[int] = ()
            if groups and offsets is None:
                offsets, stuck = _search(memory, self._plan, groups, low, self._clock)
                if offsets is None:
                    members = (member for position in stuck for member in groups[position].members)
                    items = frozenset(self._plan.items[member] for member in members)
                    return ConflictSet(memory=memory.index, items=items)
            found[memory.index] = offsets or ()
        return self._finished(found)

    def _together(
        self, congruences: Sequence[_Congruence]
    ) -> dict[MemoryIdx, Sequence[Bytes]] | None:
        """Return the offsets of all groups by CP-SAT; ``None`` if there are none, or no time."""
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        of: dict[tuple[int | None, int | None], cp_model.LinearExpr] = {}
        tops: list[cp_model.LinearExpr] = []
        blocks: dict[MemoryIdx, list[cp_model.IntVar]] = {memory: [] for memory in self._groups}
        for memory in self._memories:
            times, extents, alignment = [], [], memory.alignment
            for group in self._groups[memory.index]:
                ranges = [list(one) for one in first_blocks(memory, group.size)]
                if group.fixed is not None:
                    ranges = [[group.fixed // alignment] * 2]
                block = model.new_int_var_from_domain(cp_model.Domain.from_intervals(ranges), "")
                blocks[memory.index].append(block)
                offset = block * alignment
                of[None, group.tensor] = offset
                of.update({(member, None): offset for member in group.members})
                if memory.kind is MemoryKind.SPM:
                    tops.append(offset + group.size)
                for piece in group.pieces:
                    length = piece.end - piece.start
                    first, last = -(-piece.low // alignment), -(-piece.high // alignment)
                    times.append(model.new_fixed_size_interval_var(piece.start, length, ""))
                    extents.append(
                        model.new_fixed_size_interval_var(block + first, last - first, "")
                    )
            model.add_no_overlap_2d(times, extents)
        for engine, ends in congruences:
            multiple = model.new_int_var(-WITHOUT_LIMIT, WITHOUT_LIMIT, "")
            one, other = (of[end.residency, end.tensor] + end.distance for end in ends)
            model.add(one == other + self._tables.machine.engines[engine].congruence * multiple)
        if self._low:
            top = model.new_int_var(0, WITHOUT_LIMIT, "top")
            for end in tops:
                model.add(top >= end)
            model.minimize(top)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = SECONDS
        left = self._clock.seconds_left()
        if left is not None:
            solver.parameters.max_time_in_seconds = left
        solver.parameters.catch_sigint_signal = False
        if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        return {
            memory: [solver.value(block) * self._memories[memory].alignment for block in some]
            for memory, some in blocks.items()
        }

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

    def _end(self, slice_: SliceIdx, residency: ResidencyIdx) -> _Address:
        """Return the address of a slice in a residency."""
        problem, one = self._tables.problem, self._plan.residencies[residency]
        home = self._home(one)
        if home is not None:
            return _Address(None, home, layout_at_place(problem, slice_).offset)
        inner = layout_in_slice(problem, slice_, slice_ if one.slice is None else one.slice)
        return _Address(residency, None, inner.offset)
