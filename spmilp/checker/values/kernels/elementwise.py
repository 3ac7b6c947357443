"""Element-wise operators, quantisation among them. Integers divide toward zero, as C does."""

from collections.abc import Callable, Mapping
from functools import reduce
from math import erf, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.graph import Operator, Quantisation, Scale
from spmilp.units import Box


def unary(call: Call) -> Array:
    """Compute an operator of one input."""
    return np.asarray(_UNARY[call.operator.kind](call.array(0), call.operator))


def binary(call: Call) -> Array:
    """Compute an operator of two inputs."""
    return np.asarray(_BINARY[call.operator.kind](call.array(0), call.array(1)))


def variadic(call: Call) -> Array:
    """Compute Sum, Mean, Max or Min of any number of inputs."""
    arrays = [call.array(position) for position in range(len(call.inputs))]
    total = np.asarray(reduce(_VARIADIC[call.operator.kind], arrays))
    if call.operator.kind == "Mean":
        total = np.asarray(total / np.float32(len(arrays)))
    return np.broadcast_to(total, call.extent)


def where(call: Call) -> Array:
    """Choose between two inputs."""
    return np.where(call.array(0), call.array(1), call.array(2))


def modulo(call: Call) -> Array:
    """Compute the remainder with the sign of the divisor, or of the dividend for ``fmod``."""
    rest = np.fmod if call.operator.integer("fmod") else np.mod
    return np.asarray(rest(call.array(0), call.array(1)))


def _erf(x: Array) -> Array:
    flat = np.fromiter(map(erf, x.ravel().tolist()), dtype=np.float64, count=x.size)
    return flat.reshape(x.shape).astype(x.dtype)


def _gelu(x: Array, operator: Operator) -> Any:
    if operator.text("approximate") == "tanh":
        return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + _erf(x / np.float32(sqrt(2))))


def _clip(x: Array, operator: Operator) -> Any:
    if "min" in operator.attributes:
        x = np.maximum(x, np.asarray(operator.number("min")).astype(x.dtype))
    if "max" in operator.attributes:
        x = np.minimum(x, np.asarray(operator.number("max")).astype(x.dtype))
    return x


def _alpha(operator: Operator) -> Any:
    return np.float32(operator.number("alpha"))


def _sigmoid(x: Array) -> Any:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Array) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _selu(x: Array, operator: Operator) -> Any:
    gamma = np.float32(operator.number("gamma"))
    return gamma * np.where(x > 0, x, _alpha(operator) * np.expm1(np.minimum(x, 0)))


def _celu(x: Array, operator: Operator) -> Any:
    alpha = _alpha(operator)
    return np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(np.minimum(x, 0) / alpha))


def _hard_sigmoid(x: Array, operator: Operator) -> Any:
    return np.clip(_alpha(operator) * x + np.float32(operator.number("beta")), 0, 1)


def _divide(a: Array, b: Array) -> Any:
    if not np.issubdtype(a.dtype, np.integer):
        return a / b
    quotient = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -quotient, quotient)


_UNARY: Mapping[str, Callable[[Array, Operator], Any]] = {
    "Abs": lambda x, _: np.abs(x),
    "Cast": lambda x, _: x,
    "Ceil": lambda x, _: np.ceil(x),
    "Celu": _celu,
    "Clip": _clip,
    "Cos": lambda x, _: np.cos(x),
    "Elu": lambda x, o: np.where(x > 0, x, _alpha(o) * np.expm1(np.minimum(x, 0))),
    "Erf": lambda x, _: _erf(x),
    "Exp": lambda x, _: np.exp(x),
    "Floor": lambda x, _: np.floor(x),
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": lambda x, _: x * np.clip(x / 6 + 0.5, 0, 1),
    "Identity": lambda x, _: x,
    "IsInf": lambda x, _: np.isinf(x),
    "IsNaN": lambda x, _: np.isnan(x),
    "LeakyRelu": lambda x, o: np.where(x >= 0, x, _alpha(o) * x),
    "Log": lambda x, _: np.log(x),
    "Mish": lambda x, _: x * np.tanh(_softplus(x)),
    "Neg": lambda x, _: -x,
    "Not": lambda x, _: np.logical_not(x),
    "Reciprocal": lambda x, _: 1 / x,
    "Relu": lambda x, _: np.maximum(x, 0),
    "Round": lambda x, _: np.rint(x),
    "Selu": _selu,
    "Sigmoid": lambda x, _: _sigmoid(x),
    "Sign": lambda x, _: np.sign(x),
    "Sin": lambda x, _: np.sin(x),
    "Softplus": lambda x, _: _softplus(x),
    "Softsign": lambda x, _: x / (1 + np.abs(x)),
    "Sqrt": lambda x, _: np.sqrt(x),
    "Swish": lambda x, o: x * _sigmoid(_alpha(o) * x),
    "Tan": lambda x, _: np.tan(x),
    "Tanh": lambda x, _: np.tanh(x),
    "ThresholdedRelu": lambda x, o: np.where(x > _alpha(o), x, 0),
}

_BINARY: Mapping[str, Callable[[Array, Array], Any]] = {
    "Add": np.add,
    "And": np.logical_and,
    "Div": _divide,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Mul": np.multiply,
    "Or": np.logical_or,
    "PRelu": lambda x, slope: np.where(x >= 0, x, slope * x),
    "Pow": np.power,
    "Sub": np.subtract,
    "Xor": np.logical_xor,
}

_VARIADIC: Mapping[str, Callable[[Array, Array], Any]] = {
    "Max": np.maximum,
    "Mean": np.add,
    "Min": np.minimum,
    "Sum": np.add,
}

ELEMENTWISE: Mapping[str, Callable[[Call], Array]] = {
    **dict.fromkeys(_UNARY, unary),
    **dict.fromkeys(_BINARY, binary),
    **dict.fromkeys(_VARIADIC, variadic),
    "DequantizeLinear": lambda call: call.array(0),
    "Mod": modulo,
    "QuantizeLinear": lambda call: call.array(0),
    "Where": where,
}


def dequantise(values: Array, scale: Scale, box: Box) -> NDArray[np.float32]:
    """Return the reals of integers that are ``box`` of their tensor."""
    steps, zero = along(scale, box)
    return (values.astype(np.int32) - zero).astype(np.float32) * steps


def quantise(values: Array, scale: Scale, box: Box) -> Array:
    """Return the integers of reals that are ``box`` of their tensor."""
    steps, zero = along(scale, box)
    scaled = values.astype(np.float32) / steps
    if scale.rounds_with_zero:
        return saturate(np.rint(scaled + zero.astype(np.float32)), np.int32(0), scale.dtype)
    return saturate(np.rint(scaled), zero, scale.dtype)


def within(values: Array, quantisation: Quantisation, unit: Any = 1) -> Array:
    """Cut reals off at the limits of a quantisation, counted in units."""
    for limit, cut in ((quantisation.low, np.maximum), (quantisation.high, np.minimum)):
        if limit is not None:
            values = cut(values, np.float32(limit) / unit)
    return values


def is_qlinear(operator: Operator) -> bool:
    """Say whether an operator is onnxruntime's QLinearAdd or QLinearMul."""
    scales = operator.quantisation
    return (
        operator.kind in ("Add", "Mul")
        and scales is not None
        and scales.output is not None
        and scales.output.rounds_with_zero
        and None not in scales.inputs
    )


def qlinear(call: Call) -> Array:
    """Compute QLinearAdd or QLinearMul in the order of onnxruntime's vectors, in float32.

    A product is scaled once. A sum begins with the zero points of all three, and each further term
    is rounded once with it (fused multiply-add): onnxruntime, ``core/mlas/lib/qladd.cpp``,
    ``qlmul.cpp``.
    """
    scales = call.operator.quantisation
    if scales is None or scales.output is None:
        raise ValueError(f"{call.operator.name}: its scales are not given")
    single = [scale for scale in (*scales.inputs, scales.output) if scale is not None]
    (a_step, b_step, step) = (scale.scale.reshape(()) for scale in single)
    (a_zero, b_zero, zero) = (np.float32(scale.zero_point.reshape(())) for scale in single)
    a, b = (call.array(position).astype(np.float32) for position in range(2))
    if call.operator.kind == "Mul":
        result = (a - a_zero) * (b - b_zero) * (a_step * b_step / step) + zero
    else:
        a_ratio, b_ratio = a_step / step, b_step / step
        start = zero - _fused(a_ratio, a_zero, b_ratio * b_zero)
        result = _fused(a, a_ratio, _fused(b, b_ratio, start))
    return saturate(np.rint(result), np.int32(0), scales.output.dtype)


def _fused(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c`` of float32 numbers, rounded once."""
    exact = np.multiply(a, b, dtype=np.float64) + np.asarray(c, dtype=np.float64)
    return exact.astype(np.float32)


def saturate(values: Array, zero: Array | np.int32, dtype: np.dtype[np.generic]) -> Array:
    """Return rounded values, moved by the zero point and cut off at the limits of the type."""
    limits = np.iinfo(dtype.name)
    moved = values.astype(np.float64) + zero
    return np.clip(moved, limits.min, limits.max).astype(dtype)


def along(scale: Scale, box: Box) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return scale and zero point, shaped to broadcast to ``box``."""
    if scale.axis is None:
        return scale.scale.reshape(()), scale.zero_point.reshape(())
    start, stop = box[scale.axis]
    shape = (-1, *(1,) * (len(box) - scale.axis - 1))
    steps = scale.scale[start:stop].reshape(shape)
    zero = np.broadcast_to(scale.zero_point, scale.scale.shape)[start:stop].reshape(shape)
    return steps, zero


def scale_of_products(call: Call, data: Scale, weight: Scale) -> NDArray[np.float32]:
    """Return ``input scale * weight scale``, shaped to broadcast to the output's box.

    A weight has one scale, or one per output channel (column).
    """
    steps = weight.scale.reshape(-1)
    if weight.axis is None:
        return (data.scale.reshape(()) * steps.reshape(())).astype(np.float32)
    axis = 1 if call.operator.kind in ("Conv", "ConvTranspose") else len(call.box) - 1
    channels = np.arange(*call.box[axis])
    if call.operator.kind == "ConvTranspose":
        channels = channels % call.shape(1)[1]
    trailing = (1,) * (len(call.box) - axis - 1)
    return (data.scale.reshape(()) * steps[channels].reshape(-1, *trailing)).astype(np.float32)
