"""What the search knows of the machine at one cycle; times are relative to it."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from spmilp.units import Bytes, Cycles, EngineIdx, LinkIdx, SliceIdx

WAITING = -1
DONE = 0

Layout: TypeAlias = tuple[Bytes, ...]
"""An address for each tensor of a memory, then for each stay; -1 for one at its place."""


class Stay(NamedTuple):
    """Something that lies in a memory.

    Parameters
    ----------
    slice
        What it is; ``-1 - t`` for the scratch bytes of task ``t``.
    residue
        Its address modulo the engines' congruences; -1 where it does not matter.
    valid_in, busy_for
        Cycles until it is filled, and until its last user of now has ended (filling is a use).
    used
        Whether it has served something, or need not: only what a transfer brings has to.
    leaving
        Whether it ends with its users of now and serves no others.
    """

    slice: SliceIdx
    residue: int
    valid_in: Cycles
    busy_for: Cycles
    used: bool
    leaving: bool


class Shelf(NamedTuple):
    """The contents of one memory.

    Parameters
    ----------
    layouts
        Every way in which the stays can lie, given all that has lain there before; ``None`` where
        there is room for everything at once.
    """

    stays: tuple[Stay, ...]
    layouts: frozenset[Layout] | None


class TaskState(NamedTuple):
    """How far a task is: ``WAITING``, ``DONE``, or the cycles left; and its group of cores."""

    left: Cycles
    group: int


class Move(NamedTuple):
    """A transfer that is under way; ``rate`` in the unit of :class:`.Given`."""

    engine: EngineIdx
    rate: int
    links: tuple[LinkIdx, ...]
    left: Cycles


class State(NamedTuple):
    """Everything that decides what can follow.

    Parameters
    ----------
    anchors
        The address of each tensor modulo the engines' congruences.
    """

    tasks: tuple[TaskState, ...]
    moves: tuple[Move, ...]
    shelves: tuple[Shelf, ...]
    anchors: tuple[int, ...]


class Node(NamedTuple):
    """A state with the names of its stays: for each memory, a number for each stay.

    Parameters
    ----------
    made
        Stays that have been named so far; the next one gets this number.
    """

    state: State
    names: tuple[tuple[int, ...], ...]
    made: int


def in_order(
    stays: Sequence[Stay], names: Sequence[int], layouts: frozenset[Layout] | None, tensors: int
) -> tuple[Shelf, tuple[int, ...]]:
    """Return a shelf that does not depend on the order in which its contents came."""
    order = sorted(range(len(stays)), key=lambda i: stays[i])
    if order == list(range(len(stays))):
        return Shelf(tuple(stays), layouts), tuple(names)
    if layouts is not None:
        columns = [*range(tensors), *(tensors + i for i in order)]
        layouts = frozenset(tuple(layout[c] for c in columns) for layout in layouts)
    return Shelf(tuple(stays[i] for i in order), layouts), tuple(names[i] for i in order)


def without(layouts: frozenset[Layout] | None, columns: set[int]) -> frozenset[Layout] | None:
    """Return the layouts with some columns left out."""
    if layouts is None or not columns:
        return layouts
    return frozenset(
        tuple(offset for column, offset in enumerate(layout) if column not in columns)
        for layout in layouts
    )
