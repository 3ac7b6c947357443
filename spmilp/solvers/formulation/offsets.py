"""Offsets in one memory for given lifetimes: by first fit, else by an exact search."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from spmilp.machine.machine import Memory, MemoryKind
from spmilp.packing import Item, Packing, PackingOptions, PackingProblem, minimise, pack
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.formulation.extraction import TimedPlan
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import Bytes, Cycles, MemoryIdx, ResidencyIdx, TaskIdx, TensorIdx, align_up

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
    from spmilp.solvers.formulation.joint_packing import JointPacking

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
    items: list[Item] = []
    owners: list[int] = []
    together: list[tuple[int, int]] = []
    for position, group in enumerate(groups):
        first = len(items)
        for size, start, end in _lives(plan, group):
            if len(items) > first:
                together.append((len(items) - 1, len(items)))
            items.append(Item(size=size, lifetimes=((start, end),), alignment=memory.alignment))
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
