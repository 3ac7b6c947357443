"""Dynamic dimensions of the network's inputs become numbers."""

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from spmilp.errors import SpmilpError


def bind_dimensions(model: ir.Model, dims: Mapping[str, int]) -> None:
    """Put ``dims`` in place of the dynamic dimensions of the inputs.

    A dimension without a name of its own goes by ``INPUT.AXIS``, for example ``x.0``.

    Raises
    ------
    SpmilpError
        If ``dims`` names a dimension that the model does not have, a length is not positive, or a
        dimension stays without a length.
    """
    known = dynamic_dimensions(model.graph)
    for name, length in dims.items():
        if name not in known:
            raise SpmilpError(f"the model has no dimension {name!r}; {_listed(known)}")
        if length <= 0:
            raise SpmilpError(f"dimension {name} is {length}, expected > 0")
    missing = [name for name in known if name not in dims]
    if missing:
        options = " ".join(f"--dim {name}=..." for name in missing)
        raise SpmilpError(f"the length of {', '.join(missing)} is not known; give {options}")
    for value in model.graph.inputs:
        names = _names(value)
        if names and value.shape is not None:
            lengths = zip(names, value.shape, strict=True)
            value.shape = ir.Shape([dims[name] if name else length for name, length in lengths])


def dynamic_dimensions(graph: ir.Graph) -> tuple[str, ...]:
    """Return the names of the inputs' dynamic dimensions, each once, in order."""
    return tuple(dict.fromkeys(name for value in graph.inputs for name in _names(value) if name))


def _names(value: ir.Value) -> tuple[str, ...]:
    """For each axis, the name of its dynamic dimension, ``""`` where its length is fixed."""
    if value.shape is None:
        raise SpmilpError(
            f"input {value.name} is no tensor of known rank; the front end reads tensors only"
        )
    return tuple(_name(value, axis, length) for axis, length in enumerate(value.shape))


def _name(value: ir.Value, axis: int, length: int | ir.SymbolicDim) -> str:
    if isinstance(length, int) and length > 0:
        return ""
    symbol = length.value if isinstance(length, ir.SymbolicDim) else None
    return symbol or f"{value.name}.{axis}"


def _listed(known: Iterable[str]) -> str:
    names = ", ".join(known)
    return f"its dynamic dimensions are {names}" if names else "none of its dimensions is dynamic"
