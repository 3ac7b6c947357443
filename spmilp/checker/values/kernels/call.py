"""Arguments of a kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.boxes import slices, whole
from spmilp.units import Box, Extents

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One operator on one box of its output.

    Inputs are the values of the boxes that the operator's family says are read; ``None`` for an
    input of which nothing is read.
    """

    operator: Operator
    tensors: Mapping[str, Tensor]
    inputs: Sequence[Array | None]
    boxes: Sequence[Box | None]
    box: Box

    @property
    def extent(self) -> Extents:
        """Elements of the output's box along each axis."""
        return tuple(stop - start for start, stop in self.box)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the output."""
        return self.tensors[self.operator.output].dtype

    def shape(self, position: int) -> Extents:
        """Return the shape of the whole of an input."""
        return self.tensors[self.operator.inputs[position]].shape

    def there(self, position: int) -> bool:
        """Say whether values of an input are given."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def array(self, position: int) -> Array:
        """Return the values of an input that is read."""
        values = self.inputs[position]
        if values is None:
            raise ValueError(f"{self.operator.name}: no values of input {position}")
        return values

    def read(self, position: int) -> Box:
        """Return the box of an input that is read."""
        box = self.boxes[position]
        if box is None:
            raise ValueError(f"{self.operator.name}: nothing is read of input {position}")
        return box

    def whole(self, position: int) -> Array:
        """Return a whole input, zero where its values are not known."""
        values, read, shape = self.inputs[position], self.boxes[position], self.shape(position)
        if values is not None and read == whole(shape):
            return values
        result = np.zeros(shape, dtype=np.float32 if values is None else values.dtype)
        if values is not None and read is not None:
            result[slices(read, (0,) * len(read))] = values
        return result
