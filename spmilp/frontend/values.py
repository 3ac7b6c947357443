"""Shape and type of a value of the model."""

import numpy as np
import onnx_ir as ir

from spmilp.units import Extents

TYPES = frozenset(
    {
        *("bfloat16", "bool", "float16", "float32", "float64"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    }
)
"""NumPy types that tensors may have."""


def static_shape(value: ir.Value) -> Extents:
    """Return the shape of a value.

    Raises
    ------
    ValueError
        If it is not known, or empty.
    """
    if value.shape is None or not value.shape.is_static():
        raise ValueError(f"the shape of {value.name} depends on data")
    shape = tuple(int(length) for length in value.shape.numpy())
    if 0 in shape:
        raise ValueError(f"{value.name} of shape {list(shape)} is empty")
    return shape


def numpy_dtype(value: ir.Value) -> np.dtype[np.generic]:
    """Return the type of a value.

    Raises
    ------
    ValueError
        If it is not known, or no tensor can have it.
    """
    if value.dtype is None:
        raise ValueError(f"the data type of {value.name} is not known")
    name = value.dtype.name.lower()
    dtype = None if value.dtype is ir.DataType.STRING else np.dtype(value.dtype.numpy())
    if dtype is None or dtype.name not in TYPES:
        raise ValueError(f"{value.name} has data type {name}, which is not supported")
    return dtype
