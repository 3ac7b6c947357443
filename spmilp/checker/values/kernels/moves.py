"""Operators that move elements, Resize among them."""

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from spmilp.checker.values.kernels.call import Array, Call
from spmilp.frontend.operators.moves import constant_indices, pad_positions, slice_ranges
from spmilp.frontend.operators.resize import taps
from spmilp.units import Box


def concat(call: Call) -> Array:
    """Join what there is of each input."""
    arrays = [array for array in call.inputs if array is not None]
    return np.concatenate(arrays, axis=call.operator.integer("axis"))


def slice_(call: Call) -> Array:
    """Take every so many elements."""
    ranges = slice_ranges(call.operator, call.shape(0))
    wanted = (along[slice(*interval)] for along, interval in zip(ranges, call.box, strict=True))
    return _at(call, np.ix_(*wanted))


def transpose(call: Call) -> Array:
    """Permute the axes."""
    return call.array(0).transpose(call.operator.integers("perm"))


def reshape(call: Call) -> Array:
    """Take the elements of the box in their order; the covering box may hold others between."""
    values = call.array(0)
    if values.size == prod(call.extent):
        return values.reshape(call.extent)
    whole = call.tensors[call.operator.output].shape
    flat = np.ravel_multi_index(np.ix_(*(range(*interval) for interval in call.box)), whole)
    return _at(call, np.unravel_index(flat, call.shape(0)))


def expand(call: Call) -> Array:
    """Repeat along the axes of length 1."""
    return np.broadcast_to(call.array(0), call.extent)


def tile(call: Call) -> Array:
    """Repeat along every axis."""
    sides = zip(call.shape(0), call.box, strict=True)
    return _at(call, np.ix_(*(np.arange(*interval) % length for length, interval in sides)))


def gather(call: Call) -> Array:
    """Take the elements that the indices name."""
    axis, shape = call.operator.integer("axis"), call.shape(0)
    taken = call.extent[axis : axis + len(call.extent) - len(shape) + 1]
    if "indices" in call.operator.attributes:
        box = call.box[axis : axis + len(taken)]
        indices = np.asarray(constant_indices(call.operator, box), dtype=np.int64)
    else:
        indices = call.array(1).astype(np.int64)
        indices = np.where(indices < 0, indices + shape[axis], indices)
    first = call.read(0)[axis][0]
    return np.take(call.array(0), indices.reshape(taken) - first, axis=axis)


def gather_nd(call: Call) -> Array:
    """Take the slices that the indices name."""
    batch = call.operator.integer("batch_dims")
    values, read = call.array(0), call.read(0)
    places = _positions(call.array(1), call.shape(0)[batch:], read[batch:])
    leading = np.ix_(*(range(length) for length in values.shape[:batch]))
    trailing = (1,) * (call.array(1).ndim - 1 - batch)
    own = (place.reshape(*place.shape, *trailing) for place in leading)
    return np.asarray(values[(*own, *places)])


def scatter_nd(call: Call) -> Array:
    """Put updates where the indices say, those that fall into the box."""
    result, updates = call.array(0).copy(), call.array(2)
    places = _positions(call.array(1), call.shape(0), call.box)
    inside = np.ones(call.array(1).shape[:-1], dtype=np.bool_)
    for place, (start, stop) in zip(places, call.box, strict=False):
        inside &= (place >= 0) & (place < stop - start)
    where = tuple(place[inside] for place in places)
    how = _SCATTERED[call.operator.text("reduction")]
    if how is None:
        result[where] = updates[inside]
    else:
        how.at(result, where, updates[inside])
    return result


_SCATTERED: Mapping[str, np.ufunc | None] = {
    "none": None,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _positions(indices: Array, shape: Sequence[int], box: Box) -> tuple[Array, ...]:
    """Return the positions that the last axis of indices names, from the start of a box on."""
    found = []
    for axis in range(indices.shape[-1]):
        along = indices[..., axis].astype(np.int64)
        found.append(np.where(along < 0, along + shape[axis], along) - box[axis][0])
    return tuple(found)


def pad(call: Call) -> Array:
    """Put elements around the input."""
    value = call.operator.number("value")
    if not call.there(0):
        return np.full(call.extent, value)
    shape = call.shape(0)
    result = call.array(0)
    for axis, interval in enumerate(call.box):
        positions = pad_positions(call.operator, shape, axis, interval)
        first = call.read(0)[axis][0]
        places = [first if position is None else position for position in positions]
        result = np.take(result, np.asarray(places) - first, axis=axis)
        outside = [position is None for position in positions]
        if any(outside):
            mask = np.asarray(outside).reshape(-1, *(1,) * (len(shape) - axis - 1))
            result = np.where(mask, np.asarray(value).astype(result.dtype), result)
    return result


def depth_to_space(call: Call) -> Array:
    """Spread channels over blocks of pixels."""
    block = call.operator.integer("blocksize")
    batch, channel, row, column = np.ix_(*(np.arange(*interval) for interval in call.box))
    inner = row % block * block + column % block
    if call.operator.text("mode") == "DCR":
        source = inner * (call.shape(0)[1] // (block * block)) + channel
    else:
        source = channel * block * block + inner
    return _at(call, (batch, source, row // block, column // block))


def space_to_depth(call: Call) -> Array:
    """Gather blocks of pixels into channels."""
    block, channels = call.operator.integer("blocksize"), call.shape(0)[1]
    batch, channel, row, column = np.ix_(*(np.arange(*interval) for interval in call.box))
    inner = channel // channels
    rows, columns = row * block + inner // block, column * block + inner % block
    return _at(call, (batch, channel % channels, rows, columns))


def trilu(call: Call) -> Array:
    """Keep one triangle of the last two axes."""
    k = call.operator.integer("k")
    row, column = np.ix_(np.arange(*call.box[-2]), np.arange(*call.box[-1]))
    keep = column - row >= k if call.operator.integer("upper") else column - row <= k
    values = call.array(0)
    return np.where(keep, values, np.zeros((), dtype=values.dtype))


def _at(call: Call, places: Sequence[Array]) -> Array:
    """Return the elements at positions along each axis that broadcast against each other."""
    starts = (start for start, _ in call.read(0))
    inside = tuple(place - start for place, start in zip(places, starts, strict=True))
    return np.asarray(call.array(0)[inside])


def resize(call: Call) -> Array:
    """Interpolate the box."""
    outside_value = np.float32(call.operator.number("extrapolation_value"))
    if not call.there(0):
        return np.full(call.extent, outside_value)
    result, read = call.array(0), call.read(0)
    copies = call.operator.text("mode") == "nearest"
    outside = np.zeros((1,) * len(call.box), dtype=np.bool_)
    for axis, interval in enumerate(call.box):
        used = taps(call.operator, call.shape(0)[axis], axis, interval)
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


MOVES: Mapping[str, Callable[[Call], Array]] = {
    "Concat": concat,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "Flatten": reshape,
    "Gather": gather,
    "GatherND": gather_nd,
    "Pad": pad,
    "Reshape": reshape,
    "Resize": resize,
    "ScatterND": scatter_nd,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
    "Squeeze": reshape,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unsqueeze": reshape,
}
