"""What onnxruntime's quantisers and its conversion to float16 make of small networks."""

import logging
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.transformers.float16 import convert_float_to_float16

SEED = 0

GRAPHS = {
    "image": """image (float[1,3,16,16] x) => (float[1,10] y) {
        conv = Conv<pads=[1, 1, 1, 1], strides=[2, 2]>(x, a) low = Relu(conv)
        each = Conv<group=16, pads=[1, 1, 1, 1]>(low, b)
        zero = Constant<value = float {0.0}>() six = Constant<value = float {6.0}>()
        clipped = Clip(each, zero, six) sum = Add(clipped, low)
        pooled = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(sum)
        up = ConvTranspose<strides=[2, 2]>(pooled, c) gate = Sigmoid(up)
        both = Concat<axis=1>(sum, gate) mean = GlobalAveragePool(both)
        flat = Flatten(mean) y = Gemm<transB=1>(flat, d, e)
    }""",
    "text": """text (float[1,16,32] x) => (float[1,16,32] y) {
        all = MatMul(x, a) biased = Add(all, b)
        q, k, v = Split<axis=2, num_outputs=3>(biased) kt = Transpose<perm=[0, 2, 1]>(k)
        scores = MatMul(q, kt) weights = Softmax<axis=-1>(scores)
        mixed = MatMul(weights, v) more = Add(mixed, x)
        hidden = MatMul(more, c) active = LeakyRelu<alpha=0.1>(hidden)
        down = MatMul(active, d) sum = Add(down, more) y = LayerNormalization(sum, e)
    }""",
}
"""A network of convolutions and one of matrix products; their weights are a, b, c, d, e."""

WEIGHTS: dict[str, list[tuple[int, ...]]] = {
    "image": [(16, 3, 3, 3), (16, 1, 3, 3), (16, 8, 2, 2), (10, 24), (10,)],
    "text": [(32, 96), (96,), (32, 64), (64, 32), (32,)],
}


def network(name: str) -> onnx.ModelProto:
    """Return a network with random weights."""
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {GRAPHS[name]}')
    random = np.random.default_rng(SEED)
    for weight, shape in zip("abcde", WEIGHTS[name], strict=True):
        values = (random.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, weight))
    return onnx.shape_inference.infer_shapes(model)


class RandomInputs(CalibrationDataReader):
    """Gives a few random inputs for a network."""

    def __init__(self, model: onnx.ModelProto) -> None:
        shape = [one.dim_value for one in model.graph.input[0].type.tensor_type.shape.dim]
        random = np.random.default_rng(SEED)
        self._left = [random.standard_normal(shape).astype(np.float32) for _ in range(4)]

    def get_next(self) -> dict[str, Any] | None:
        """Return one that was not given yet."""
        return {"x": self._left.pop()} if self._left else None


def static(model: onnx.ModelProto, path: Path, kinds: str, **options: Any) -> None:
    """Quantise with calibration; ``kinds`` are those of activations and of weights."""
    values, weights = (QuantType[f"Q{one}"] for one in kinds.split())
    types = {"activation_type": values, "weight_type": weights}
    quantize_static(model, path, RandomInputs(model), **types, **options)


def few_bits(model: onnx.ModelProto, path: Path, **options: Any) -> None:
    """Give the weights four bits, and a scale for each block of 16."""
    quantiser = MatMulNBitsQuantizer(model, block_size=16, **options)
    quantiser.process()
    onnx.save(quantiser.model.model, path)


def halves(model: onnx.ModelProto, path: Path, **options: Any) -> None:
    """Make it compute in float16."""
    onnx.save(convert_float_to_float16(model, **options), path)


CHANNELS = {"per_channel": True}
OPERATORS, PAIRS = ({"quant_format": QuantFormat[one]} for one in ("QOperator", "QDQ"))

WAYS: dict[str, tuple[Callable[..., None], dict[str, Any]]] = {
    "s8s8_channels": (static, CHANNELS | {"kinds": "Int8 Int8"}),
    "s8s8": (static, {"kinds": "Int8 Int8"}),
    "u8s8_channels": (static, CHANNELS | {"kinds": "UInt8 Int8"}),
    "u8u8": (static, {"kinds": "UInt8 UInt8"}),
    "s8s8_even": (static, {"kinds": "Int8 Int8", "extra_options": {"ActivationSymmetric": True}}),
    "u8s8_reduced": (static, CHANNELS | {"kinds": "UInt8 Int8", "reduce_range": True}),
    "s16s8": (static, CHANNELS | {"kinds": "Int16 Int8"}),
    "u16u8": (static, {"kinds": "UInt16 UInt8"}),
    "s8s4": (static, {"kinds": "Int8 Int4"}),
    "u8s8_operators": (static, CHANNELS | OPERATORS | {"kinds": "UInt8 Int8"}),
    "s8s8_operators": (static, OPERATORS | {"kinds": "Int8 Int8"}),
    "u8u8_operators": (static, OPERATORS | {"kinds": "UInt8 UInt8"}),
    "dynamic_s8": (quantize_dynamic, {"weight_type": QuantType.QInt8}),
    "dynamic_u8_channels": (quantize_dynamic, CHANNELS | {"weight_type": QuantType.QUInt8}),
    "4_bits_even_pairs": (few_bits, PAIRS | {"is_symmetric": True}),
    "float16": (halves, {}),
    "float16_inside": (halves, {"keep_io_types": True}),
}
"""Of quantising a network, with their options."""


def quantised(folder: Path) -> Iterator[tuple[str, Path | None, str]]:
    """Write every network; yield its name and file, or why there is none."""
    logging.disable(logging.WARNING)
    for kind, (name, (write, options)) in product(GRAPHS, WAYS.items()):
        path = folder / f"{kind}-{name}.onnx"
        try:
            write(network(kind), path, **options)
        except Exception as error:  # The library raises its own.
            yield path.stem, None, f"{type(error).__name__}: {error}"
        else:
            yield path.stem, path, ""
