"""Quantisation: integers to reals and back, and the integer operators of onnxruntime."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.graph import Operator, Quantisation, Rounding, Scale
from spmilp.units import Box


def dequantise(values: Array, scale: Scale, box: Box) -> NDArray[np.float32]:
    """Return the reals of integers that are ``box`` of their tensor."""
    steps, zero = along(scale, box)
    return (values.astype(np.int32) - zero).astype(np.float32) * steps


def quantise(values: Array, scale: Scale, box: Box) -> Array:
    """Return the integers of reals that are ``box`` of their tensor."""
    steps, zero = along(scale, box)
    scaled = values.astype(np.float32) / steps
    if scale.rounding is Rounding.WITH_ZERO:
        return saturate(np.rint(scaled + zero.astype(np.float32)), np.int32(0), scale.dtype)
    if scale.rounding is Rounding.FIXED_POINT:
        away = np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))
        return saturate(away, zero, scale.dtype)
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
        and scales.output.rounding is Rounding.WITH_ZERO
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
