"""What keeps every plan away, as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from spmilp.errors import Shortage
from spmilp.machine.machine import Machine
from spmilp.units import Bytes, MemoryIdx

MOST_PARTS = 4
"""Buffers that are named, the largest first."""


class Cause(StrEnum):
    """What keeps every plan away."""

    CORE = "core"
    """No core is of a kind that can run a task."""
    DRAM = "dram"
    """Inputs, weights and outputs are more than the DRAM holds."""
    START = "start"
    """What has to lie in an on-chip memory at the start, or at the end, is more than it holds."""
    TASK = "task"
    """A task's operands, results and scratch are more than any memory of its cores holds."""
    PIECES = "pieces"
    """They would fit by size, but reserved ranges leave no pieces that are long enough."""
    ROUTE = "route"
    """No engine brings an operand to a core that can run the task, or a result to where it ends."""
    TILE = "tile"
    """A group's tiles are more than any memory holds, however it is cut."""
    PINS = "pins"
    """Pins that contradict each other, or leave a task no core that can run it."""
    ROOM = "room"
    """The list scheduler has no room for a task beside what must stay, or for what it spills."""
    OTHER = "other"
    """Nothing of that; what the solver says of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """Why there is no plan.

    Parameters
    ----------
    what
        The task, cycle, tensor or group that is in the way.
    said
        One sentence that says why.
    memory
        The memory that is too small, by index; ``None`` where no memory is.
    needed
        Bytes that have to be in it at one time, at the least; ``None`` where that is not known.
    usable
        Bytes of it that they can use.
    parts
        ``(name, bytes)`` of the largest buffers among them.
    ends
        For ``ROUTE``: the bytes to move, and the memories between which no way leads.
    is_proven
        Whether no plan exists; else none was found.
    task
        The name of the task that is in the way, if one is.
    """

    cause: Cause
    what: str
    said: str
    memory: MemoryIdx | None = None
    needed: Bytes | None = None
    usable: Bytes | None = None
    parts: tuple[tuple[str, Bytes], ...] = ()
    ends: tuple[Bytes, tuple[MemoryIdx, ...], tuple[MemoryIdx, ...]] | None = None
    is_proven: bool = True
    task: str = ""


def of_shortage(
    machine: Machine, short: Shortage, cause: Cause, *, is_proven: bool = True
) -> Misfit:
    """Return that something is larger than each memory that could hold it."""
    said = f"it needs more at one time than {short.memory} holds, the largest memory of a core "
    return Misfit(
        cause=cause,
        what=short.what,
        said=f"{said}that can run it",
        memory=memory_named(machine, short.memory),
        needed=short.needed,
        usable=short.usable,
        parts=largest(short.parts),
        is_proven=is_proven,
        task=short.task,
    )


def memory_named(machine: Machine, name: str) -> MemoryIdx:
    return next(memory.index for memory in machine.memories if memory.name == name)


def largest(parts: Sequence[tuple[str, Bytes]]) -> tuple[tuple[str, Bytes], ...]:
    return tuple(sorted(parts, key=lambda part: (-part[1], part[0]))[:MOST_PARTS])
