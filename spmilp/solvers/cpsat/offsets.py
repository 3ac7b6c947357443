"""Offsets in one memory whose lifetimes are given: the exact search of ``spmilp.packing``."""

from dataclasses import dataclass

from spmilp.machine.machine import Memory
from spmilp.packing import Item, Packing, PackingOptions, PackingProblem, minimise, pack
from spmilp.solvers.cpsat.extract import Draft
from spmilp.solvers.cpsat.groups import Group
from spmilp.units import Bytes

LIMITS = PackingOptions(node_limit=2_000_000)
"""A few seconds; a limit on nodes gives the same answer everywhere."""


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


def pack_groups(memory: Memory, draft: Draft, groups: list[Group], low: bool) -> Offsets:
    """Return offsets for groups within a memory, ``low`` ones if that is asked for.

    A residency and the one that takes its bytes over have one offset and share bytes for as long as
    both live, which is what the packing calls *together*.
    """
    items: list[Item] = []
    owners: list[int] = []
    together: list[tuple[int, int]] = []
    for position, group in enumerate(groups):
        first = len(items)
        for size, start, end in _lives(draft, group):
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
    found: Packing = minimise(problem, LIMITS) if low else pack(problem, LIMITS)
    if found.offsets is None:
        crowd = owners if found.conflict is None else [owners[item] for item in found.conflict]
        return Offsets(of_groups=None, conflict=tuple(sorted(set(crowd))))
    offsets = [0] * len(groups)
    for owner, offset in zip(owners, found.offsets, strict=True):
        offsets[owner] = offset
    return Offsets(of_groups=tuple(offsets))


def _lives(draft: Draft, group: Group) -> list[tuple[Bytes, int, int]]:
    """Return ``(bytes, start, end)`` of what lies at a group's offset, in order of time."""
    if group.tensor is not None:
        return [(piece.high, piece.start, piece.end) for piece in group.pieces]
    members = (draft.residencies[index] for index in group.members)
    lives = [(one.bytes, one.start, one.end) for one in members if one.start < one.end]
    return sorted(lives, key=lambda life: life[1:])
