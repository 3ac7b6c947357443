"""What a placement says of buffers, and the tasks that use them.

The tasks run on given cores, one operator after another. A *wave* is what runs between two
barriers, as in a program of several threads: operators that follow as many others. A *part* says
one thing of one buffer: it has its home in this scratchpad, a copy of it goes to DRAM, or the tasks
in that scratchpad get it from there, each time or once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from spmilp.units import BufferIdx, CoreIdx, Cycles, MemoryIdx, TaskIdx

Placement = frozenset[int]
"""Parts, by index."""

Event = tuple[MemoryIdx, int]
"""A memory and a step at which something begins in it."""


class Role(StrEnum):
    """What a part says of a buffer."""

    HOME = "home"
    STORE = "store"
    STREAM = "stream"
    REPLICA = "replica"


class Charge(NamedTuple):
    """Cycles for which a resource is busy in a wave: a core, or behind all cores a link."""

    wave: int
    resource: int
    cycles: Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that a placement may say of a buffer.

    Parameters
    ----------
    memory
        Of the home, of the tasks that read it, or the DRAM.
    source
        Where it comes from, for those who read it.
    needs
        The part without which this one cannot be, if any.
    blocks
        Taken in a memory at each event of it; less than 0 where a result takes bytes over.
    given
        ``(step, position)`` of the reads whose bytes a result takes over.
    """

    index: int
    buffer: BufferIdx
    role: Role
    memory: MemoryIdx
    source: MemoryIdx | None = None
    needs: int | None = None
    charges: tuple[Charge, ...] = ()
    blocks: Mapping[Event, int]
    given: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A task of the sequence.

    Parameters
    ----------
    overwrites
        ``(position, buffer)``: the reads that results may take over, and the results.
    """

    task: TaskIdx
    pool: int
    core: CoreIdx
    memory: MemoryIdx
    wave: int
    overwrites: tuple[tuple[int, BufferIdx], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A buffer that tasks read.

    Parameters
    ----------
    homes
        The part of each scratchpad that it may have its home in.
    store
        The part that brings a copy to DRAM; ``None`` where it is there whatever is decided.
    readers
        For each scratchpad in which tasks read it, the parts of which one is chosen, unless it
        has its home there; the first one is from DRAM each time.
    """

    buffer: BufferIdx
    homes: Mapping[MemoryIdx, int]
    store: int | None
    readers: Mapping[MemoryIdx, tuple[int, ...]]

    @property
    def off_chip(self) -> Placement:
        """Everything from DRAM, each time."""
        chosen = [parts[0] for parts in self.readers.values()]
        return frozenset(chosen if self.store is None else [self.store, *chosen])
