"""A state of the search: the machine at one cycle, times relative to it."""

from typing import NamedTuple, TypeAlias

from spmilp.units import Bytes, Cycles, EngineIdx, LinkIdx, SliceIdx

WAITING = -1
DONE = 0

Layout: TypeAlias = tuple[Bytes, ...]
"""An address for each tensor of a memory, then for each residency; -1 for one at its place."""


class LiveResidency(NamedTuple):
    """A residency of the state: something that lies in a memory.

    Parameters
    ----------
    slice
        ``-1 - t`` for the scratch bytes of task ``t``.
    residue
        Its address modulo the engines' congruences; -1 where it does not matter.
    valid_in, busy_for
        Cycles until it is filled, and until its last present user has ended (filling is a use).
    used
        Whether it has served something, as it must if a transfer fills it; else true.
    leaving
        Whether it ends with its present users and serves no others.
    """

    slice: SliceIdx
    residue: int
    valid_in: Cycles
    busy_for: Cycles
    used: bool
    leaving: bool


class MemoryState(NamedTuple):
    """The contents of one memory.

    Parameters
    ----------
    layouts
        Every way in which the residencies can lie, given all that has lain there before; ``None``
        where everything fits at once.
    """

    residencies: tuple[LiveResidency, ...]
    layouts: frozenset[Layout] | None


class TaskState(NamedTuple):
    """How far a task is: ``WAITING``, ``DONE``, or the cycles left; and its group of cores."""

    left: Cycles
    group: int


class RunningTransfer(NamedTuple):
    """A transfer that is under way; ``rate`` in the unit of :class:`.ProblemTables`."""

    engine: EngineIdx
    rate: int
    links: tuple[LinkIdx, ...]
    left: Cycles


class State(NamedTuple):
    """Everything that decides what can follow.

    Parameters
    ----------
    tensor_residues
        The address of each tensor modulo the engines' congruences.
    """

    tasks: tuple[TaskState, ...]
    transfers: tuple[RunningTransfer, ...]
    memories: tuple[MemoryState, ...]
    tensor_residues: tuple[int, ...]


class Node(NamedTuple):
    """A state with the names of its residencies: for each memory, a number for each residency.

    Parameters
    ----------
    next_name
        The number of the next residency to be named.
    """

    state: State
    names: tuple[tuple[int, ...], ...]
    next_name: int
