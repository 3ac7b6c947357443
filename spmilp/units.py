"""Names for the integers of the project.

Bytes and cycles are ``int``; all intervals are half-open, ``[start, end)``, in time and in
memory. Objects refer to each other by index, their position in the tuple that owns them; names
are for people.
"""

from collections.abc import Iterable
from typing import Annotated, TypeAlias

from msgspec import Meta

LARGEST = 2**48
"""No count of bytes or cycles in a file is larger: sums of many stay within 64 bits."""

LARGEST_TOTAL = 2**63 - 1
"""Largest energy in femtojoules, and largest sum, so that 64 bits suffice for every reader."""

MOST_AXES = 32
"""No tensor of ONNX operators has so many; keeps what a hostile file makes us print short."""

Amount: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST)]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=LARGEST)]
Coordinate: TypeAlias = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]
Total: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST_TOTAL)]
"""Numbers, with the bounds that readers of files keep them in; to all others they are ``int``."""

WideNumber: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=LARGEST_TOTAL)]
"""Any number of 64 bits, such as a bound."""

Name: TypeAlias = Annotated[str, Meta(min_length=1)]

Bytes: TypeAlias = Amount
Cycles: TypeAlias = Amount
Femtojoules: TypeAlias = Total

MemoryIdx: TypeAlias = Amount
CoreIdx: TypeAlias = Amount
KindIdx: TypeAlias = Amount
LinkIdx: TypeAlias = Amount
EngineIdx: TypeAlias = Amount
TensorIdx: TypeAlias = Amount
BufferIdx: TypeAlias = Amount
SliceIdx: TypeAlias = Amount
TaskIdx: TypeAlias = Amount
ResidencyIdx: TypeAlias = Amount
TransferIdx: TypeAlias = Amount

Extents: TypeAlias = Annotated[tuple[Count, ...], Meta(max_length=MOST_AXES)]
"""Elements along each axis."""

Corner: TypeAlias = Annotated[tuple[Amount, ...], Meta(max_length=MOST_AXES)]
"""An element: its position along each axis."""

Interval: TypeAlias = tuple[Coordinate, Coordinate]
"""Elements ``[start, stop)`` of one axis."""

Box: TypeAlias = Annotated[tuple[Interval, ...], Meta(max_length=MOST_AXES)]
"""A half-open interval of elements along each axis."""


def align_up(value: int, alignment: int) -> int:
    """Return the least multiple of ``alignment`` that is at least ``value``."""
    return -(-value // alignment) * alignment


def indices_are_positions(kind: str, indices: Iterable[int]) -> None:
    """Raise a ``ValueError`` unless the objects of a tuple are numbered 0, 1, 2, ..."""
    for position, index in enumerate(indices):
        if index != position:
            raise ValueError(f"{kind} {index} stands at position {position}")
