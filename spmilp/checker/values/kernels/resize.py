"""Resize: one axis after the other."""

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.operators.attributes import number, text
from spmilp.frontend.operators.resize import axis_rule
from spmilp.frontend.operators.resize_axis import taps


def resize(call: Call) -> Array:
    """Interpolate the box."""
    outside_value = np.float32(number(call.operator, "extrapolation_value"))
    if not call.there(0):
        return np.full(call.extent, outside_value)
    result, read = call.array(0), call.read(0)
    copies = text(call.operator, "mode") == "nearest"
    outside = np.zeros((1,) * len(call.box), dtype=np.bool_)
    for axis, interval in enumerate(call.box):
        used = taps(axis_rule(call.operator, call.shape(0), axis), interval)
        first, last = read[axis][0], read[axis][1] - 1
        places = np.clip(used.positions, first, last) - first
        trailing = (1,) * (len(call.box) - axis - 1)
        if copies or len(places) == 1:
            result = np.take(result, places[0], axis=axis)
        else:
            weighted = [
                np.take(result, place, axis=axis) * weight.reshape(-1, *trailing)
                for place, weight in zip(places, used.weights, strict=True)
            ]
            result = np.sum(weighted, axis=0)
        outside = outside | used.outside.reshape(-1, *trailing)
    return np.where(outside, outside_value, result) if outside.any() else result
