"""Operators that take positions of their input: Slice, Gather, Pad, GatherND, ScatterND."""

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.attributes import (
    axis_of,
    has,
    integer,
    integers,
    integers_at,
    number,
    text,
)
from spmilp.frontend.operators.base import (
    VectorOperator,
    elements,
    has_input,
    input_shape,
    required,
)
from spmilp.frontend.operators.boxes import covering_ranges, volume, whole
from spmilp.frontend.operators.family import Fusion, Inputs, Part, Reads, Tensors
from spmilp.frontend.operators.moves import Moves
from spmilp.units import Box, Extents


class Slice(Moves):
    """Slice; a Split is several of these.

    Input: X. Attributes: ``starts``, ``ends``, ``axes`` (not negative), ``steps``, of one length;
    starts and ends as in ONNX (negative ones count from the end, those outside are clamped). Steps
    may be negative; what is read is then the covering range.
    """

    kinds = frozenset({"Slice"})
    fusion = Fusion.VIEW

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the number of elements taken along each axis."""
        shape = required(operator, inputs, 0).shape
        taken = tuple(len(positions) for positions in slice_ranges(operator, shape))
        if 0 in taken:
            raise ValueError(f"the result of shape {taken} is empty")
        return taken

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the range of the positions along each axis."""
        ranges = slice_ranges(operator, input_shape(operator, tensors, 0))
        ends = (
            sorted((positions[start], positions[stop - 1]))
            for positions, (start, stop) in zip(ranges, box, strict=True)
        )
        return (tuple((low, high + 1) for low, high in ends),)


def slice_ranges(operator: Operator, shape: Extents) -> tuple[range, ...]:
    """Return, for each axis, the positions of the input that a Slice takes."""
    ranges = [range(length) for length in shape]
    axes = integers(operator, "axes")
    starts, ends = integers(operator, "starts", len(axes)), integers(operator, "ends", len(axes))
    steps = integers(operator, "steps", len(axes))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if not 0 <= axis < len(shape) or step == 0:
            raise ValueError(f"axis {axis} with step {step} of a tensor of shape {shape}")
        length = shape[axis]
        low, high = (0, length) if step > 0 else (-1, length - 1)
        first, behind = (
            min(max(value + length if value < 0 else value, low), high) for value in (start, end)
        )
        ranges[axis] = range(first, behind, step)
    return tuple(ranges)


class Gather(Moves):
    """Gather along one axis.

    Inputs: table X, and integer indices unless they are constant. Attributes: ``axis`` (not
    negative); constant indices as ``indices`` (flat, not negative) and ``indices_shape``.

    Of a table with indices that are only known at run time the whole axis is read; with constant
    ones the range from the least to the greatest index that the box needs. Negative indices at run
    time count from the end.
    """

    kinds = frozenset({"Gather"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the shape of X with the axis replaced by the shape of the indices."""
        shape = required(operator, inputs, 0).shape
        axis = axis_of(operator, len(shape))
        if has(operator, "indices"):
            indices = integers(operator, "indices")
            taken = integers(operator, "indices_shape")
            if any(not 0 <= index < shape[axis] for index in indices):
                raise ValueError(
                    f"indices from {min(indices)} to {max(indices)} for an axis of {shape[axis]}"
                )
        else:
            taken = required(operator, inputs, 1).shape
        return (*shape[:axis], *taken, *shape[axis + 1 :])

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the boxes of the table and of the indices."""
        shape, axis = input_shape(operator, tensors, 0), integer(operator, "axis")
        rank = len(box) - len(shape) + 1
        taken = box[axis : axis + rank]
        if not has_input(operator, 1):
            chosen = constant_indices(operator, taken)
            along = (min(chosen), max(chosen) + 1)
            return ((*box[:axis], along, *box[axis + rank :]),)
        return (*box[:axis], (0, shape[axis]), *box[axis + rank :]), taken


def constant_indices(operator: Operator, box: Box) -> tuple[int, ...]:
    """Return the constant indices in a box of them, in row-major order."""
    shape = integers(operator, "indices_shape", len(box))
    positions = [0]
    for length, (start, stop) in zip(shape, box, strict=True):
        positions = [p * length + q for p in positions for q in range(start, stop)]
    return integers_at(operator, "indices", positions)


class Pad(Moves):
    """Pad.

    Input: X. Attributes: ``pads`` (of all axes: all beginnings, then all ends; negative ones cut
    off), ``mode`` (``constant``, ``reflect``, ``edge``, ``wrap``), ``value`` (a number, used by
    ``constant``).
    """

    kinds = frozenset({"Pad"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the padded shape."""
        shape = required(operator, inputs, 0).shape
        pads, rank = integers(operator, "pads", 2 * len(shape)), len(shape)
        mode = text(operator, "mode")
        number(operator, "value")
        if mode not in ("constant", "reflect", "edge", "wrap"):
            raise ValueError(f"mode {mode} of Pad is not known")
        for axis, length in enumerate(shape):
            longest = max(pads[axis], pads[axis + rank])
            if mode == "reflect" and longest >= max(length, 1):
                raise ValueError(f"reflection by {longest} exceeds an axis of {length}")
        result = tuple(length + pads[axis] + pads[axis + rank] for axis, length in enumerate(shape))
        if min(result, default=1) < 1:
            raise ValueError(f"the result of shape {result} is empty")
        return result

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the range of the source positions along each axis."""
        shape = input_shape(operator, tensors, 0)
        inside = [
            [p for p in pad_positions(operator, shape, axis, interval) if p is not None]
            for axis, interval in enumerate(box)
        ]
        return (covering_ranges(inside),)


def pad_positions(
    operator: Operator, shape: Extents, axis: int, interval: tuple[int, int]
) -> list[int | None]:
    """Return the input position of each output position of an axis; ``None`` for the value."""
    length = shape[axis]
    shift = integers(operator, "pads", 2 * len(shape))[axis]
    wanted = range(interval[0] - shift, interval[1] - shift)
    match text(operator, "mode"):
        case "edge":
            return [min(max(position, 0), length - 1) for position in wanted]
        case "wrap":
            return [position % length for position in wanted]
        case "reflect":
            last = length - 1
            return [last - abs(last - abs(position)) for position in wanted]
        case _:
            return [position if 0 <= position < length else None for position in wanted]


class GatherND(Moves):
    """GatherND: slices of X at positions that are the last axis of the indices.

    Inputs: X, integer indices. Attribute: ``batch_dims``, leading axes that both share.

    The axes of X that are indexed are read whole. Negative indices count from the end.
    """

    kinds = frozenset({"GatherND"})
    fusion = Fusion.INJECTIVE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the shape of the indices without the last axis, then the axes not indexed."""
        shape, indices = (required(operator, inputs, position).shape for position in range(2))
        batch = integer(operator, "batch_dims")
        _index_axes_of(shape, indices, batch)
        if shape[:batch] != indices[:batch] or batch >= len(indices):
            raise ValueError(f"{batch} leading axes of {shape} and of indices {indices} differ")
        return (*indices[:-1], *shape[batch + indices[-1] :])

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the box of X, its indexed axes whole, and that of the indices."""
        shape, indices = (input_shape(operator, tensors, position) for position in range(2))
        batch, leading = integer(operator, "batch_dims"), len(indices) - 1
        indexed = whole(shape)[batch : batch + indices[-1]]
        return (
            (*box[:batch], *indexed, *box[leading:]),
            (*box[:leading], (0, indices[-1])),
        )


class ScatterND(VectorOperator):
    """ScatterND: X with other slices at the positions that the indices name.

    Inputs: X, integer indices (positions are their last axis), updates. Attribute: ``reduction``
    (``none``, ``add``, ``mul``, ``max``, ``min``).

    All indices are read, and all updates within the axes that are not indexed: every tile takes
    those that fall into it. Costs 1 per output element and per element of updates read.
    """

    kinds = frozenset({"ScatterND"})
    fusion = Fusion.OPAQUE

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        """Return the shape of X."""
        shape, indices, updates = (required(operator, inputs, at).shape for at in range(3))
        expected = (*indices[:-1], *shape[_index_axes_of(shape, indices, 0) :])
        if updates != expected:
            raise ValueError(f"updates of shape {updates}, expected {expected}")
        if text(operator, "reduction") not in ("none", "add", "mul", "max", "min"):
            raise ValueError(f"reduction {text(operator, 'reduction')} is not known")
        return shape

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        """Return the box of X, all indices, and the updates of the axes that are not indexed."""
        indices = input_shape(operator, tensors, 1)
        updates = (*whole(indices[:-1]), *box[indices[-1] :])
        return box, whole(indices), updates

    def count(self, operator: Operator, tensors: Tensors, box: Box, reads: Reads) -> int:
        """Return the element operations."""
        return volume(box) + elements(reads[2:])


def _index_axes_of(shape: Extents, indices: Extents, batch: int) -> int:
    """Return how many axes behind the ``batch`` leading ones the last axis of indices names."""
    if not indices or not 1 <= indices[-1] <= len(shape) - batch:
        raise ValueError(f"indices of shape {indices} for a tensor of shape {shape}")
    return indices[-1]
