"""TensorFlow Lite's operators in terms of ONNX's: one rule for each.

Meanings are those of LiteRT's reference kernels (tensorflow/lite/kernels/internal/reference) and of
the schema's options.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from spmilp.errors import UnsupportedOperatorError
from spmilp.frontend.cleanup.nodes import first_line
from spmilp.frontend.tflite.read import TO_FIRST, Operation, Translation, integers
from spmilp.units import Extents

RECURRENT = frozenset(
    (
        *("BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "LSTM", "RNN", "WHILE"),
        *("UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"),
    )
)
"""What converters make of recurrent layers."""

SAME = 0
"""The padding that gives one window for each stride; the other gives what fits inside."""


def translate(made: Translation) -> None:
    """Add the nodes of all operators of a model.

    Raises an ``UnsupportedOperatorError`` that lists those that cannot be lowered.
    """
    problems: list[tuple[str, str, str]] = []
    # What an operator that cannot be lowered would write; what reads it is not reported again.
    unknown: set[int] = set()
    for operation in made.operations:
        if not unknown.isdisjoint(operation.inputs):
            unknown.update(operation.outputs)
            continue
        try:
            if made.folded(operation):
                continue
            if operation.kind not in RULES:
                raise ValueError(f"the operator is not supported; {_remedy(operation.kind)}")
            _has_no_wide_integers(made, operation)
            RULES[operation.kind](made, operation)
        except ValueError as error:
            name = made.name(operation.outputs[0]) if operation.outputs else operation.kind
            problems.append((name, operation.kind, first_line(error)))
            unknown.update(operation.outputs)
    if problems:
        raise UnsupportedOperatorError(tuple(problems))


def _remedy(kind: str) -> str:
    """Say what to do about an operator that is not supported."""
    if kind in RECURRENT:
        return "convert the model with its recurrent layers unrolled (in Keras: unroll=True)"
    return "convert the model with others, or cut this one off"


def _has_no_wide_integers(made: Translation, operation: Operation) -> None:
    for tensor in (*operation.inputs, *operation.outputs):
        if tensor >= 0 and made.is_quantised(tensor) and made.dtype(tensor) == np.int16:
            raise ValueError(
                f"{made.name(tensor)} has integers of 16 bits that stand for reals, expected 8; "
                "convert the model with int8"
            )


def _is_spatial(made: Translation, tensor: int) -> bool:
    return len(made.shape(tensor)) == 4


def _stays_first(made: Translation, operation: Operation) -> bool:
    """Return whether an operator of elements works on channels that lie first."""
    tensors = [one for one in operation.inputs if one >= 0 and not made.is_constant(one)]
    return (
        _is_spatial(made, operation.outputs[0])
        and all(_is_spatial(made, one) for one in tensors)
        and any(made.only_first(one) for one in tensors)
    )


def _elements(
    *kinds: str,
    raw: bool = False,
    limits: Sequence[float] = (),
    attributes: Callable[[Translation, Operation], dict[str, Any]] = lambda made, operation: {},
) -> "Rule":
    """Return the rule of an operator of elements, which may be several in ONNX.

    ``raw`` says that integers stand for themselves; the ``limits`` are operands, too; the
    ``attributes`` are the last one's. A Mul of one operand squares it.
    """

    def rule(made: Translation, operation: Operation) -> None:
        first = _stays_first(made, operation)
        names = [_operand(made, one, first, raw=raw) for one in operation.inputs]
        names += [made.given("limit", np.array(x, np.float32)) for x in limits]
        for kind in kinds[:-1]:
            names = [made.step(operation, kind, names)]
        names *= 2 if kinds[-1] == "Mul" and len(names) == 1 else 1
        made.write(operation, kinds[-1], names, first=first, **attributes(made, operation))

    return rule


def _operand(made: Translation, tensor: int, first: bool, *, raw: bool = False) -> str:
    """Return the name of an operand; constants of fewer axes become broadcast to four."""
    shape = made.shape(tensor)
    if first and not _is_spatial(made, tensor):
        values = made.constant(tensor)
        whole = values.reshape((1,) * (4 - len(shape)) + shape).transpose(TO_FIRST)
        name = made.given(f"{made.name(tensor)}/broadcast", whole)
    else:
        name = made.raw(tensor, first=first)
    return name if raw else made.as_reals(name, tensor, first=first)


def _of_reals(rule: "Rule") -> "Rule":
    """Return a rule for reals alone: of integers LiteRT computes what is not documented."""

    def checked(made: Translation, operation: Operation) -> None:
        if made.is_quantised(operation.inputs[0]):
            raise ValueError("it is not supported of integers that stand for reals")
        rule(made, operation)

    return checked


def _type_of(made: Translation, operation: Operation) -> int:
    """Return ONNX's number of the type of a result."""
    return int(helper.np_dtype_to_tensor_dtype(made.dtype(operation.outputs[0])))


def _dequantise(made: Translation, operation: Operation) -> None:
    """Integers become reals; constants of float16 become float32."""
    (source,) = operation.inputs
    if made.is_constant(source) and not made.is_quantised(source):
        made.set_constant(operation.outputs[0], made.constant(source).astype(np.float32))
    else:
        (_elements("Identity") if made.is_quantised(source) else _CAST)(made, operation)


def _window(made: Translation, operation: Operation, kernel: Extents) -> dict[str, Any]:
    """Return the attributes of windows over rows and columns."""
    strides = operation.option("strideH"), operation.option("strideW")
    dilations = operation.option("dilationHFactor") or 1, operation.option("dilationWFactor") or 1
    return {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "auto_pad": "SAME_UPPER" if operation.option("padding") == SAME else "VALID",
    }


def _factor(
    made: Translation, weight: int, data: int, order: Sequence[int]
) -> tuple[str, NDArray[Any]]:
    """Return the name of a weight whose axes are turned, and its scales.

    Raises a ``ValueError`` where only one of the two factors is quantised.
    """
    if made.is_quantised(weight) != made.is_quantised(data):
        raise ValueError(
            "weights are integers and data are reals, or the other way round; quantise both, or "
            "neither"
        )
    name = f"{made.name(weight)}/{''.join(map(str, order))}"
    raw = made.given(name, made.constant(weight).transpose(order))
    if not made.is_quantised(weight):
        return raw, np.ones(1, np.float32)
    scale, zero, axis = made.scales(weight)
    along = list(order).index(axis)
    return made.reals(raw, scale, zero.astype(made.dtype(weight)), along), scale


def _bias(
    made: Translation, operation: Operation, scale: NDArray[Any], data: int, at: int
) -> list[str]:
    """Return the bias, if there is one; integers count steps of the sums."""
    if not operation.has(at):
        return []
    bias = operation.inputs[at]
    raw = made.raw(bias)
    if not made.is_quantised(data):
        return [raw]
    steps = (made.scales(data)[0] * scale).astype(np.float32)
    return [made.reals(raw, steps, np.zeros(steps.shape, made.dtype(bias)), 0)]


def _conv(made: Translation, operation: Operation) -> None:
    data, weight = operation.inputs[:2]
    _, rows, columns, depth = made.shape(weight)
    name, scale = _factor(made, weight, data, (0, 3, 1, 2))
    group = made.shape(data)[3] // depth
    operands = [made.real(data, first=True), name, *_bias(made, operation, scale, data, 2)]
    window = _window(made, operation, (rows, columns))
    made.write(operation, "Conv", operands, first=True, group=group, **window)


def _depthwise(made: Translation, operation: Operation) -> None:
    data, weight = operation.inputs[:2]
    _, rows, columns, _ = made.shape(weight)
    name, scale = _factor(made, weight, data, (3, 0, 1, 2))
    operands = [made.real(data, first=True), name, *_bias(made, operation, scale, data, 2)]
    window = _window(made, operation, (rows, columns))
    made.write(operation, "Conv", operands, first=True, group=made.shape(data)[3], **window)


def _transpose_conv(made: Translation, operation: Operation) -> None:
    """Inputs are the result's shape, weights, data, and perhaps the bias."""
    _, weight, data = operation.inputs[:3]
    _, *kernel, _ = made.shape(weight)
    name, scale = _factor(made, weight, data, (3, 0, 1, 2))
    operands = [made.real(data, first=True), name, *_bias(made, operation, scale, data, 3)]
    strides = operation.option("strideH"), operation.option("strideW")
    low, high, more = [], [], []
    lengths, results = made.shape(data)[1:3], made.shape(operation.outputs[0])[1:3]
    for length, size, stride, result in zip(lengths, kernel, strides, results, strict=True):
        full = (length - 1) * stride + size
        total = max(0, full - result) if operation.option("padding") == SAME else 0
        low.append(total // 2)
        high.append(total - total // 2 + max(0, full - total - result))
        more.append(max(0, result - full))
    made.write(
        operation,
        "ConvTranspose",
        operands,
        first=True,
        kernel_shape=kernel,
        strides=strides,
        pads=[*low, *high],
        output_padding=more,
    )


def _fully_connected(made: Translation, operation: Operation) -> None:
    data, weight = operation.inputs[:2]
    if operation.option("weightsFormat"):
        raise ValueError("its weights are shuffled for one processor; convert the model without")
    count, depth = made.shape(weight)
    raw, shape = made.raw(data), made.shape(data)
    rows = prod(shape) // depth
    if shape != (rows, depth):
        raw = made.step(operation, "Reshape", [raw, made.given("shape", integers(rows, depth))])
    real = made.as_reals(raw, data)
    if made.is_constant(weight):
        name, scale = _factor(made, weight, data, (0, 1))
    else:
        name, scale = made.real(weight), np.ones(1, np.float32)
        if made.is_quantised(weight):
            scale = made.scales(weight)[0]
    operands = [real, name, *_bias(made, operation, scale, data, 2)]
    made.write(operation, "Gemm", operands, shape=(rows, count), transB=1)


def _batch_matmul(made: Translation, operation: Operation) -> None:
    operands = []
    for tensor, turned in zip(operation.inputs, ("adjX", "adjY"), strict=True):
        name, rank = made.raw(tensor), len(made.shape(tensor))
        if operation.option(turned):
            order = [*range(rank - 2), rank - 1, rank - 2]
            name = made.step(operation, "Transpose", [name], perm=order)
        operands.append(made.as_reals(name, tensor))
    made.write(operation, "MatMul", operands)


def _pool(kind: str, **attributes: Any) -> "Rule":
    def rule(made: Translation, operation: Operation) -> None:
        kernel = operation.option("filterHeight"), operation.option("filterWidth")
        window = _window(made, operation, kernel)
        data = made.real(operation.inputs[0], first=True)
        made.write(operation, kind, [data], first=True, **window, **attributes)

    return rule


def _reduce(kind: str) -> "Rule":
    def rule(made: Translation, operation: Operation) -> None:
        data, given = operation.inputs
        rank, kept = len(made.shape(data)), bool(operation.option("keepDims"))
        axes = sorted({axis % rank for axis in made.listed(given)})
        first = made.only_first(data) and (kept or {1, 2} <= {*axes})
        axes = [TO_FIRST.index(axis) if first else axis for axis in axes]
        # Without the axes that are reduced both layouts are the same.
        operands = [made.real(data, first=first), made.given("axes", integers(*axes))]
        made.write(operation, kind, operands, first=first and kept, keepdims=int(kept))

    return rule


def _softmax(made: Translation, operation: Operation) -> None:
    name, beta = made.real(operation.inputs[0]), float(operation.option("beta"))
    if beta != 1 and made.is_quantised(operation.inputs[0]):
        raise ValueError(f"its beta is {beta:g}, expected 1 of integers")
    if beta != 1:
        name = made.step(operation, "Mul", [name, made.given("beta", np.array(beta, np.float32))])
    made.write(operation, "Softmax", [name], axis=-1)


def _along_last(kind: str, **attributes: Any) -> "Rule":
    def rule(made: Translation, operation: Operation) -> None:
        made.write(operation, kind, [made.real(operation.inputs[0])], axis=-1, **attributes)

    return rule


def _shaped(kind: str) -> "Rule":
    """Return the rule of an operator that its result's shape says all of."""

    def rule(made: Translation, operation: Operation) -> None:
        _to_shape(made, operation, made.raw(operation.inputs[0]), kind=kind)

    return rule


def _to_shape(
    made: Translation, operation: Operation, raw: str, output: int = 0, kind: str = "Reshape"
) -> None:
    """Let values of another shape be an output of an operation."""
    shape = made.given("shape", integers(*made.shape(operation.outputs[output])))
    made.move(operation, kind, [raw, shape], output=output)


def _shape(made: Translation, operation: Operation) -> None:
    shape = np.array(made.shape(operation.inputs[0]), made.dtype(operation.outputs[0]))
    made.set_constant(operation.outputs[0], shape)


def _transpose(made: Translation, operation: Operation) -> None:
    order = made.listed(operation.inputs[1])
    made.move(operation, "Transpose", [made.raw(operation.inputs[0])], perm=order)


def _concatenation(made: Translation, operation: Operation) -> None:
    first = _stays_first(made, operation)
    axis = operation.option("axis") % len(made.shape(operation.outputs[0]))
    operands = [_operand(made, one, first) for one in operation.inputs]
    made.write(
        operation, "Concat", operands, first=first, axis=TO_FIRST.index(axis) if first else axis
    )


def _pack(made: Translation, operation: Operation) -> None:
    rank = len(made.shape(operation.outputs[0]))
    axis, operands = operation.option("axis") % rank, []
    for tensor in operation.inputs:
        given = [made.raw(tensor), made.given("axis", integers(axis))]
        operands.append(made.as_reals(made.step(operation, "Unsqueeze", given), tensor))
    made.write(operation, "Concat", operands, axis=axis)


def _unpack(made: Translation, operation: Operation) -> None:
    data = operation.inputs[0]
    axis = operation.option("axis") % len(made.shape(data))
    for number in range(len(operation.outputs)):
        bounds = _bounds(made, {axis: (number, number + 1, 1)})
        part = made.step(operation, "Slice", [made.raw(data), *bounds])
        _to_shape(made, operation, part, number)


Cuts = Mapping[int, tuple[int, int, int]]
"""First, last and step along each axis that is cut."""


def _bounds(made: Translation, cuts: Cuts) -> list[str]:
    starts, ends, steps = zip(*cuts.values(), strict=True) if cuts else ((), (), ())
    return [made.given("bounds", integers(*one)) for one in (starts, ends, tuple(cuts), steps)]


def _slice_of(
    made: Translation, operation: Operation, data: int, cuts: Cuts, output: int = 0
) -> None:
    """Let a slice be an output of an operation, in the layout in which the data lies."""
    first = made.only_first(data) and _is_spatial(made, operation.outputs[output])
    own = {TO_FIRST.index(axis) if first else axis: cut for axis, cut in cuts.items()}
    operands = [made.raw(data, first=first), *_bounds(made, own)]
    made.move(operation, "Slice", operands, first=first, output=output)


def _slice(made: Translation, operation: Operation) -> None:
    data, begin, size = operation.inputs
    rows = zip(made.listed(begin), made.listed(size), made.shape(data), strict=True)
    ends = [(low, length if count < 0 else low + count, 1) for low, count, length in rows]
    _slice_of(made, operation, data, dict(enumerate(ends)))


def _strided_slice(made: Translation, operation: Operation) -> None:
    data = operation.inputs[0]
    if operation.option("ellipsisMask") or operation.option("newAxisMask"):
        raise ValueError("its ellipsis or new axes are not supported")
    shape, cuts = made.shape(data), {}
    columns = map(made.listed, operation.inputs[1:4])
    shrunk = operation.option("shrinkAxisMask")
    for axis, (low, high, step) in enumerate(zip(*columns, strict=True)):
        length = shape[axis]
        if shrunk >> axis & 1:
            low = low % length
            cuts[axis] = low, low + 1, 1
            continue
        if operation.option("beginMask") >> axis & 1:
            low = 0 if step > 0 else length - 1
        if operation.option("offset"):
            high += low
        if operation.option("endMask") >> axis & 1:
            high = length if step > 0 else -length - 1
        cuts[axis] = low, high, step
    if not shrunk:
        _slice_of(made, operation, data, cuts)
        return
    part = made.step(operation, "Slice", [made.raw(data), *_bounds(made, cuts)])
    _to_shape(made, operation, part)


def _split(made: Translation, operation: Operation) -> None:
    """SPLIT has axis and data as inputs, SPLIT_V data, lengths and axis."""
    data, axis = operation.inputs[:2][::-1]
    if operation.kind == "SPLIT_V":
        data, _, axis = operation.inputs
    along, start = made.listed(axis)[0] % len(made.shape(data)), 0
    for number, tensor in enumerate(operation.outputs):
        end = start + made.shape(tensor)[along]
        _slice_of(made, operation, data, {along: (start, end, 1)}, number)
        start = end


def _pad(mode: str) -> "Rule":
    def rule(made: Translation, operation: Operation) -> None:
        data = operation.inputs[0]
        first = _stays_first(made, operation)
        pads = made.constant(operation.inputs[1])
        order = TO_FIRST if first else range(len(pads))
        how = mode
        if mode == "mirror":
            how = "symmetric" if operation.option("mode") else "reflect"
        if how == "symmetric":
            raise ValueError("it repeats the outermost elements, which is not supported")
        rows = [pads[axis] for axis in order]
        sides = integers(*(int(low) for low, _ in rows), *(int(high) for _, high in rows))
        operands = [_operand(made, data, first), made.given("pads", sides)]
        if operation.has(2):
            operands.append(_operand(made, operation.inputs[2], first=False))
        made.write(operation, "Pad", operands, first=first, mode=how)

    return rule


def _space_to_batch(made: Translation, operation: Operation) -> None:
    """Padded rows and columns go to the batch, one of each block after the other."""
    data, block, pads = operation.inputs
    sizes, sides = made.listed(block), made.constant(pads)
    raw, shape, count = made.raw(data), list(made.shape(data)), len(sizes)
    lows, highs = ([0, *sides[:, at], *[0] * (len(shape) - 1 - count)] for at in (0, 1))
    if sides.any():
        zero = made.scales(data)[1][0] if made.is_quantised(data) else 0
        given = [integers(*lows, *highs), np.array(zero, made.dtype(data))]
        raw = made.step(operation, "Pad", [raw, *(made.given("pads", one) for one in given)])
    shape = [sum(one) for one in zip(shape, lows, highs, strict=True)]
    split = [shape[0]]
    for length, size in zip(shape[1:], sizes, strict=False):
        split += [length // size, size]
    order = [2 + 2 * n for n in range(count)] + [0] + [1 + 2 * n for n in range(count)]
    raw = _turned(made, operation, raw, [*split, *shape[1 + count :]], order)
    _to_shape(made, operation, raw)


def _batch_to_space(made: Translation, operation: Operation) -> None:
    """The opposite, with rows and columns cut off in the end."""
    data, block, crops = operation.inputs
    sizes, shape = made.listed(block), made.shape(data)
    count, batch, order = len(sizes), shape[0] // prod(sizes), [len(sizes)]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    raw = _turned(made, operation, made.raw(data), [*sizes, batch, *shape[1:]], order)
    if not made.constant(crops).any():
        _to_shape(made, operation, raw)
        return
    lengths = [length * size for length, size in zip(shape[1:], sizes, strict=False)]
    whole = made.given("shape", integers(batch, *lengths, *shape[1 + count :]))
    raw = made.step(operation, "Reshape", [raw, whole])
    sides = zip(made.constant(crops), lengths, strict=True)
    ends = [(int(low), length - int(high), 1) for (low, high), length in sides]
    made.move(operation, "Slice", [raw, *_bounds(made, dict(enumerate(ends, start=1)))])


def _turned(
    made: Translation, operation: Operation, raw: str, split: Sequence[int], order: Sequence[int]
) -> str:
    """Split axes and turn them; those behind the order stay."""
    split_axes = made.given("shape", integers(*split))
    raw = made.step(operation, "Reshape", [raw, split_axes])
    whole = [*order, *range(len(order), len(split))]
    return made.step(operation, "Transpose", [raw], perm=whole)


def _gather(made: Translation, operation: Operation) -> None:
    if operation.option("batchDims"):
        raise ValueError(f"its batch_dims are {operation.option('batchDims')}, expected 0")
    data, indices = operation.inputs
    axis = operation.option("axis") % len(made.shape(data))
    made.write(operation, "Gather", [made.real(data), made.raw(indices)], axis=axis)


def _tile(made: Translation, operation: Operation) -> None:
    repeats = made.given("repeats", integers(*made.listed(operation.inputs[1])))
    made.move(operation, "Tile", [made.raw(operation.inputs[0]), repeats])


def _blocks(kind: str) -> "Rule":
    def rule(made: Translation, operation: Operation) -> None:
        data = made.raw(operation.inputs[0], first=True)
        made.move(operation, kind, [data], first=True, blocksize=operation.option("blockSize"))

    return rule


def _resize(mode: str) -> "Rule":
    def rule(made: Translation, operation: Operation) -> None:
        data, shape = operation.inputs[0], made.shape(operation.outputs[0])
        sizes = made.given("sizes", integers(*(shape[axis] for axis in TO_FIRST)))
        how = "asymmetric"
        if operation.option("alignCorners"):
            how = "align_corners"
        elif operation.option("halfPixelCenters"):
            how = "half_pixel"
        made.write(
            operation,
            "Resize",
            [made.real(data, first=True), "", "", sizes],
            first=True,
            mode=mode,
            coordinate_transformation_mode=how,
            nearest_mode="floor" if how == "asymmetric" else "round_prefer_ceil",
        )

    return rule


def _position(kind: str) -> "Rule":
    def rule(made: Translation, operation: Operation) -> None:
        data, given = operation.inputs
        axis = made.listed(given)[0] % len(made.shape(data))
        name = made.step(operation, kind, [made.raw(data)], axis=axis, keepdims=0)
        made.write(operation, "Cast", [name], to=_type_of(made, operation))

    return rule


Rule = Callable[[Translation, Operation], None]

_CAST = _elements("Cast", raw=True, attributes=lambda made, one: {"to": _type_of(made, one)})

SAME_NAME = (
    *("ABS", "ADD", "CEIL", "COS", "DIV", "ELU", "EQUAL", "EXP", "FLOOR", "GREATER", "LESS", "LOG"),
    *("MUL", "POW", "RELU", "ROUND", "SIGN", "SIN", "SQRT", "SUB", "TANH"),
)
"""Operators of elements that ONNX calls the same, but for the case of letters."""

RULES: Mapping[str, Rule] = {
    **{name: _elements(name.title()) for name in SAME_NAME},
    "ARG_MAX": _position("ArgMax"),
    "ARG_MIN": _position("ArgMin"),
    "AVERAGE_POOL_2D": _pool("AveragePool"),
    "BATCH_MATMUL": _batch_matmul,
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "BROADCAST_TO": _shaped("Expand"),
    "CAST": _CAST,
    "CONCATENATION": _concatenation,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "DEPTH_TO_SPACE": _blocks("DepthToSpace"),
    "DEQUANTIZE": _dequantise,
    "EXPAND_DIMS": _shaped("Reshape"),
    "FULLY_CONNECTED": _fully_connected,
    "GATHER": _gather,
    "GELU": _elements(
        "Gelu",
        attributes=lambda _, one: {"approximate": "tanh" if one.option("approximate") else "none"},
    ),
    "GREATER_EQUAL": _elements("GreaterOrEqual"),
    "HARD_SWISH": _elements("HardSwish"),
    "L2_NORMALIZATION": _along_last("LpNormalization", p=2),
    "L2_POOL_2D": _pool("LpPool", p=2),
    "LEAKY_RELU": _elements(
        "LeakyRelu", attributes=lambda _, one: {"alpha": float(one.option("alpha"))}
    ),
    "LESS_EQUAL": _elements("LessOrEqual"),
    "LOGICAL_AND": _elements("And"),
    "LOGICAL_NOT": _elements("Not"),
    "LOGICAL_OR": _elements("Or"),
    "LOGISTIC": _elements("Sigmoid"),
    "LOG_SOFTMAX": _along_last("LogSoftmax"),
    "MAXIMUM": _elements("Max"),
    "MAX_POOL_2D": _pool("MaxPool"),
    "MEAN": _reduce("ReduceMean"),
    "MINIMUM": _elements("Min"),
    "MIRROR_PAD": _pad("mirror"),
    "NEG": _of_reals(_elements("Neg")),
    "NOT_EQUAL": _elements("Equal", "Not"),
    "PACK": _pack,
    "PAD": _pad("constant"),
    "PADV2": _pad("constant"),
    "PRELU": _elements("PRelu"),
    "QUANTIZE": _elements("Identity"),
    "REDUCE_MAX": _reduce("ReduceMax"),
    "REDUCE_MIN": _reduce("ReduceMin"),
    "REDUCE_PROD": _of_reals(_reduce("ReduceProd")),
    "RELU6": _elements("Clip", limits=(0.0, 6.0)),
    "RELU_N1_TO_1": _elements("Clip", limits=(-1.0, 1.0)),
    "RESHAPE": _shaped("Reshape"),
    "RESIZE_BILINEAR": _resize("linear"),
    "RESIZE_NEAREST_NEIGHBOR": _resize("nearest"),
    "RSQRT": _elements("Sqrt", "Reciprocal"),
    "SELECT": _elements("Where"),
    "SELECT_V2": _elements("Where"),
    "SHAPE": _shape,
    "SLICE": _slice,
    "SOFTMAX": _softmax,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "SPACE_TO_DEPTH": _blocks("SpaceToDepth"),
    "SPLIT": _split,
    "SPLIT_V": _split,
    "SQUARE": _elements("Mul"),
    "SQUARED_DIFFERENCE": _elements("Sub", "Mul"),
    "SQUEEZE": _shaped("Reshape"),
    "STRIDED_SLICE": _strided_slice,
    "SUM": _of_reals(_reduce("ReduceSum")),
    "TILE": _tile,
    "TRANSPOSE": _transpose,
    "TRANSPOSE_CONV": _transpose_conv,
    "UNPACK": _unpack,
}
"""From an operator of the schema to what adds its nodes."""
