"""Lengths of dynamic dimensions, and values of inputs, that are given as options."""

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from spmilp.errors import SpmilpError
from spmilp.formats import near_matches
from spmilp.units import LARGEST

NONE_DYNAMIC = "none of its dimensions is dynamic"


def bind_dimensions(model: ir.Model, dims: Mapping[str, int]) -> None:
    """Put ``dims`` in place of the dynamic dimensions of the inputs.

    A dimension goes by its name; one axis, with a name or without, goes by ``INPUT.AXIS``, for
    example ``x.0``, which counts where both are given.

    Raises a ``SpmilpError`` if ``dims`` names a dimension that the model does not have, a length is
    not positive or beyond all memories, or a dimension stays without a length.
    """
    dynamic = dict(axis for value in model.graph.inputs for axis in _dynamic_axes(value))
    known = tuple(dict.fromkeys(dynamic.values()))
    shared = (f"; of one axis alone, --dim {axis}=..." for axis in dynamic if axis not in known)
    alone = next(shared, "")
    for name, length in dims.items():
        if name not in known and name not in dynamic:
            there = f"its dynamic dimensions are {', '.join(known)}" if known else NONE_DYNAMIC
            raise SpmilpError(f"the model has no dimension {name!r}; {there}{alone}")
        if not 0 < length <= LARGEST:
            raise SpmilpError(f"dimension {name} is {length}, expected 1 to {LARGEST}")
    lengths = {axis: dims.get(axis, dims.get(name)) for axis, name in dynamic.items()}
    missing = dict.fromkeys(dynamic[axis] for axis, length in lengths.items() if length is None)
    if missing:
        options = " ".join(f"--dim {name}=..." for name in missing)
        raise SpmilpError(f"the length of {', '.join(missing)} is not known; give {options}{alone}")
    for value in model.graph.inputs:
        axes = enumerate(value.shape or ())
        value.shape = ir.Shape([lengths.get(f"{value.name}.{at}", given) for at, given in axes])


def _dynamic_axes(value: ir.Value) -> Iterator[tuple[str, str]]:
    """Yield ``INPUT.AXIS`` of each axis without a length, and its name, which may be the same."""
    if value.shape is None:
        raise SpmilpError(
            f"input {value.name} is no tensor of known rank; the front end reads tensors only"
        )
    for axis, length in enumerate(value.shape):
        if not isinstance(length, int) or length <= 0:
            own = f"{value.name}.{axis}"
            yield own, (length.value if isinstance(length, ir.SymbolicDim) else None) or own


def bind_inputs(model: ir.Model, given: Mapping[str, str]) -> dict[str, NDArray[np.generic]]:
    """Make constants of the inputs whose values are given, and return their values.

    Raises a ``SpmilpError`` if the model has no such input, or the values are not of its type or
    not as many as its elements.
    """
    graph = model.graph
    inputs = {str(one.name): one for one in graph.inputs if one.name not in graph.initializers}
    found = {}
    for name, text in given.items():
        if name not in inputs:
            raise SpmilpError(
                f"the model has no input {name!r}{near_matches(name, tuple(inputs))}; its inputs "
                f"are {', '.join(inputs)}"
            )
        value = inputs[name]
        found[name] = array = _array(value, text)
        value.const_value, value.shape = ir.tensor(array, name=name), ir.Shape(array.shape)
        graph.inputs.remove(value)
        graph.register_initializer(value)
    return found


TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def _array(value: ir.Value, text: str) -> NDArray[np.generic]:
    parts = [part.strip() for part in text.lower().split(",")]
    lengths = [length if isinstance(length, int) else 0 for length in value.shape or ()]
    # A list says how long its axis is.
    lengths = [len(parts)] if lengths == [0] else lengths
    if prod(lengths) != len(parts):
        raise SpmilpError(
            f"input {value.name} of shape [{', '.join(map(str, value.shape or ()))}] is given "
            f"{len(parts)} values; give one for each of its elements, with commas between them"
        )
    dtype = ir.DataType.UNDEFINED if value.dtype is None else value.dtype
    try:
        read = [TRUTHS[part] for part in parts] if dtype is ir.DataType.BOOL else parts
        return np.array(read).astype(dtype.numpy()).reshape(lengths)
    except (LookupError, OverflowError, TypeError, ValueError) as error:
        kind = str(dtype).lower()
        raise SpmilpError(f"input {value.name} is of type {kind}, which {text} is not") from error
