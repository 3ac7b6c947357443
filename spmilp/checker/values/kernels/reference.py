"""Operators that ONNX's own reference implementation computes, ``onnx.reference``."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx.defs import get_schema
from onnx.helper import make_node
from onnx.reference import ReferenceEvaluator

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.graph import Operator
from spmilp.frontend.operators import moves
from spmilp.frontend.operators.boxes import slices, starts

ON_THE_WHOLE = frozenset(
    {
        *("LayerNormalization", "RMSNormalization"),
        *(kind for family in moves.FAMILIES for kind in family.kinds),
    }
)
"""Operators whose result depends on where in its tensor a box lies, or on more of one input than
of the others: they are computed as a whole, with zeros for what is not known."""


def reference(call: Call) -> Array:
    """Return the box of the output, computed from the boxes that are read."""
    if call.operator.kind in ON_THE_WHOLE:
        wholes = [call.whole(at) if name else None for at, name in enumerate(call.operator.inputs)]
        result = _run(call.operator, wholes)
        return result[slices(call.box, (0,) * len(call.box))]
    result = _run(call.operator, call.inputs)
    if result.shape == call.extent:
        return result
    # Some axes are read whole.
    return result[slices(call.box, starts(call.read(0)))]


def _run(operator: Operator, arrays: Sequence[Array | None]) -> Array:
    """Compute an operator; its attributes that ONNX takes as inputs are given as such."""
    schema = get_schema(operator.kind)
    known = [one.name.lower() for one in schema.inputs]
    names = [str(position) * (array is not None) for position, array in enumerate(arrays)]
    feeds = {name: array for name, array in zip(names, arrays, strict=True) if name}
    attributes = {}
    for name, value in _as_onnx_names(operator).items():
        if name in schema.attributes:
            attributes[name] = value
        elif name in known:
            names += [""] * (known.index(name) + 1 - len(names))
            names[known.index(name)] = name
            feeds[name] = np.asarray(value)
    outputs = ["result"]
    if operator.kind == "TopK":
        outputs.insert(operator.integer("positions") ^ 1, "other")
    node = make_node(operator.kind, names, outputs, **attributes)
    (result,) = ReferenceEvaluator(node).run(["result"], feeds)
    return np.asarray(result)


def _as_onnx_names(operator: Operator) -> Mapping[str, Any]:
    """Return the attributes of an operator by the names, and in the form, that ONNX gives them."""
    given: dict[str, Any] = dict(operator.attributes)
    if operator.kind in ("ArgMax", "ArgMin"):
        (given["axis"],) = operator.integers("axes", 1)
    elif operator.kind == "TopK":
        given["k"] = (given["k"],)
    elif operator.kind == "Gather" and "indices" in given:
        given["indices"] = np.reshape(given["indices"], given["indices_shape"])
    elif operator.kind.startswith("Reduce"):
        given["noop_with_empty_axes"] = 1
    return given
