"""Operators that add up products: convolutions, products of matrices, Einsum.

ConvInteger and MatMulInteger: products of bytes whose int32 sums are the result. Inputs: two
operands of one byte per element, then optionally the zero point of each: one number, or one per
row of the first or per column (output channel) of the second operand. Every element counts less
its zero point. Attributes, reductions and loops are those of Conv and MatMul.
"""

from math import prod

from spmilp.frontend.graph import Operator
from spmilp.frontend.operators.boxes import broadcast_box, broadcast_shape, extents, volume, whole
from spmilp.frontend.operators.family import (
    Family,
    Fusion,
    Inputs,
    Part,
    Reads,
    Tensors,
    Work,
    has_input,
    input_shape,
    integer,
    integers,
    number,
    requantisation,
    required,
    text,
    work_dtype,
)
from spmilp.frontend.operators.windows import (
    data_box,
    transposed_pairs,
    transposed_reads,
    window_reads,
    windows_fit,
    windows_of,
)
from spmilp.units import Box, Extents


class Conv(Family):
    """Conv.

    Inputs: X ``(N, C, spatial...)``, W ``(M, C / group, kernel...)``, optional bias B ``(M)``.

    Attributes: ``kernel_shape``, ``strides``, ``dilations``, ``pads`` (all beginnings, then all
    ends; ``auto_pad`` resolved), ``group``.

    The reduction is over the input channels when ``group`` is 1. Only the part that ends at the
    last channel reads (and adds) the bias.

    Positions on padding count as MACs, as is usual. Axes before the last spatial one belong to
    loops ``Y`` and ``R``. The bias costs 1 per output element.
    """

    kinds = frozenset({"Conv"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        data, weight, group = _data_weight_and_group(operator, inputs)
        if weight[1] * group != data[1] or weight[0] % group != 0:
            raise ValueError(
                f"{data[1]} input and {weight[0]} output channels do not fit a weight of "
                f"{weight[1]} channels in {group} groups"
            )
        windows = windows_of(operator, len(data) - 2)
        if tuple(window.kernel for window in windows) != weight[2:]:
            raise ValueError(f"kernel_shape does not fit a weight of shape {weight}")
        return (data[0], weight[0], *map(windows_fit, windows, data[2:]))

    def reduction(self, operator: Operator, tensors: Tensors) -> int:
        return input_shape(operator, tensors, 0)[1] if integer(operator, "group") == 1 else 1

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        shape, weight = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        channels, slice_of_weight = self._channels(operator, tensors, box[1], part)
        data = data_box(operator, shape, (box[0], channels), box[2:], window_reads)
        boxes = [data, (box[1], slice_of_weight, *whole(weight[2:]))]
        if self.has_bias(operator):
            last = part is None or part[1] == self.reduction(operator, tensors)
            boxes.append((box[1],) if last else None)
        return tuple(boxes)

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        weight = input_shape(operator, tensors, 1)
        groups, per_group = self._groups(operator, weight[0], box[1])
        _, (first, end) = self._channels(operator, tensors, box[1], part)
        spatial, kernel = extents(box)[2:], weight[2:]
        last = part is None or part[1] == self.reduction(operator, tensors)
        each = volume(box) * self.has_bias(operator)
        vector = requantisation(operator, box) + each if last else 0
        return Work(
            loops=(
                ("B", box[0][1] - box[0][0]),
                ("G", groups),
                ("K", per_group),
                ("C", end - first),
                ("Y", prod(spatial[:-1])),
                ("X", spatial[-1]),
                ("R", prod(kernel[:-1])),
                ("S", kernel[-1]),
            ),
            vector=vector,
            dtype=work_dtype(operator, tensors),
        )

    def has_bias(self, operator: Operator) -> bool:
        return operator.kind == "Conv" and has_input(operator, 2)

    def _channels(
        self, operator: Operator, tensors: Tensors, outputs: tuple[int, int], part: Part
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the channels of data, and of the weight, for a range of output channels."""
        weight, group = input_shape(operator, tensors, 1), integer(operator, "group")
        if group == 1:
            channels = part or (0, weight[1])
            return channels, channels
        size = weight[0] // group
        first, last = outputs[0] // size, (outputs[1] - 1) // size
        return (first * weight[1], (last + 1) * weight[1]), (0, weight[1])

    def _groups(self, operator: Operator, channels: int, box: tuple[int, int]) -> tuple[int, int]:
        """Return loops over groups and over output channels; their product is exact."""
        size = channels // integer(operator, "group")
        count = box[1] - box[0]
        if box[0] // size == (box[1] - 1) // size:
            return 1, count
        if box[0] % size == 0 and box[1] % size == 0:
            return count // size, size
        return count, 1


def _data_weight_and_group(operator: Operator, inputs: Inputs) -> tuple[Extents, Extents, int]:
    """Return the shapes of data and weight, and the number of groups."""
    data, weight = required(operator, inputs, 0).shape, required(operator, inputs, 1).shape
    if len(data) < 3 or len(weight) != len(data):
        raise ValueError(f"input of shape {data}, weight of shape {weight}: ranks do not fit")
    return data, weight, integer(operator, "group")


class ConvTranspose(Family):
    """ConvTranspose.

    Inputs: X ``(N, C, spatial...)``, W ``(C, M / group, kernel...)``, optional bias B ``(M)``.

    Attributes: ``kernel_shape``, ``strides``, ``dilations``, ``pads`` (``auto_pad`` and
    ``output_shape`` resolved), ``output_padding``, ``group``.

    MACs are exact: pairs of an output element and a kernel position that meets an input. The
    kernel positions are part of loops ``Y`` and ``X``. The bias costs 1 per output element.
    """

    kinds = frozenset({"ConvTranspose"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        data, weight, group = _data_weight_and_group(operator, inputs)
        if weight[0] != data[1] or data[1] % group != 0:
            raise ValueError(
                f"{data[1]} input channels do not fit a weight of {weight[0]} in {group} groups"
            )
        extra = integers(operator, "output_padding", len(data) - 2)
        spatial = [
            (length - 1) * window.stride + window.span - window.pad - window.pad_end + more
            for length, window, more in zip(
                data[2:], windows_of(operator, len(data) - 2), extra, strict=True
            )
        ]
        if min(spatial) < 1:
            raise ValueError(f"output of spatial shape {tuple(spatial)} is empty")
        return (data[0], weight[1] * group, *spatial)

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        shape, weight = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        first, last = box[1][0] // weight[1], (box[1][1] - 1) // weight[1]
        size = weight[0] // integer(operator, "group")
        channels = (first * size, (last + 1) * size)
        own = (0, weight[1])
        if first == last:
            own = (box[1][0] - first * weight[1], box[1][1] - first * weight[1])
        data = data_box(operator, shape, (box[0], channels), box[2:], transposed_reads)
        boxes = [data, (channels, own, *whole(weight[2:]))]
        return (*boxes, (box[1],)) if has_input(operator, 2) else tuple(boxes)

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        weight = input_shape(operator, tensors, 1)
        group = integer(operator, "group")
        first, last = box[1][0] // weight[1], (box[1][1] - 1) // weight[1]
        count = box[1][1] - box[1][0]
        aligned = count == (last + 1 - first) * weight[1]
        groups = last + 1 - first if aligned or first == last else count
        shape = input_shape(operator, tensors, 0)[2:]
        windows = windows_of(operator, len(shape))
        pairs = list(map(transposed_pairs, windows, box[2:], shape))
        return Work(
            loops=(
                ("B", box[0][1] - box[0][0]),
                ("G", groups),
                ("K", count // groups),
                ("C", weight[0] // group),
                ("Y", prod(pairs[:-1])),
                ("X", pairs[-1]),
            ),
            vector=requantisation(operator, box) + volume(box) * has_input(operator, 2),
            dtype=work_dtype(operator, tensors),
        )


class MatMul(Family):
    """MatMul as in NumPy: batched, broadcast, with one-dimensional operands. No attributes.

    The reduction is over the last axis of the first operand. Loops: ``B`` batch positions that
    share the second operand, ``G`` those that have one each, ``X`` rows, ``K`` columns, ``C``
    reduction.
    """

    kinds = frozenset({"MatMul"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        left, right = required(operator, inputs, 0).shape, required(operator, inputs, 1).shape
        if not left or not right:
            raise ValueError(f"operands of shapes {left} and {right}, expected no scalars")
        inner = right[0] if len(right) == 1 else right[-2]
        if left[-1] != inner:
            raise ValueError(f"inner lengths {left[-1]} and {inner} differ")
        batch = broadcast_shape((left[:-2], right[:-2]))
        rows = left[-2:-1] if len(left) > 1 else ()
        columns = right[-1:] if len(right) > 1 else ()
        return (*batch, *rows, *columns)

    def reduction(self, operator: Operator, tensors: Tensors) -> int:
        return input_shape(operator, tensors, 0)[-1]

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        left, right = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        part = part or (0, left[-1])
        batch, rows, columns = _axes_of(box, left, right)
        if len(right) == 1:
            right_box: Box = (part,)
        else:
            right_box = (*broadcast_box(right[:-2], batch), part, *columns)
        return (*broadcast_box(left[:-2], batch), *rows, part), right_box

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        left, right = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        part = part or (0, left[-1])
        batch, rows, columns = _axes_of(box, left, right)
        own = volume(broadcast_box(right[:-2], batch)) if len(right) > 2 else 1
        return Work(
            loops=(
                ("B", volume(batch) // own),
                ("G", own),
                ("X", volume(rows)),
                ("K", volume(columns)),
                ("C", part[1] - part[0]),
            ),
            vector=requantisation(operator, box) if part[1] == left[-1] else 0,
            dtype=work_dtype(operator, tensors),
        )


def _axes_of(box: Box, left: Extents, right: Extents) -> tuple[Box, Box, Box]:
    """Return the batch, row and column axes of a box of the result."""
    rows, columns = len(left) > 1, len(right) > 1
    batch = len(box) - rows - columns
    return box[:batch], box[batch : batch + rows], box[batch + rows :]


class Gemm(Family):
    """Gemm: ``alpha * A' @ B' + beta * C``.

    Inputs: A, B, optional C that broadcasts to the result.

    Attributes: ``alpha``, ``beta`` (numbers), ``transA``, ``transB`` (0 or 1).

    The reduction is over the columns of A'. Only the part that ends at the last one reads (and
    adds) C. Loops: ``B`` rows, ``K`` columns, ``C`` reduction. C costs 1 per output element, each
    of alpha and beta 1 more where it is not 1.
    """

    kinds = frozenset({"Gemm"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        left, right = required(operator, inputs, 0).shape, required(operator, inputs, 1).shape
        scaled = number(operator, "alpha") != 1 or number(operator, "beta") != 1
        if scaled and operator.quantisation is not None:
            raise ValueError("a quantised Gemm with alpha or beta other than 1 is not supported")
        if len(left) != 2 or len(right) != 2:
            raise ValueError(f"operands of shapes {left} and {right}, expected matrices")
        left = left[::-1] if integer(operator, "transA") else left
        right = right[::-1] if integer(operator, "transB") else right
        if left[1] != right[0]:
            raise ValueError(f"inner lengths {left[1]} and {right[0]} differ")
        result = (left[0], right[1])
        added = inputs[2] if len(inputs) > 2 else None
        if added is not None and broadcast_shape((added.shape, result)) != result:
            raise ValueError(f"C of shape {added.shape} does not broadcast to {result}")
        return result

    def reduction(self, operator: Operator, tensors: Tensors) -> int:
        return input_shape(operator, tensors, 0)[0 if integer(operator, "transA") else 1]

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        length = self.reduction(operator, tensors)
        part = part or (0, length)
        left, right = (box[0], part), (part, box[1])
        boxes: list[Box | None] = [
            left[::-1] if integer(operator, "transA") else left,
            right[::-1] if integer(operator, "transB") else right,
        ]
        if has_input(operator, 2):
            shape = input_shape(operator, tensors, 2)
            boxes.append(broadcast_box(shape, box) if part[1] == length else None)
        return tuple(boxes)

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        length = self.reduction(operator, tensors)
        part = part or (0, length)
        vector = 0
        if part[1] == length:
            added = has_input(operator, 2)
            each = added + (number(operator, "alpha") != 1)
            each += added and number(operator, "beta") != 1
            vector = each * volume(box) + requantisation(operator, box)
        (row, row_end), (column, column_end) = box
        return Work(
            loops=(("B", row_end - row), ("K", column_end - column), ("C", part[1] - part[0])),
            vector=vector,
            dtype=work_dtype(operator, tensors),
        )


class Einsum(Family):
    """Einsum with explicit letters; attribute ``equation``, for example ``bhid,bhjd->bhij``.

    Without ``...``, without a letter twice in one operand, and with the result written out (the
    front end resolves what is implicit). A letter has one length: no broadcasting.

    Loops: ``X`` letters of the result, ``C`` letters that are summed. The MACs are those of one
    loop nest over all letters, whatever the number of operands.
    """

    kinds = frozenset({"Einsum"})
    fusion = Fusion.COMPLEX

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        operands, result = letters(operator)
        if len(operands) != len(inputs):
            raise ValueError(f"{len(inputs)} inputs for {len(operands)} operands")
        lengths: dict[str, int] = {}
        for position, operand in enumerate(operands):
            shape = required(operator, inputs, position).shape
            if len(shape) != len(operand):
                raise ValueError(f"operand {operand} of shape {shape}")
            for letter, length in zip(operand, shape, strict=True):
                if lengths.setdefault(letter, length) != length:
                    raise ValueError(f"letter {letter} is {lengths[letter]} and {length} long")
        return tuple(lengths[letter] for letter in result)

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        intervals = self._intervals(operator, tensors, box)
        operands, _ = letters(operator)
        return tuple(tuple(intervals[letter] for letter in operand) for operand in operands)

    def work(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Work:
        intervals = self._intervals(operator, tensors, box)
        _, result = letters(operator)
        summed = tuple(interval for letter, interval in intervals.items() if letter not in result)
        return Work(
            loops=(("X", volume(box)), ("C", volume(summed))),
            vector=requantisation(operator, box),
            dtype=work_dtype(operator, tensors),
        )

    def _intervals(
        self, operator: Operator, tensors: Tensors, box: Box
    ) -> dict[str, tuple[int, int]]:
        operands, result = letters(operator)
        intervals = {
            letter: (0, length)
            for name, operand in zip(operator.inputs, operands, strict=True)
            for letter, length in zip(operand, tensors[name].shape, strict=True)
        }
        return intervals | dict(zip(result, box, strict=True))


def letters(operator: Operator) -> tuple[list[str], str]:
    """Return the letters of each operand, and of the result.

    Raises
    ------
    ValueError
        If the equation is not of the form that the family understands.
    """
    equation = text(operator, "equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    operands = left.split(",")
    known = set("".join(operands))
    for term in (*operands, result):
        plain = term.isascii() and all(map(str.isalpha, term))
        if not arrow or len(set(term)) < len(term) or not plain:
            raise ValueError(f"equation {equation} is not of the form ij,jk->ik")
    if not set(result) <= known:
        raise ValueError(f"equation {equation}: a letter of the result is in no operand")
    return operands, result


class ConvInteger(Conv):
    """ConvInteger: the zero point of W may be one per output channel."""

    kinds = frozenset({"ConvInteger"})

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = super().output_shape(operator, inputs)
        _are_bytes_with_zeros(operator, inputs, (1, shape[1]))
        return shape

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        operands = super().reads(operator, tensors, box, part)[:2]
        return (*operands, *_zeros(operator, tensors, (None, box[1])))


class MatMulInteger(MatMul):
    """MatMulInteger: one zero point per row of A, or per column of B."""

    kinds = frozenset({"MatMulInteger"})

    def output_shape(self, operator: Operator, inputs: Inputs) -> Extents:
        shape = super().output_shape(operator, inputs)
        left, right = required(operator, inputs, 0).shape, required(operator, inputs, 1).shape
        rows, columns = left[-2] if len(left) > 1 else 1, right[-1] if len(right) > 1 else 1
        _are_bytes_with_zeros(operator, inputs, (rows, columns))
        return shape

    def reads(self, operator: Operator, tensors: Tensors, box: Box, part: Part = None) -> Reads:
        operands = super().reads(operator, tensors, box, part)
        left, right = input_shape(operator, tensors, 0), input_shape(operator, tensors, 1)
        columns = box[-1] if len(right) > 1 else None
        rows = box[-2 if len(right) > 1 else -1] if len(left) > 1 else None
        return (*operands, *_zeros(operator, tensors, (rows, columns)))


def _are_bytes_with_zeros(operator: Operator, inputs: Inputs, lengths: tuple[int, int]) -> None:
    for position, length in enumerate(lengths):
        dtype = required(operator, inputs, position).dtype
        if dtype.name not in ("int8", "uint8"):
            raise ValueError(f"input {position} holds {dtype}, expected int8 or uint8")
        zero = inputs[position + 2] if position + 2 < len(inputs) else None
        if zero is not None and zero.shape not in ((), (1,), (length,)):
            raise ValueError(
                f"zero points of shape {zero.shape} for input {position}, expected one or {length}"
            )


def _zeros(
    operator: Operator, tensors: Tensors, intervals: tuple[tuple[int, int] | None, ...]
) -> Reads:
    """Return the boxes of the zero points that are given."""
    boxes: list[Box | None] = []
    for position, interval in enumerate(intervals, start=2):
        if position >= len(operator.inputs):
            break
        shape = input_shape(operator, tensors, position) if has_input(operator, position) else None
        if shape is None or interval is None or shape in ((), (1,)):
            boxes.append(None if shape is None else whole(shape))
        else:
            boxes.append((interval,))
    return tuple(boxes)


FAMILIES = Conv, ConvInteger, ConvTranspose, Einsum, Gemm, MatMul, MatMulInteger
