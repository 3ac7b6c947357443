"""One TensorFlow Lite model for each form of an operator, with random weights and scales."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from frontend.tflite_models import Builder


class Case(Builder):
    """A model of one operator, whose tensors get random scales."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = np.random.default_rng(seed)

    def step(self, low: float = 0.003, high: float = 0.05) -> float:
        """Return a random scale."""
        return float(np.exp(self.random.uniform(np.log(low), np.log(high))))

    def byte(self, shape: Sequence[int], low: float = 0.003, high: float = 0.05) -> int:
        """Add a tensor of int8."""
        return self.tensor(shape, "int8", self.step(low, high), int(self.random.integers(-60, 60)))

    def like(self, other: int, shape: Sequence[int]) -> int:
        """Add a tensor with the scale of another."""
        given = self.tensors[other].quantization
        return self.tensor(shape, "int8", float(given.scale[0]), int(given.zeroPoint[0]))

    def indices(self, values: Any) -> int:
        """Add a constant of int32."""
        return self.tensor(np.shape(values), "int32", data=values)

    def weights(self, data: int, shape: Sequence[int], channels: int, axis: int = 0) -> list[int]:
        """Add weights and a bias: of each channel, or one scale for all."""
        steps = [self.step(0.001, 0.01) for _ in range(channels)]
        values = self.random.integers(-127, 128, shape)
        weight = self.tensor(shape, "int8", steps, 0, values, axis)
        count = shape[axis]
        unit = float(self.tensors[data].quantization.scale[0])
        bias = self.random.integers(-2000, 2000, [count])
        return [weight, self.tensor([count], "int32", [unit * one for one in steps], 0, bias)]


Make = Callable[[Case], tuple[list[int], list[int]]]


def conv(
    kind: str,
    *,
    activation: int = 0,
    same: bool = True,
    stride: int = 1,
    dilation: int = 1,
    per_channel: bool = True,
    multiplier: int = 1,
) -> Make:
    """Return a convolution over rows and columns."""

    def make(case: Case) -> tuple[list[int], list[int]]:
        data = case.byte([1, 9, 8, 4])
        is_depthwise = kind == "DEPTHWISE_CONV_2D"
        count = 4 * multiplier if is_depthwise else 6
        shape, axis = ([1, 3, 3, count], 3) if is_depthwise else ([count, 3, 3, 4], 0)
        given = case.weights(data, shape, count if per_channel else 1, axis)
        sizes = [-(-n // stride) if same else (n - 2 * dilation - 1) // stride + 1 for n in (9, 8)]
        result = case.byte([1, *sizes, count], 0.02, 0.2)
        more = {"depthMultiplier": multiplier} if is_depthwise else {}
        case.operator(
            kind,
            [data, *given],
            [result],
            version=3,
            table="DepthwiseConv2DOptions" if is_depthwise else "Conv2DOptions",
            padding=0 if same else 1,
            strideW=stride,
            strideH=stride,
            fusedActivationFunction=activation,
            dilationWFactor=dilation,
            dilationHFactor=dilation,
            **more,
        )
        return [data], [result]

    return make


def transpose_conv(stride: int, *, same: bool) -> Make:
    """Return a transposed convolution."""

    def make(case: Case) -> tuple[list[int], list[int]]:
        data = case.byte([1, 5, 4, 3])
        weight, bias = case.weights(data, [4, 3, 3, 3], 4)
        sizes = [n * stride if same else (n - 1) * stride + 3 for n in (5, 4)]
        result = case.byte([1, *sizes, 4], 0.02, 0.2)
        shape = case.indices([1, *sizes, 4])
        case.operator(
            "TRANSPOSE_CONV",
            [shape, weight, data, bias],
            [result],
            version=3,
            table="TransposeConvOptions",
            padding=0 if same else 1,
            strideW=stride,
            strideH=stride,
        )
        return [data], [result]

    return make


def fully_connected(*, per_channel: bool, activation: int = 0) -> Make:
    """Return a product with a matrix."""

    def make(case: Case) -> tuple[list[int], list[int]]:
        data = case.byte([3, 37])
        given = case.weights(data, [23, 37], 23 if per_channel else 1)
        result = case.byte([3, 23], 0.02, 0.2)
        case.operator(
            "FULLY_CONNECTED",
            [data, *given],
            [result],
            version=4,
            table="FullyConnectedOptions",
            fusedActivationFunction=activation,
        )
        return [data], [result]

    return make


def of_two(kind: str, other: Sequence[int] = (1, 5, 4, 6), activation: int = 0) -> Make:
    """Return an operator of two operands; the second is a constant where it is smaller."""

    def make(case: Case) -> tuple[list[int], list[int]]:
        one = case.byte([1, 5, 4, 6])
        is_whole = len(other) == 4
        values = None if is_whole else case.random.integers(-128, 128, other)
        two = case.tensor(other, "int8", case.step(), 7, values)
        result = case.byte([1, 5, 4, 6], 0.01, 0.1)
        table = f"{kind.title()}Options"
        case.operator(
            kind, [one, two], [result], version=2, table=table, fusedActivationFunction=activation
        )
        return [one, two] if is_whole else [one], [result]

    return make


def pool(kind: str, *, same: bool, activation: int = 0) -> Make:
    """Return pooling over windows of three rows and columns."""

    def make(case: Case) -> tuple[list[int], list[int]]:
        data = case.byte([1, 9, 8, 4])
        sizes = [-(-n // 2) if same else (n - 3) // 2 + 1 for n in (9, 8)]
        result = case.like(data, [1, *sizes, 4])
        case.operator(
            kind,
            [data],
            [result],
            version=2,
            table="Pool2DOptions",
            padding=0 if same else 1,
            strideW=2,
            strideH=2,
            filterWidth=3,
            filterHeight=3,
            fusedActivationFunction=activation,
        )
        return [data], [result]

    return make


def reduce(kind: str, axes: Sequence[int], *, keeps: bool) -> Make:
    """Return a reduction."""

    def make(case: Case) -> tuple[list[int], list[int]]:
        data, whole = case.byte([1, 7, 6, 5]), (1, 7, 6, 5)
        shape = [1 if n in axes else whole[n] for n in range(4) if keeps or n not in axes]
        result = case.like(data, shape) if kind != "MEAN" else case.byte(shape, 0.002, 0.02)
        inputs = [data, case.indices(axes)]
        case.operator(kind, inputs, [result], version=2, table="ReducerOptions", keepDims=keeps)
        return [data], [result]

    return make


def unary(
    kind: str,
    table: str | None = None,
    output: tuple[float, int] | None = None,
    version: int = 2,
    shape: Sequence[int] = (1, 16, 16, 4),
    **options: Any,
) -> Make:
    """Return an operator of elements."""

    def make(case: Case) -> tuple[list[int], list[int]]:
        data = case.byte(shape, 0.01, 0.1)
        result = case.tensor(shape, "int8", *output) if output else case.byte(shape, 0.01, 0.1)
        case.operator(kind, [data], [result], version=version, table=table, **options)
        return [data], [result]

    return make


def moved(
    kind: str,
    shape: Sequence[int],
    result: Sequence[int],
    given: Sequence[Any] = (),
    table: str | None = None,
    outputs: int = 1,
    version: int = 2,
    leads: bool = False,
    **options: Any,
) -> Make:
    """Return an operator that moves elements; constants say how, before the data if they lead."""

    def make(case: Case) -> tuple[list[int], list[int]]:
        data = case.byte(shape)
        constants = [case.indices(one) for one in given]
        results = [case.like(data, result) for _ in range(outputs)]
        inputs = [*constants, data] if leads else [data, *constants]
        case.operator(kind, inputs, results, version=version, table=table, **options)
        return [data], results

    return make


def of_reals(
    kind: str,
    shapes: Sequence[Sequence[int]],
    result: Sequence[int],
    given: Sequence[Any] = (),
    table: str | None = None,
    **options: Any,
) -> Make:
    """Return an operator of float32; its constants are of float32 or int32."""

    def make(case: Case) -> tuple[list[int], list[int]]:
        inputs = [case.tensor(shape, "float32") for shape in shapes]
        constants = []
        for shape in given:
            if isinstance(shape, tuple):
                values = case.random.standard_normal(shape)
                constants.append(case.tensor(shape, "float32", data=values))
            else:
                constants.append(case.indices(shape))
        output = case.tensor(result, "float32")
        case.operator(kind, [*inputs, *constants], [output], table=table, **options)
        return inputs, [output]

    return make


def concatenation(axis: int) -> Make:
    """Return what joins two tensors of one scale."""

    def make(case: Case) -> tuple[list[int], list[int]]:
        one = case.byte([1, 4, 3, 5])
        two, shape = case.like(one, [1, 4, 3, 5]), [1, 4, 3, 5]
        shape[axis] *= 2
        result = case.like(one, shape)
        table = "ConcatenationOptions"
        case.operator("CONCATENATION", [one, two], [result], version=2, table=table, axis=axis)
        return [one, two], [result]

    return make


def batch_matmul(*, turned: bool) -> Make:
    """Return a product of two results."""

    def make(case: Case) -> tuple[list[int], list[int]]:
        one, two = case.byte([2, 7, 5]), case.byte([2, 6, 5] if turned else [2, 5, 6])
        result = case.byte([2, 7, 6], 0.05, 0.5)
        table = "BatchMatMulOptions"
        case.operator("BATCH_MATMUL", [one, two], [result], version=2, table=table, adjY=turned)
        return [one, two], [result]

    return make


def quantised_and_back(case: Case) -> tuple[list[int], list[int]]:
    """Return reals that become integers, with ties, and reals again."""
    data, result = case.tensor([4, 64], "float32"), case.tensor([4, 64], "float32")
    integers = case.tensor([4, 64], "int8", 2.0, 3)
    case.operator("QUANTIZE", [data], [integers])
    case.operator("DEQUANTIZE", [integers], [result])
    return [data], [result]


def open_batch(case: Case) -> tuple[list[int], list[int]]:
    """Return what the converter makes of a flattening whose batch is open: it computes the shape.

    The file records 1 where it does not know a length.
    """
    data = case.tensor([1, 6, 4], "int8", 0.1, 3, signature=[-1, 6, 4])
    shape, count = case.tensor([3], "int32"), case.tensor([], "int32")
    joined = case.tensor([2], "int32")
    flat = case.tensor([1, 1], "int8", 0.1, 3, signature=[-1, -1])
    case.operator("SHAPE", [data], [shape], table="ShapeOptions", outType=2)
    ends = [case.indices([0]), case.indices([1]), case.indices([1])]
    table = "StridedSliceOptions"
    case.operator("STRIDED_SLICE", [shape, *ends], [count], table=table, shrinkAxisMask=1)
    length = case.indices(24)
    case.operator("PACK", [count, length], [joined], table="PackOptions", valuesCount=2)
    case.operator("RESHAPE", [data, joined], [flat], table="ReshapeOptions")
    given = case.weights(flat, [5, 24], 5)
    result = case.tensor([1, 5], "int8", 0.1, 1, signature=[-1, 5])
    table = "FullyConnectedOptions"
    case.operator("FULLY_CONNECTED", [flat, *given], [result], table=table, version=4)
    return [data], [result]


def passed_through(case: Case) -> tuple[list[int], list[int]]:
    """Return a model of which an input is an output, too."""
    data, result = case.byte([1, 4]), case.byte([1, 4])
    case.operator("QUANTIZE", [data], [result], version=2)
    return [data], [result, data]


def block(case: Case) -> tuple[list[int], list[int]]:
    """Return a residual block, pooling, a classifier: tensors change their layouts between."""
    data = case.byte([1, 8, 8, 3])
    inner, other = case.byte([1, 8, 8, 4], 0.02, 0.1), case.byte([1, 8, 8, 4], 0.02, 0.1)
    total, mean = case.byte([1, 8, 8, 4], 0.02, 0.1), case.byte([1, 4], 0.01, 0.05)
    gates, flat = case.tensor([1, 4], "int8", 1 / 256, -128), case.like(total, [1, 256])
    logits, result = case.byte([1, 10], 0.1, 0.3), case.tensor([1, 10], "int8", 1 / 256, -128)
    same = {"padding": 0, "strideW": 1, "strideH": 1, "version": 3}
    first = case.weights(data, [4, 3, 3, 3], 4)
    case.operator("CONV_2D", [data, *first], [inner], table="Conv2DOptions", **same)
    second = case.weights(inner, [1, 3, 3, 4], 4, 3)
    table = "DepthwiseConv2DOptions"
    case.operator("DEPTHWISE_CONV_2D", [inner, *second], [other], table=table, **same)
    case.operator("ADD", [inner, other], [total], table="AddOptions", version=2)
    axes = case.indices([1, 2])
    case.operator("MEAN", [total, axes], [mean], table="ReducerOptions", version=2)
    case.operator("LOGISTIC", [mean], [gates], version=2)
    case.operator("RESHAPE", [total, case.indices([1, 256])], [flat], table="ReshapeOptions")
    third = case.weights(flat, [10, 256], 10)
    table = "FullyConnectedOptions"
    case.operator("FULLY_CONNECTED", [flat, *third], [logits], table=table, version=4)
    case.operator("SOFTMAX", [logits], [result], table="SoftmaxOptions", beta=1.0, version=2)
    return [data], [gates, result]


EXACT: Mapping[str, Make] = {
    **{
        f"{kind} {number}": conv(kind, **how)
        for kind in ("CONV_2D", "DEPTHWISE_CONV_2D")
        for number, how in enumerate(
            (
                {},
                {"activation": 3, "stride": 2},
                {"activation": 1, "same": False},
                {"per_channel": False},
                {"dilation": 2, "same": False},
            )
        )
    },
    "depth multiplier": conv("DEPTHWISE_CONV_2D", multiplier=3),
    "TRANSPOSE_CONV": transpose_conv(2, same=True),
    "TRANSPOSE_CONV valid": transpose_conv(1, same=False),
    "FULLY_CONNECTED": fully_connected(per_channel=True),
    "FULLY_CONNECTED one scale": fully_connected(per_channel=False, activation=1),
    **{
        f"{kind} {list(other)}": of_two(kind, other, activation)
        for kind in ("ADD", "SUB", "MUL")
        for other, activation in (((1, 5, 4, 6), 3), ((6,), 0), ((), 1))
    },
    **{
        f"{kind} {same}": pool(kind, same=same, activation=int(same))
        for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D")
        for same in (True, False)
    },
    **{
        f"{kind} {axes} {keeps}": reduce(kind, axes, keeps=keeps)
        for kind in ("MEAN", "REDUCE_MAX")
        for axes in ([1, 2], [3], [1])
        for keeps in (True, False)
    },
    "LOGISTIC": unary("LOGISTIC", output=(1 / 256, -128)),
    "TANH": unary("TANH", output=(1 / 128, 0)),
    "RELU": unary("RELU"),
    "RELU6": unary("RELU6"),
    "RELU_N1_TO_1": unary("RELU_N1_TO_1", version=1),
    "LEAKY_RELU": unary("LEAKY_RELU", "LeakyReluOptions", alpha=0.1),
    "HARD_SWISH": unary("HARD_SWISH", "HardSwishOptions", version=1),
    "EXP": unary("EXP", "ExpOptions"),
    "ABS": unary("ABS"),
    "QUANTIZE": unary("QUANTIZE", "QuantizeOptions"),
    "SOFTMAX": unary("SOFTMAX", "SoftmaxOptions", (1 / 256, -128), shape=(1, 3, 7, 20), beta=1.0),
    "BATCH_MATMUL": batch_matmul(turned=False),
    "BATCH_MATMUL turned": batch_matmul(turned=True),
    **{f"CONCATENATION {axis}": concatenation(axis) for axis in (1, 2, 3)},
    "RESHAPE": moved("RESHAPE", [1, 4, 4, 3], [1, 48], [[1, 48]], "ReshapeOptions", version=1),
    "TRANSPOSE": moved("TRANSPOSE", [1, 4, 5, 3], [1, 3, 4, 5], [[0, 3, 1, 2]]),
    "PAD": moved("PAD", [1, 4, 4, 3], [1, 7, 6, 3], [[[0, 0], [1, 2], [1, 1], [0, 0]]]),
    "MIRROR_PAD": moved(
        "MIRROR_PAD", [1, 4, 3], [1, 7, 3], [[[0, 0], [1, 2], [0, 0]]], "MirrorPadOptions", mode=0
    ),
    "SLICE": moved("SLICE", [1, 4, 5, 3], [1, 2, 5, 2], [[0, 1, 0, 1], [1, 2, -1, 2]]),
    "STRIDED_SLICE": moved(
        "STRIDED_SLICE",
        [1, 6, 5, 3],
        [1, 3, 5, 2],
        [[0, 1, 0, 0], [1, 6, 5, 2], [1, 2, 1, 1]],
        "StridedSliceOptions",
    ),
    "STRIDED_SLICE shrunk": moved(
        "STRIDED_SLICE",
        [1, 6, 5, 3],
        [1, 5, 3],
        [[0, -1, 0, 0], [1, 0, 5, 3], [1, 1, 1, 1]],
        "StridedSliceOptions",
        shrinkAxisMask=2,
    ),
    "SPLIT": moved(
        "SPLIT", [1, 4, 6, 3], [1, 4, 3, 3], [2], "SplitOptions", outputs=2, leads=True, numSplits=2
    ),
    "SPLIT_V": moved(
        "SPLIT_V", [1, 4, 6, 3], [1, 4, 3, 3], [[3, 3], 2], "SplitVOptions", outputs=2, numSplits=2
    ),
    "UNPACK": moved("UNPACK", [1, 4, 3], [1, 3], (), "UnpackOptions", outputs=4, num=4, axis=1),
    "GATHER": moved("GATHER", [5, 4], [3, 4], [[0, 2, 4]], "GatherOptions", axis=0),
    "TILE": moved("TILE", [2, 3], [4, 3], [[2, 1]]),
    "SPACE_TO_DEPTH": moved(
        "SPACE_TO_DEPTH", [1, 4, 6, 2], [1, 2, 3, 8], (), "SpaceToDepthOptions", blockSize=2
    ),
    "DEPTH_TO_SPACE": moved(
        "DEPTH_TO_SPACE",
        [1, 2, 3, 8],
        [1, 4, 6, 2],
        (),
        "DepthToSpaceOptions",
        version=1,
        blockSize=2,
    ),
    **{
        f"RESIZE_NEAREST_NEIGHBOR {name}": moved(
            "RESIZE_NEAREST_NEIGHBOR",
            [1, 4, 3, 2],
            [1, 7, 6, 2],
            [[7, 6]],
            "ResizeNearestNeighborOptions",
            **{name: True},
        )
        for name in ("alignCorners", "halfPixelCenters")
    },
    **{
        f"RESIZE_BILINEAR {name}": moved(
            "RESIZE_BILINEAR",
            [1, 4, 3, 2],
            [1, 9, 5, 2],
            [[9, 5]],
            "ResizeBilinearOptions",
            **options,
        )
        for name, options in (
            ("align corners", {"alignCorners": True}),
            ("half pixels", {"halfPixelCenters": True}),
            ("asymmetric", {}),
        )
    },
    "QUANTIZE and back": quantised_and_back,
    "SPACE_TO_BATCH_ND": moved(
        "SPACE_TO_BATCH_ND", [1, 5, 4, 3], [6, 2, 2, 3], [[3, 2], [[1, 0], [0, 0]]]
    ),
    "BATCH_TO_SPACE_ND": moved(
        "BATCH_TO_SPACE_ND", [6, 2, 2, 3], [1, 5, 3, 3], [[3, 2], [[1, 0], [0, 1]]]
    ),
    "open batch": open_batch,
    "passed through": passed_through,
    "block": block,
}
"""Integers that have to be the same, and reals that are made of such."""

NEAR: Mapping[str, Make] = {
    "GELU": unary("GELU", "GeluOptions"),
    "float CONV_2D": of_reals(
        "CONV_2D",
        [[1, 8, 8, 3]],
        [1, 4, 4, 5],
        [(5, 3, 3, 3), (5,)],
        "Conv2DOptions",
        strideW=2,
        strideH=2,
        fusedActivationFunction=3,
    ),
    "float FULLY_CONNECTED": of_reals(
        "FULLY_CONNECTED", [[2, 8]], [2, 5], [(5, 8), (5,)], "FullyConnectedOptions"
    ),
    "float SOFTMAX": of_reals("SOFTMAX", [[2, 8]], [2, 8], (), "SoftmaxOptions", beta=2.0),
    "float PRELU": of_reals("PRELU", [[1, 4, 4, 3]], [1, 4, 4, 3], [(1, 1, 3)]),
    "float SQUARED_DIFFERENCE": of_reals("SQUARED_DIFFERENCE", [[1, 4, 4, 3], [3]], [1, 4, 4, 3]),
    "float L2_NORMALIZATION": of_reals("L2_NORMALIZATION", [[2, 8]], [2, 8], (), "L2NormOptions"),
    "float MEAN": of_reals("MEAN", [[1, 4, 4, 3]], [1, 3], [[1, 2]], "ReducerOptions"),
    "float LOG_SOFTMAX": of_reals("LOG_SOFTMAX", [[2, 8]], [2, 8], (), "LogSoftmaxOptions"),
}
"""Within a step of integers, or 1e-4 of the largest magnitude of reals."""


def written(make: Make, folder: Path, seed: int = 0) -> Path:
    """Write the model of a case."""
    case = Case(seed)
    inputs, outputs = make(case)
    return case.write(folder / f"case{seed}.tflite", inputs, outputs)
