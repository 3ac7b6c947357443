"""Data, parts of it and tasks as people describe them: by names, before they have indices."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from spmilp.errors import ArgumentError
from spmilp.problem.problem import BufferKind
from spmilp.units import Bytes, Extents, MemoryIdx

ITEMS: Mapping[str, Bytes] = {
    **dict.fromkeys(("bool", "int8", "uint8", "float8"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64"), 8),
}
"""Bytes of an element of each data type."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A box of some data: what a task reads.

    Parameters
    ----------
    start, extent
        Elements along each axis.
    """

    data: "Data"
    start: Extents
    extent: Extents

    @property
    def bytes(self) -> Bytes:
        """Size in bytes, packed."""
        return prod(self.extent) * ITEMS[self.data.dtype]

    @property
    def key(self) -> tuple[str, Extents, Extents]:
        """Name, start and extent: equal for equal parts."""
        return self.data.name, self.start, self.extent

    def __repr__(self) -> str:
        if self.extent == self.data.shape:
            return self.data.name
        box = zip(self.start, self.extent, strict=True)
        return f"{self.data.name}[{', '.join(f'{a}:{a + n}' for a, n in box)}]"


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Something that tasks read or write; ``data[0:8, :]`` is the part that a task reads of it.

    :meth:`ProblemBuilder.input`, :meth:`~ProblemBuilder.weight` and :meth:`~ProblemBuilder.task`
    return it.

    Parameters
    ----------
    shape
        Elements along each axis, row major.
    dtype
        Data type of an element.
    """

    name: str
    shape: Extents
    dtype: str

    @property
    def bytes(self) -> Bytes:
        """Size in bytes."""
        return prod(self.shape) * ITEMS[self.dtype]

    def __getitem__(self, key: slice | int | tuple[slice | int, ...]) -> View:
        """Return a part: a half-open interval along each axis; axes that are left out are whole.

        Raises
        ------
        ValueError
            If an interval is empty or leaves its axis, or there are more of them than axes.
        """
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > len(self.shape):
            raise ArgumentError(f"{self.name}: {len(keys)} slices, but {len(self.shape)} axes")
        box = [
            self._interval(axis, keys[axis] if axis < len(keys) else slice(None))
            for axis in range(len(self.shape))
        ]
        return View(self, tuple(a for a, _ in box), tuple(b - a for a, b in box))

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype} {'x'.join(map(str, self.shape))}"

    def _interval(self, axis: int, key: slice | int) -> tuple[int, int]:
        length = self.shape[axis]
        if isinstance(key, int):
            key = slice(key, key + 1)
        if key.step not in (None, 1):
            raise ArgumentError(f"{self.name}: a step of {key.step} along axis {axis}, expected 1")
        start, stop = (
            0 if key.start is None else key.start,
            length if key.stop is None else key.stop,
        )
        if not 0 <= start < stop <= length:
            raise ArgumentError(
                f"{self.name}: [{start}, {stop}) along axis {axis}, which is [0, {length})"
            )
        return start, stop


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTask:
    """A task as it was described, its references by name."""

    name: str
    reads: tuple[View, ...]
    writes: tuple[Data, ...]
    cycles: tuple[int | None, ...]
    energy: tuple[int | None, ...]
    scratch: Bytes
    after: tuple[str, ...]
    in_place: tuple[tuple[View, Data], ...]
    partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The box of a DRAM tensor, or the memory, where some data starts or ends."""

    kind: BufferKind
    memory: MemoryIdx
    tensor: str
    shape: Extents
    start: Extents
