"""What has one offset: tensors, and residencies together with those that take their bytes over."""

from collections import defaultdict
from typing import NamedTuple

from spmilp.machine.machine import Memory
from spmilp.solvers.cpsat.extract import Draft
from spmilp.solvers.cpsat.tables import Tables
from spmilp.units import Bytes, Cycles, ResidencyIdx, TensorIdx


class Piece(NamedTuple):
    """Bytes ``[low, high)`` from a group's offset, during ``[start, end)``."""

    start: Cycles
    end: Cycles
    low: Bytes
    high: Bytes


class Group(NamedTuple):
    """Residencies with one offset, or a tensor; ``size`` is the most bytes it has at one time."""

    members: tuple[ResidencyIdx, ...]
    tensor: TensorIdx | None
    pieces: tuple[Piece, ...]
    size: Bytes


def groups_in(tables: Tables, draft: Draft, memory: Memory) -> list[Group]:
    """Return what lies in a memory, tensors first; what lies at its place in one is left out."""
    leader = {one.index: one.index for one in draft.residencies}
    for _, old, new in sorted(draft.pairs, key=lambda p: draft.placements[p[0]].start):
        leader[new] = leader[old]
    members: dict[ResidencyIdx, list[ResidencyIdx]] = defaultdict(list)
    for one in draft.residencies:
        placed = one.slice is not None and tables.ways.at_place(one.slice, memory.index)
        if one.memory == memory.index and not placed:
            members[leader[one.index]].append(one.index)
    end = max((one.end for one in draft.residencies), default=0) + 1
    groups = [
        Group(members=(), tensor=t.index, pieces=(Piece(0, end, 0, t.bytes),), size=t.bytes)
        for t in tables.problem.tensors
        if t.memory == memory.index
    ]
    for some in members.values():
        pieces = tuple(piece for index in some for piece in _pieces(draft, index))
        size = max(draft.residencies[index].bytes for index in some)
        groups.append(Group(members=tuple(some), tensor=None, pieces=pieces, size=size))
    return groups


def _pieces(draft: Draft, index: ResidencyIdx) -> list[Piece]:
    """Return the bytes of a residency; what its successor in place takes over is left out."""
    one, pieces = draft.residencies[index], []
    until = one.end
    for task, old, new in draft.pairs:
        if old == index:
            placement = draft.placements[task]
            until = placement.start
            kept = draft.residencies[new].bytes
            if one.bytes > kept:
                pieces.append(Piece(placement.start, placement.end, kept, one.bytes))
    if until > one.start:
        pieces.append(Piece(one.start, until, 0, one.bytes))
    return pieces
