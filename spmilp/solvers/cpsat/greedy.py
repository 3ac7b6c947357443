"""Offsets for given lifetimes by first fit, tried in a few orders."""

from collections.abc import Callable

from spmilp.machine.machine import Memory
from spmilp.solvers.cpsat.groups import Group, Piece
from spmilp.units import Bytes, Cycles, align_up


def fit_greedily(memory: Memory, groups: list[Group]) -> list[Bytes] | None:
    """Return an offset for each group, ``None`` if no order leads to a fit."""
    for order in _ORDERS:
        found = _first_fit(memory, groups, sorted(range(len(groups)), key=order(groups)))
        if found is not None:
            return found
    return None


def _span(group: Group) -> Cycles:
    start = min((piece.start for piece in group.pieces), default=0)
    return max((piece.end for piece in group.pieces), default=0) - start


_ORDERS: tuple[Callable[[list[Group]], Callable[[int], tuple[int, ...]]], ...] = (
    lambda groups: lambda g: (groups[g].tensor is None, -groups[g].size * _span(groups[g]), g),
    lambda groups: lambda g: (groups[g].tensor is None, -groups[g].size, g),
    lambda groups: lambda g: (groups[g].tensor is None, -_span(groups[g]), g),
)


def _first_fit(memory: Memory, groups: list[Group], order: list[int]) -> list[Bytes] | None:
    offsets: list[Bytes] = [0] * len(groups)
    placed: list[tuple[Piece, Bytes]] = []
    for index in order:
        group = groups[index]
        offset = _lowest(memory, group, placed)
        if offset is None:
            return None
        offsets[index] = offset
        placed += [(piece, offset) for piece in group.pieces]
    return offsets


def _lowest(memory: Memory, group: Group, placed: list[tuple[Piece, Bytes]]) -> Bytes | None:
    """Return the lowest address where no byte is taken at the same time."""
    taken = [(one.start - group.size + 1, one.end) for one in memory.reserved]
    taken += [
        (at + other.low - piece.high + 1, at + other.high - piece.low)
        for other, at in placed
        for piece in group.pieces
        if piece.start < other.end and other.start < piece.end
    ]
    offset = 0
    for first, last in sorted(taken):
        if first <= offset < last:
            offset = align_up(last, memory.alignment)
    if memory.size is not None and offset + group.size > memory.size:
        return None
    return offset
