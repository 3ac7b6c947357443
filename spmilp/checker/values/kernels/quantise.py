"""Between integers and the reals that they stand for.

- real: ``float32(q - zero_point) * scale``
- integer: ``saturate(round_half_even(real / scale) + zero_point)``, the division in float32
- of an integer sum of products: ``saturate(round_half_even(float32(sum) * m) + zero_point)`` with
  ``m = (input scale * weight scale) / output scale``, each step in float32

The last formula is that of onnxruntime's QLinearConv and QLinearMatMul. A model in QDQ form that
runs operator by operator multiplies reals in float32 instead: its results can be one step away.
"""

import numpy as np
from numpy.typing import NDArray

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.graph import Scale
from spmilp.units import Box


def dequantise(values: Array, scale: Scale, box: Box) -> NDArray[np.float32]:
    """Return the reals of integers that are ``box`` of their tensor."""
    steps, zero = along(scale, box)
    return (values.astype(np.int32) - zero).astype(np.float32) * steps


def quantise(values: Array, scale: Scale, box: Box) -> Array:
    """Return the integers of reals that are ``box`` of their tensor."""
    steps, zero = along(scale, box)
    return saturate(np.rint(values.astype(np.float32) / steps), zero, scale.dtype)


def saturate(values: Array, zero: Array, dtype: np.dtype[np.generic]) -> Array:
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
