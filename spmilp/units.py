"""Names for the integers of the project.

Bytes and cycles are ``int``; all intervals are half-open, ``[start, end)``, in time and in
memory. Objects refer to each other by index, their position in the tuple that owns them; names
are for people.
"""

from collections.abc import Iterable
from typing import TypeAlias

Bytes: TypeAlias = int
Cycles: TypeAlias = int
Femtojoules: TypeAlias = int

MemoryIdx: TypeAlias = int
CoreIdx: TypeAlias = int
KindIdx: TypeAlias = int
LinkIdx: TypeAlias = int
EngineIdx: TypeAlias = int
TensorIdx: TypeAlias = int
BufferIdx: TypeAlias = int
SliceIdx: TypeAlias = int
TaskIdx: TypeAlias = int
ResidencyIdx: TypeAlias = int
TransferIdx: TypeAlias = int

Extents: TypeAlias = tuple[int, ...]
"""Elements along each axis."""

Box: TypeAlias = tuple[tuple[int, int], ...]
"""A half-open interval ``(start, stop)`` of elements along each axis."""


def align_up(value: int, alignment: int) -> int:
    """Return the least multiple of ``alignment`` that is at least ``value``."""
    return -(-value // alignment) * alignment


def indices_are_positions(kind: str, indices: Iterable[int]) -> None:
    """Raise a ``ValueError`` unless the objects of a tuple are numbered 0, 1, 2, ..."""
    for position, index in enumerate(indices):
        if index != position:
            raise ValueError(f"{kind} {index} stands at position {position}")
