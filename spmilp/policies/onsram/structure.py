"""What a policy knows of a buffer in a scratchpad, and of a task with nothing pinned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from spmilp.units import BufferIdx, Bytes, Cycles, MemoryIdx, SliceIdx, TaskIdx

Pins = frozenset[int]
"""Structures, by index, that lie in their scratchpad for their whole life."""


class Saving(NamedTuple):
    """What a structure that is pinned saves; less than 0 where it costs more."""

    cycles: Cycles
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """A buffer in a scratchpad: where it is written, or where some tasks read it.

    Parameters
    ----------
    uses
        Steps at which a task writes it here or reads it or parts of it, in order; it lives from
        the first to the last, both included.
    extra
        For each step of its life at which a task runs in the memory: the blocks that it takes if
        it is pinned, above what it takes if it is streamed.
    moving
        Cycles of its transfers at each of its uses, if it is streamed.
    savings
        For each step of which it is true: what the step's transfers take less if it is pinned.
    """

    index: int
    buffer: BufferIdx
    memory: MemoryIdx
    uses: tuple[int, ...]
    extra: Mapping[int, int]
    moving: Mapping[int, Cycles]
    savings: Mapping[int, Saving]

    @property
    def saved_bytes(self) -> Bytes:
        """DRAM traffic that pinning saves in all."""
        return sum(saving.bytes for saving in self.savings.values())


class Overwrite(NamedTuple):
    """A result that may take over the bytes of an operand.

    Parameters
    ----------
    position
        Of the operand among the task's reads.
    blocks
        That both share.
    unless
        The structure whose pinning forbids it; ``None`` if none does.
    only_if
        Structures that have to be pinned for it.
    """

    position: int
    buffer: BufferIdx
    blocks: int
    unless: int | None
    only_if: Pins = frozenset()


@dataclass(slots=True, kw_only=True)
class Step:
    """One task with nothing pinned.

    Parameters
    ----------
    holders
        For each read, the slice that is loaded for it: itself, or the whole buffer where no engine
        copies a part.
    blocks
        That operands, results and scratch take, nothing overwritten.
    work, moving
        Cycles of the task, and of its loads and stores.
    traffic
        Bytes of these.
    """

    task: TaskIdx
    memory: MemoryIdx
    holders: tuple[SliceIdx, ...] = ()
    blocks: int = 0
    work: Cycles = 0
    moving: Cycles = 0
    traffic: Bytes = 0
    overwrites: list[Overwrite] = field(default_factory=list)


class Moved(NamedTuple):
    """Transfers: the blocks that they fill or empty in the scratchpad, cycles, DRAM traffic."""

    blocks: int
    cycles: Cycles
    bytes: Bytes
