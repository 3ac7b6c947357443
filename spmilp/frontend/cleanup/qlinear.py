"""onnxruntime's quantised operators become DequantizeLinear, a plain operator, QuantizeLinear.

They are QLinearConv and QLinearMatMul of ONNX, and those of the domain ``com.microsoft`` (operator
specification: onnxruntime, ``docs/ContribOperators.md``). QLinearAdd, QLinearMul and
QLinearAveragePool round the sum of the scaled result and the zero point, where QuantizeLinear
rounds before it adds the zero point. Their QuantizeLinear is marked.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from spmilp.frontend.cleanup.nodes import (
    Builder,
    name_of,
    noting_what_is_malformed,
    replace_node,
    set_reason,
)

MICROSOFT = "com.microsoft"

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


_FORMS: Mapping[tuple[str, str], _Form] = {
    ("", "QLinearConv"): _Form(plain="Conv", operands=(0, 3), output=6, bias=8),
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
        if node.domain == MICROSOFT and node.op_type in _BORDER:
            # The same operators, for types that older operator sets of ONNX lack.
            node.domain, found = "", True
        elif form is not None:
            found = True
            with noting_what_is_malformed(node):
                reason = _reason_against(node, form)
                if reason is None:
                    _expand(model.graph, node, form)
                else:
                    set_reason(node, reason)
    return found


def _operands(node: ir.Node, form: _Form) -> tuple[int, ...]:
    return tuple(range(2, len(node.inputs), 3)) if form.plain == "Concat" else form.operands


def _reason_against(node: ir.Node, form: _Form) -> str | None:
    positions = [position + 1 for position in _operands(node, form)]
    scales = [_input(node, position) for position in positions]
    scales += [value for value in [_input(node, form.output)] if value is not None]
    if any(value is None or value.const_value is None for value in scales):
        return "its scales are not constants; quantise the model statically"
    if node.attributes.get_int("channels_last", 0):
        return "channels in the last axis are not supported; quantise the model in ONNX's order"
    if form.plain == "Softmax" and node.attributes.get_int("opset", 13) < 13:
        return "Softmax of operator sets before 13 is not supported; convert the model to 13"
    if form.plain == "Softmax" and _values(_input(node, form.output)) > 1:
        return "its result has a scale greater than 1, so that all of it would be zero"
    return None


def _input(node: ir.Node, position: int) -> ir.Value | None:
    return node.inputs[position] if position < len(node.inputs) else None


def _expand(graph: ir.Graph, node: ir.Node, form: _Form) -> None:
    build = Builder(graph, name_of(node))
    attributes = {
        key: attribute.value
        for key, attribute in node.attributes.items()
        if key not in ("channels_last", "opset")
    }
    # The bias counts steps of alpha times the scales, so that alpha belongs to the first of them.
    alpha = float(attributes.pop("alpha", 1.0)) if form.plain == "Gemm" else 1.0
    axis = 0 if attributes.get("transB", 0) else form.axis
    reals, steps = [], np.ones((), dtype=np.float32)
    for number, position in enumerate(_operands(node, form)):
        data, scale, zero = (_input(node, position + offset) for offset in range(3))
        values = _values(scale) * np.float32(alpha if number == 0 else 1)
        steps = np.multiply(steps, values.reshape(() if values.size == 1 else -1))
        if number == 0 and alpha != 1:
            scale = build.constant(values)
        along = axis if number == 1 else 1
        reals.append(build.op("DequantizeLinear", [data, scale, zero], axis=along))
    bias = None if form.bias is None else _input(node, form.bias)
    if bias is not None:
        reals.append(build.op("DequantizeLinear", [bias, build.constant(steps)], axis=-1))
    result = build.main(form.plain, reals, **attributes)
    if _input(node, form.output) is not None:
        result = _quantised(build, node, form, result)
    replace_node(graph, node, build.tape.nodes, [result])


def _quantised(build: Builder, node: ir.Node, form: _Form, result: ir.Value) -> ir.Value:
    scale, zero = _input(node, form.output), _input(node, form.output + 1)
    if form.plain == "Softmax":
        # Its kernel multiplies by a whole number of steps: onnxruntime, qlinear_softmax.cc.
        step = np.float32(1) / np.floor(np.float32(1) / _values(scale))
        scale = build.constant(step.astype(np.float32))
    result = build.op("QuantizeLinear", [result, scale, zero])
    last = result.producer()
    if form.rounds_with_zero and last is not None:
        last.metadata_props[ROUNDS_WITH_ZERO] = "1"
    return result


def _values(scale: ir.Value | None) -> NDArray[np.float32]:
    """Return the values of a constant scale."""
    if scale is None or scale.const_value is None:
        raise ValueError("the scales of an integer operator are not constants")
    return scale.const_value.numpy().astype(np.float32)
