"""Quantised networks of all forms become DequantizeLinear, plain operators, QuantizeLinear.

**Scales that are computed at run time** become arithmetic on reals. Constants of four bits become
bytes with the same values.

**onnxruntime's quantised operators** are QLinearConv and QLinearMatMul of ONNX, and those of the
domain ``com.microsoft`` (operator specification: onnxruntime, ``docs/ContribOperators.md``).
QLinearAdd, QLinearMul and QLinearAveragePool round the sum of the scaled result and the zero point,
where QuantizeLinear rounds before it adds the zero point. Their QuantizeLinear is marked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray

from spmilp.frontend.cleanup.constants import WEIGHTED
from spmilp.frontend.cleanup.nodes import (
    Builder,
    RefusedError,
    name_of,
    noting_what_is_malformed,
    set_reason,
)

MICROSOFT = "com.microsoft"

WIDER = {ir.DataType.INT4: ir.DataType.INT8, ir.DataType.UINT4: ir.DataType.UINT8}


def widen_four_bits(model: ir.Model) -> None:
    """Let every constant of four bits be one of bytes.

    Only its DequantizeLinear may read it; other nodes keep it, and are reported for its type.
    """
    for value in list(model.graph.initializers.values()):
        tensor, readers = value.const_value, {node.op_type for node, _ in value.uses()}
        if tensor is not None and tensor.dtype in WIDER and readers <= {"DequantizeLinear"}:
            wider = WIDER[tensor.dtype]
            value.const_value = ir.tensor(tensor.numpy().astype(wider.numpy()), name=value.name)
            value.type = ir.TensorType(wider)


def expand_run_time_scales(model: ir.Model) -> bool:
    """Replace quantisation by arithmetic where its scale is computed; say whether any was."""
    replaced = False
    for node in list(model.graph):
        if (node.domain, node.op_type) not in _EXPANSIONS:
            continue
        with noting_what_is_malformed(node):
            build = Builder(model.graph, node)
            outputs = _EXPANSIONS[node.domain, node.op_type](build, node)
            if outputs:
                build.replace(outputs)
                replaced = True
    return replaced


def _dynamic(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Return the bytes, scale and zero point of a DynamicQuantizeLinear.

    The range of the values, zero among them, is cut into 255 steps; a range of zero has step 1
    (onnxruntime, ``core/util/qmath.h``, ``GetQuantizationParameter``).
    """
    data = _required(node, 0)
    zero, levels = build.number(0), build.number(255)
    low = build.op("Min", [_extreme(build, "ReduceMin", data), zero])
    high = build.op("Max", [_extreme(build, "ReduceMax", data), zero])
    step = build.op("Div", [build.op("Sub", [high, low]), levels])
    step = build.op("Where", [build.op("Equal", [high, low]), build.number(1), step])
    offset = build.op("Sub", [zero, build.op("Div", [low, step])])
    offset = build.op("Round", [build.op("Clip", [offset, zero, levels])])
    offset = build.op("Cast", [offset], to=ir.DataType.UINT8.value)
    return [_quantised(build, data, step, offset, ir.DataType.UINT8), step, offset]


def _extreme(build: Builder, kind: str, data: ir.Value) -> ir.Value:
    """Return the least or greatest element; found along the longest axis first, so in tiles."""
    if data.shape is not None and data.shape.is_static() and len(data.shape) > 1:
        lengths = data.shape.numpy()
        kept = lengths.index(max(lengths))
        others = [axis for axis in range(len(lengths)) if axis != kept]
        data = build.op(kind, [data, build.integers(*others)], keepdims=0)
    return build.op(kind, [data], keepdims=0)


def _quantise(build: Builder, node: ir.Node) -> list[ir.Value]:
    zero = _input(node, 2)
    dtype = ir.DataType.UINT8 if zero is None else zero.dtype
    if _scale_is_constant(node) or dtype is None:
        return []
    return [_quantised(build, _required(node, 0), _required(node, 1), zero, dtype)]


def _quantised(
    build: Builder, data: ir.Value, step: ir.Value, zero: ir.Value | None, dtype: ir.DataType
) -> ir.Value:
    limits = np.iinfo(dtype.numpy())
    result = build.op("Round", [build.op("Div", [data, step])])
    if zero is not None:
        offset = build.op("Cast", [zero], to=ir.DataType.FLOAT.value)
        result = build.op("Add", [result, offset])
    bounds = [build.number(float(limits.min)), build.number(float(limits.max))]
    return build.op("Cast", [build.op("Clip", [result, *bounds])], to=dtype.value)


def _dequantise(build: Builder, node: ir.Node) -> list[ir.Value]:
    if _scale_is_constant(node):
        return []
    centred = build.op("Cast", [_required(node, 0)], to=ir.DataType.INT32.value)
    given = _input(node, 2)
    if given is not None:
        zero = build.op("Cast", [given], to=ir.DataType.INT32.value)
        centred = build.op("Sub", [centred, zero])
    step = _required(node, 1)
    dtype = ir.DataType.FLOAT if step.dtype is None else step.dtype
    return [build.op("Mul", [build.op("Cast", [centred], to=dtype.value), step])]


def _product_of_few_bits(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Return a product with the reals that constant weights, a row for each column, stand for."""
    if _input(node, 4) is not None:
        raise RefusedError("rows in another order than that of their blocks are not supported")
    reals, columns = np.multiply(*_in_blocks(node, 1)), node.attributes["N"].as_int()
    weights = reals.astype(_constant(node, 2).dtype).reshape(columns, -1).T
    weights = weights[: node.attributes["K"].as_int()]
    product = build.main("MatMul", [node.inputs[0], build.constant(np.ascontiguousarray(weights))])
    return [build.add(product, _input(node, 5))]


def _rows_of_few_bits(build: Builder, node: ir.Node) -> list[ir.Value]:
    """Return rows of a constant table, which is one of bytes, times the scales of their blocks."""
    gather, blocks = (node.attributes.get_int(name, at) for at, name in enumerate(_AXES))
    if gather != 0 or blocks not in (1, -1):
        raise RefusedError("only rows of a table that lie in blocks are supported")
    (centred, steps), indices = _in_blocks(node, 0), node.inputs[1]
    held = centred.astype(np.int8 if node.attributes.get_int("bits", 4) < 8 else np.int16)
    kind = ir.DataType.from_numpy(steps.dtype).value
    rows = build.op("Cast", [build.op("Gather", [build.constant(held), indices])], to=kind)
    reals = build.op("Mul", [rows, build.op("Gather", [build.constant(steps), indices])])
    lengths = [build.op("Shape", [indices]), build.integers(centred[0].size)]
    return [build.main("Reshape", [reals, build.op("Concat", lengths, axis=0)])]


_AXES = ("gather_axis", "quantize_axis")


def _in_blocks(node: ir.Node, position: int) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return a constant matrix of few bits less its zero points, and its scales.

    Their axes are rows, blocks, and elements of a block.
    """
    bits, size = node.attributes.get_int("bits", 4), node.attributes.get_int("block_size", 128)
    data, steps = _constant(node, position), _constant(node, 2)
    rows = node.attributes.get_int("N", len(data))
    levels, steps = _unpacked(data.reshape(rows, -1), bits), steps.reshape(rows, -1, 1)
    if levels.size != steps.size * size:
        raise RefusedError(f"{levels.size} elements are no {steps.size} blocks of {size}")
    zeros = np.full(steps.shape, (data.dtype == np.uint8) << (bits - 1), np.float32)
    if _input(node, 3) is not None:
        given = _unpacked(_constant(node, 3).reshape(rows, -1), bits)
        zeros = given[:, : steps.shape[1], np.newaxis]
    return levels.reshape(rows, -1, size) - zeros, steps


def _unpacked(packed: NDArray[Any], bits: int) -> NDArray[np.float32]:
    """Return the numbers that lie in bytes, several to one along the last axis, low bits first."""
    if packed.dtype == np.uint8:
        shifted = packed[..., np.newaxis] >> np.arange(0, 8, bits, dtype=np.uint8)
        packed = (shifted & np.uint8((1 << bits) - 1)).reshape(len(packed), -1)
    return packed.astype(np.float32)


def _constant(node: ir.Node, position: int) -> NDArray[Any]:
    value = _required(node, position)
    if value.const_value is None:
        raise RefusedError(f"its input {position} ({value.name}) is not constant")
    return value.const_value.numpy()


_EXPANSIONS: dict[tuple[str, str], Callable[[Builder, ir.Node], list[ir.Value]]] = {
    ("", "DequantizeLinear"): _dequantise,
    ("", "DynamicQuantizeLinear"): _dynamic,
    ("", "QuantizeLinear"): _quantise,
    (MICROSOFT, "GatherBlockQuantized"): _rows_of_few_bits,
    (MICROSOFT, "MatMulNBits"): _product_of_few_bits,
}
"""By domain and operator type."""


def _scale_is_constant(node: ir.Node) -> bool:
    """Return whether scale and zero point are constant; if not, there must be one scale."""
    if all(value is None or value.const_value is not None for value in node.inputs[1:3]):
        return True
    shape = node.inputs[1].shape if node.inputs[1] is not None else None
    if shape is None or not shape.is_static() or int(np.prod(shape.numpy())) != 1:
        raise RefusedError("several scales that are computed at run time are not supported")
    return False


def _required(node: ir.Node, position: int) -> ir.Value:
    value = _input(node, position)
    if value is None:
        raise ValueError(f"input {position} of {name_of(node)} is left out")
    return value


ROUNDS_WITH_ZERO = "spmilp.rounds_with_zero"
"""Mark of a QuantizeLinear that adds the zero point before it rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """Where a quantised operator has what.

    Parameters
    ----------
    plain
        The operator on reals.
    operands
        Positions of the integers; scale and zero point follow each.
    output
        Position of the output's scale, which its zero point follows.
    bias
        Position of an int32 bias in steps of the product of both scales.
    axis
        Of the second operand, along which it may have one scale per position.
    """

    plain: str
    operands: tuple[int, ...] = (0,)
    output: int = 3
    bias: int | None = None
    axis: int = 0
    rounds_with_zero: bool = False


_CONV = _Form(plain="Conv", operands=(0, 3), output=6, bias=8)

_FORMS: Mapping[tuple[str, str], _Form] = {
    ("", "QLinearConv"): _CONV,
    (MICROSOFT, "QLinearConv"): _CONV,
    ("", "QLinearMatMul"): _Form(plain="MatMul", operands=(0, 3), output=6, axis=-1),
    (MICROSOFT, "QGemm"): _Form(plain="Gemm", operands=(0, 3), output=7, bias=6, axis=1),
    (MICROSOFT, "QLinearAdd"): _Form(plain="Add", operands=(0, 3), output=6, rounds_with_zero=True),
    (MICROSOFT, "QLinearMul"): _Form(plain="Mul", operands=(0, 3), output=6, rounds_with_zero=True),
    (MICROSOFT, "QLinearAveragePool"): _Form(plain="AveragePool", rounds_with_zero=True),
    (MICROSOFT, "QLinearConcat"): _Form(plain="Concat", output=0),
    (MICROSOFT, "QLinearGlobalAveragePool"): _Form(plain="GlobalAveragePool"),
    (MICROSOFT, "QLinearLeakyRelu"): _Form(plain="LeakyRelu"),
    (MICROSOFT, "QLinearSigmoid"): _Form(plain="Sigmoid"),
    (MICROSOFT, "QLinearSoftmax"): _Form(plain="Softmax"),
}
"""By domain and operator type. QLinearConcat has any number of operands, from input 2 on."""

_BORDER = ("DequantizeLinear", "QuantizeLinear")


def expand_qlinear(model: ir.Model) -> bool:
    """Replace every quantised operator, and say whether there were any.

    Where one cannot be replaced, the reason is noted.
    """
    found = False
    for node in list(model.graph):
        form = _FORMS.get((node.domain, node.op_type))
        is_border = node.domain == MICROSOFT and node.op_type in _BORDER
        if form is None and not is_border:
            continue
        found = True
        known = onnx.defs.get_schema(form.plain if form else node.op_type).attributes
        unknown = sorted({*node.attributes} - {*known, "channels_last", "opset"})
        if unknown:
            set_reason(node, f"{node.op_type} has no attribute {unknown[0]}")
        elif form is None:
            # The same operators, for types that older operator sets of ONNX lack.
            node.domain = ""
        else:
            with noting_what_is_malformed(node):
                _expand(Builder(model.graph, node), form)
    return found


def _input(node: ir.Node, position: int) -> ir.Value | None:
    return node.inputs[position] if position < len(node.inputs) else None


def _has_a_plain_form(node: ir.Node, form: _Form, scales: Sequence[ir.Value | None]) -> None:
    """Raise if a node has none; ``scales`` are those of its operands, and of its output."""
    *needed, output = scales
    if None in needed or any(one is not None and one.const_value is None for one in scales):
        raise RefusedError("its scales are not constants; quantise the model statically")
    weight = 1 if form.plain in WEIGHTED else None
    if any(_values(one).size > 1 for at, one in enumerate(scales) if one and at != weight):
        raise RefusedError("several scales of anything but its weights are not supported")
    if form.plain == "Softmax" and node.attributes.get_int("opset", 13) < 13:
        raise RefusedError(
            "Softmax of operator sets before 13 is not supported; convert the model to 13"
        )
    if form.plain == "Softmax" and _values(output) > 1:
        raise RefusedError("its result has a scale greater than 1, so that all of it would be zero")


def _expand(build: Builder, form: _Form) -> None:
    node = build.node
    places = range(2, len(node.inputs), 3) if form.plain == "Concat" else form.operands
    operands = [[_input(node, place + offset) for offset in range(3)] for place in places]
    scale, zero = (_input(node, form.output + offset) for offset in range(2))
    _has_a_plain_form(node, form, [*(given for _, given, _ in operands), scale])
    attributes = {
        key: attribute.value
        for key, attribute in node.attributes.items()
        if key not in ("channels_last", "opset")
    }
    # The bias counts steps of alpha times the scales, so that alpha belongs to the first of them.
    alpha = float(attributes.pop("alpha", 1.0)) if form.plain == "Gemm" else 1.0
    axis = 0 if attributes.get("transB", 0) else form.axis
    reals, steps = [], np.ones((), dtype=np.float32)
    ranks = [len(one.shape) for one, *_ in operands if one is not None and one.shape is not None]
    rank = ranks[-1] if ranks else 2 + len(attributes.get("kernel_shape", "hw"))
    is_turned = node.attributes.get_int("channels_last", 0)
    for number, (data, given, offset) in enumerate(operands):
        values = _values(given) * np.float32(alpha if number == 0 else 1)
        steps = np.multiply(steps, values.reshape(() if values.size == 1 else -1))
        step = build.constant(values) if number == 0 and alpha != 1 else given
        along = axis if number == 1 else 1
        if is_turned and number == 0:
            order = [0, rank - 1, *range(1, rank - 1)]
            data = build.op("Transpose", [data], perm=order)
        reals.append(build.op("DequantizeLinear", [data, step, offset], axis=along))
    bias = None if form.bias is None else _input(node, form.bias)
    if bias is not None:
        reals.append(build.op("DequantizeLinear", [bias, build.constant(steps)], axis=-1))
    result = build.main(form.plain, reals, **attributes)
    if scale is not None:
        if form.plain == "Softmax":
            # Its kernel multiplies by a whole number of steps: onnxruntime, qlinear_softmax.cc.
            whole = np.float32(1) / np.floor(np.float32(1) / _values(scale))
            scale = build.constant(whole.astype(np.float32))
        result = build.op("QuantizeLinear", [result, scale, zero])
        if form.rounds_with_zero:
            build.tape.nodes[-1].metadata_props[ROUNDS_WITH_ZERO] = "1"
    if is_turned:
        result = build.op("Transpose", [result], perm=[0, *range(2, rank), 1])
    build.replace([result])


def _values(scale: ir.Value | None) -> NDArray[np.float32]:
    """Return the values of a constant scale."""
    if scale is None or scale.const_value is None:
        raise ValueError("the scales of an integer operator are not constants")
    return scale.const_value.numpy().astype(np.float32)
