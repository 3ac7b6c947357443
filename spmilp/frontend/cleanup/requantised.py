"""Networks of integers that are written as floats, as Deeploy has them, get integer types.

Their RequantShift scales and shifts integers, ``clip(floor((x * mul + add + div / 2) / div))``, as
Deeploy's kernels do (``TargetLibraries/Generic/src/RequantShift_s8.c``, with rounding). All other
tensors are integers, too: sums and products are int32, constants take the least type that holds
them. Of a network input the file says no more than float; it is taken to be uint8, as the images
and spectra are on which such networks are trained, unless the file declares another type.
"""

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray

from spmilp.frontend.cleanup.constants import is_shape_only
from spmilp.frontend.cleanup.nodes import (
    OWN_DOMAIN,
    Builder,
    name_of,
    noting_what_is_malformed,
    replace_node,
    set_reason,
)

SHIFT = "RequantShift"

KEEPS_INTEGERS = frozenset(
    {
        *("Concat", "Constant", "Expand", "Flatten", "Gather", "Identity", "MaxPool", "Pad"),
        *("Relu", "Reshape", "Shape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"),
    }
)
"""Operators that compute with integers what they compute with floats."""

SUMS = frozenset({"Add", "Mul", "Sub"})

TYPES = (np.int8, np.uint8, np.int16, np.uint16, np.int32)
"""For constants and results, the least first."""


class _NoMeaningError(Exception):
    """A node cannot be computed with integers; the message is the reason."""


def type_requantised_integers(model: ir.Model) -> bool:
    """Give every tensor of a network with RequantShift its integer type; say whether it is one.

    Shapes and types of what nodes give have to be inferred anew then.
    """
    graph = model.graph
    if not any(node.op_type == SHIFT and node.domain != OWN_DOMAIN for node in graph):
        return False
    _teach_shape_inference()
    graph.opset_imports[OWN_DOMAIN] = 1
    for value in graph.inputs:
        if value.dtype is ir.DataType.FLOAT:
            kind = ir.DataType.INT8 if is_shape_only(value) else ir.DataType.UINT8
            value.type = ir.TensorType(kind)
    for node in list(graph):
        for value in node.outputs:
            value.type, value.shape = None, None
        with noting_what_is_malformed(node):
            try:
                _rewrite(graph, node)
            except _NoMeaningError as error:
                set_reason(node, str(error))
    return True


def _rewrite(graph: ir.Graph, node: ir.Node) -> None:
    build = _Integers(graph, name_of(node))
    if node.op_type == "Conv":
        result = _convolution(build, node)
    elif node.op_type in ("Gemm", "MatMul"):
        result = _product(build, node)
    elif node.op_type in SUMS:
        operands = [build.narrow(value) for value in node.inputs]
        result = build.main(node.op_type, operands, OWN_DOMAIN)
    elif node.op_type == SHIFT:
        result = _shift(build, node)
    elif node.op_type in KEEPS_INTEGERS:
        return
    else:
        raise _NoMeaningError(
            f"a network with {SHIFT} holds integers, on which {node.op_type} has no exact meaning; "
            "cut it off, or export the network in QDQ form"
        )
    replace_node(graph, node, build.tape.nodes, [result])


def _convolution(build: "_Integers", node: ir.Node) -> ir.Value:
    attributes = {key: attribute.value for key, attribute in node.attributes.items()}
    weight = build.narrow(node.inputs[1])
    total = build.main("ConvInteger", [node.inputs[0], weight], **attributes)
    if len(node.inputs) < 3:
        return total
    bias = _integers(node.inputs[2])
    axes = (1,) * (len(weight.shape or ()) - 2)
    bias = bias.reshape(-1, *axes).astype(np.int32)
    return build.op("Add", [total, build.constant(bias)])


def _product(build: "_Integers", node: ir.Node) -> ir.Value:
    given = node.attributes
    if given.get_float("alpha", 1.0) != 1 or given.get_float("beta", 1.0) != 1:
        raise _NoMeaningError("alpha and beta of integers must be 1")
    operands = [build.narrow(value) for value in node.inputs[:2]]
    for position, name in enumerate(("transA", "transB")):
        if given.get_int(name, 0):
            operands[position] = build.op("Transpose", [operands[position]])
    total = build.main("MatMulInteger", operands)
    if len(node.inputs) < 3:
        return total
    return build.op("Add", [total, build.wide(node.inputs[2])])


def _shift(build: "_Integers", node: ir.Node) -> ir.Value:
    given = {key: int(np.asarray(_number(value)).item()) for key, value in node.attributes.items()}
    levels, signed = given.get("n_levels_out", given.get("n_levels")), given.get("signed")
    if levels is None or signed is None or given.get("div", 0) < 1:
        raise _NoMeaningError("its attributes div, n_levels_out and signed are not all there")
    low = -levels // 2 if signed else 0
    attributes = {"div": given["div"], "low": low, "high": low + levels - 1}
    factors = [build.wide(value) for value in node.inputs[1:]]
    return build.main(SHIFT, [node.inputs[0], *factors], OWN_DOMAIN, **attributes)


class _Integers(Builder):
    """Builds what stands for one node; constants have the types of integers."""

    def narrow(self, value: ir.Value | None) -> ir.Value:
        """Return an operand of any type: a constant in the least that holds it."""
        if value is None:
            raise _NoMeaningError("an operand is left out")
        if value.const_value is None:
            return value
        values = _integers(value)
        return self.constant(values.astype(_least_type(values.min(), values.max())))

    def wide(self, value: ir.Value | None) -> ir.Value:
        """Return a constant operand in int32."""
        return self.constant(_integers(value).astype(np.int32))


def _integers(value: ir.Value | None) -> NDArray[Any]:
    """Return the values of a constant.

    Raises
    ------
    _NoMeaningError
        If they are not all integers, or need more than 32 bits.
    """
    if value is None or value.const_value is None:
        raise _NoMeaningError("an operand that must be constant is not")
    values = value.const_value.numpy()
    if not np.array_equal(values, np.rint(values)) or np.abs(values).max(initial=0) >= 1 << 31:
        raise _NoMeaningError(f"constant {value.name} does not hold integers of 32 bits")
    return values


def _least_type(low: float, high: float) -> type[np.integer[Any]]:
    """Return the least type that holds numbers from ``low`` to ``high``."""
    for dtype in TYPES:
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return dtype
    raise _NoMeaningError(f"integers from {low} to {high} need more than 32 bits")


def _number(attribute: ir.Attr) -> Any:
    is_tensor = attribute.type is ir.AttributeType.TENSOR
    return attribute.as_tensor().numpy() if is_tensor else attribute.value


def _teach_shape_inference() -> None:
    """Let ONNX infer the shapes and types of RequantShift, and of sums in a wider type."""
    types = [f"tensor({np.dtype(dtype).name})" for dtype in TYPES]
    for kind in (SHIFT, *sorted(SUMS)):
        if onnx.defs.has(kind, 1, OWN_DOMAIN):
            return
        names = ("x", "mul", "add") if kind == SHIFT else ("a", "b")
        schema = onnx.defs.OpSchema(
            kind,
            OWN_DOMAIN,
            1,
            inputs=[onnx.defs.OpSchema.FormalParameter(name, f"T{name}") for name in names],
            outputs=[onnx.defs.OpSchema.FormalParameter("y", "T")],
            type_constraints=[*((f"T{name}", types, "") for name in names), ("T", types, "")],
        )
        schema.set_type_and_shape_inference_function(_infer)
        onnx.defs.register_schema(schema)


def _infer(context: onnx.shape_inference.InferenceContext) -> None:
    """Set the shape to which the inputs broadcast, and int32 or the type of a RequantShift."""
    given = [context.get_input_type(position) for position in range(context.get_num_inputs())]
    if not all(one is not None and one.tensor_type.HasField("shape") for one in given):
        return
    shapes = [tuple(dim.dim_value for dim in one.tensor_type.shape.dim) for one in given]
    low, high = (context.get_attribute(name) for name in ("low", "high"))
    dtype = np.int32 if low is None or high is None else _least_type(low.i, high.i)
    result = onnx.helper.make_tensor_type_proto(
        onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), np.broadcast_shapes(*shapes)
    )
    context.set_output_type(0, result)
