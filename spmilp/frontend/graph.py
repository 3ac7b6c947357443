"""The network after clean-up: operators, tensors and fused groups. No ONNX object from here on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from spmilp.cached import Cache
from spmilp.files import sha256_of
from spmilp.frontend.passes import DEFAULT_PASSES, Passes
from spmilp.problem.several import Member
from spmilp.units import LARGEST, Bytes, Extents

GIVEN = "input "
"""Begins what a problem says of an input whose values were given."""

T = TypeVar("T")
Attribute: TypeAlias = int | float | str | tuple[int, ...] | tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tensor:
    """A value of the graph.

    Parameters
    ----------
    shape
        Elements along each axis; all positive. A scalar has none.
    dtype
        NumPy type of the values that buffers hold.
    data
        The values of a constant; ``None`` for what is computed or given at run time.
    shape_only
        The file carries only the constant's shape.
    fill
        The number that all of its values are then, if the file says so.
    """

    name: str
    shape: Extents
    dtype: np.dtype[np.generic]
    data: NDArray[np.generic] | None = None
    shape_only: bool = False
    fill: float | None = None

    def __post_init__(self) -> None:
        if self.bytes > LARGEST:
            raise ValueError(f"tensor {self.name} has {self.bytes} B, expected at most {LARGEST} B")

    @property
    def values(self) -> NDArray[np.generic] | None:
        """The values of a constant, be they one number throughout; ``None`` if there are none."""
        if self.data is not None or self.fill is None:
            return self.data
        return np.broadcast_to(np.asarray(self.fill, dtype=self.dtype), self.shape)

    @property
    def bytes(self) -> Bytes:
        """Size in bytes."""
        return prod(self.shape) * self.dtype.itemsize


class Rounding(IntEnum):
    """How results become integers; the numbers are those that exported C knows."""

    HALF_EVEN = 1
    """Real results are rounded, a half to the even integer, and the zero point is added."""
    WITH_ZERO = 2
    """They are rounded after the zero point has been added (onnxruntime's QLinearAdd, QLinearMul,
    QLinearAveragePool), so that a half goes to the even integer."""
    FIXED_POINT = 3
    """They are computed with integers throughout, as TensorFlow Lite's reference kernels do."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scale:
    """Affine quantisation, ``real = scale * (integer - zero_point)``.

    ``scale`` and ``zero_point`` have one value for the tensor, or one for each position along
    ``axis``; ``dtype`` is the integer type. Results are rounded by ``rounding``.
    """

    scale: NDArray[np.float32]
    zero_point: NDArray[np.int32]
    axis: int | None
    dtype: np.dtype[np.generic]
    rounding: Rounding = Rounding.HALF_EVEN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantisation:
    """Makes an operator an integer one: it reads and writes integers that stand for reals.

    Convolutions and matrix products add products of (integer - zero point) exactly in int32, add
    the int32 bias, multiply by ``input scale * weight scale / output scale`` and round half to
    even. Every other operator works on the reals in float32 and rounds its result. ``inputs`` has
    ``None`` for an input of the operator that is not quantised (or absent). ``low`` and ``high``
    are limits of the real result before it is rounded (a fused Relu or Clip); ``None`` for none.
    """

    inputs: tuple[Scale | None, ...]
    output: Scale | None
    low: float | None = None
    high: float | None = None


class Attributed:
    """Typed access to attributes; a ``ValueError`` where one is missing or of another type."""

    __slots__ = ()
    kind: str
    attributes: Mapping[str, Attribute]

    def integer(self, name: str) -> int:
        """Return an attribute that is one integer."""
        return self._value(name, int)

    def number(self, name: str) -> float:
        """Return an attribute that is one number."""
        return float(self._value(name, int, float))

    def text(self, name: str) -> str:
        """Return an attribute that is a text."""
        return self._value(name, str)

    def integers(self, name: str, count: int | None = None) -> tuple[int, ...]:
        """Return an attribute that is a tuple of integers, ``count`` of them where given."""
        values = self.numbers(name, count)
        found = tuple(value for value in values if isinstance(value, int))
        if len(found) < len(values):
            raise ValueError(f"attribute {name} of {self.kind} is {values}, expected integers")
        return found

    def numbers(self, name: str, count: int | None = None) -> tuple[float, ...]:
        """Return an attribute that is a tuple of numbers, ``count`` of them where given."""
        given: tuple[float, ...] = self._value(name, tuple)
        if count is not None and len(given) != count:
            raise ValueError(f"attribute {name} of {self.kind} is {given}, expected {count} values")
        return given

    def axis(self, rank: int) -> int:
        """Return the attribute ``axis``, which counts from the front of ``rank`` axes."""
        axis = self.integer("axis")
        if not 0 <= axis < rank:
            raise ValueError(f"axis is {axis}, expected 0 to {rank - 1}")
        return axis

    def _value(self, name: str, *kinds: type[T]) -> T:
        value = self.attributes.get(name)
        if not isinstance(value, kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"attribute {name} of {self.kind} is {value!r}, expected {expected}")
        return value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operator(Attributed):
    """A node of the graph; it has one output.

    Its ``kind`` is the ONNX operator type; nodes with several outputs (Split, LSTM) have been
    replaced by nodes with one. ``inputs`` are names of tensors, ``""`` for an optional input that
    is left out. The operator's family has normalised the ``attributes``: explicit pads, axes not
    negative, every default present. Integer tensors that only say *how* (axes, sizes, starts, pads)
    are attributes, not inputs.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    quantisation: Quantisation | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Operators that one task computes together, tile by tile, without memory between them.

    Views (Reshape, Slice, ...) have no tasks of their own: each consumer's group begins with the
    views of what it reads, so that a group reads only tensors that lie in memory.

    ``operators`` are in topological order; the last one gives ``output``. ``anchor`` is the
    position of the one that carries the work (the convolution, the matrix product, the reduction);
    where the group is tiled over a reduction, it is the anchor's. ``inputs`` are the tensors in
    memory that it reads: network inputs, constants, outputs of other groups.
    """

    index: int
    name: str
    operators: tuple[Operator, ...]
    anchor: int
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Network:
    """A model that is ready to be tiled.

    Parameters
    ----------
    groups
        In topological order.
    inputs, outputs
        Names of tensors. Each output is written by one group (the front end adds a copy where the
        model's output is an input, a constant, or a view).
    sha256
        Of the model file.
    renamed
        The name in the model of each output that has another here: a copy of an input.
    passes, dim, given
        With which it was made: lengths of dynamic dimensions, values of inputs that are constants.
    parts
        The networks that were joined in it; none of a model's own.
    states
        Of an input that is one the output that an inference leaves there for the next one.
    """

    name: str
    tensors: Mapping[str, Tensor]
    groups: tuple[Group, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sha256: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    passes: Passes = DEFAULT_PASSES
    dim: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    parts: "tuple[Joined, ...]" = ()
    states: Mapping[str, str] = field(default_factory=dict)
    cache: Cache = field(default_factory=Cache, init=False, repr=False)

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """What a problem says of how it was made: networks, values that were given, passes."""
        joined = ((part.member.said, part.network.sha256) for part in self.parts)
        texts = (
            f"{GIVEN}{name}={','.join(map(str, values.reshape(-1).tolist()))}"
            for name, values in sorted(self.given.items())
        )
        given = ((text, sha256_of(text.encode())) for text in texts)
        return (*joined, *given, *self.passes.sources)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joined:
    """A network that is joined with others, the ``file`` of its model, and its part in them."""

    member: Member
    network: Network
    file: Path

    @property
    def constants(self) -> str:
        """What names of constants begin with where it is joined."""
        return self.member.constants
