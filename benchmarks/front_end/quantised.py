"""What onnxruntime's quantisers and its conversion to float16 make of small networks."""

import logging
from collections.abc import Callable, Iterator
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

WEIGHTS = {
    "image": {
        **{"a": (16, 3, 3, 3), "b": (16, 1, 3, 3), "c": (16, 8, 2, 2)},
        **{"d": (10, 24), "e": (10,)},
    },
    "text": {"a": (32, 96), "b": (96,), "c": (32, 64), "d": (64, 32), "e": (32,)},
}

GRAPHS = {
    "image": """image (float[1,3,16,16] x) => (float[1,10] y) {
        conv = Conv<pads=[1, 1, 1, 1], strides=[2, 2]>(x, a)
        low = Relu(conv)
        each = Conv<group=16, pads=[1, 1, 1, 1]>(low, b)
        zero = Constant<value = float {0.0}>()
        six = Constant<value = float {6.0}>()
        clipped = Clip(each, zero, six)
        sum = Add(clipped, low)
        pooled = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(sum)
        up = ConvTranspose<strides=[2, 2]>(pooled, c)
        gate = Sigmoid(up)
        both = Concat<axis=1>(sum, gate)
        mean = GlobalAveragePool(both)
        flat = Flatten(mean)
        y = Gemm<transB=1>(flat, d, e)
    }""",
    "text": """text (float[1,16,32] x) => (float[1,16,32] y) {
        all = MatMul(x, a)
        biased = Add(all, b)
        q, k, v = Split<axis=2, num_outputs=3>(biased)
        kt = Transpose<perm=[0, 2, 1]>(k)
        scores = MatMul(q, kt)
        weights = Softmax<axis=-1>(scores)
        mixed = MatMul(weights, v)
        more = Add(mixed, x)
        hidden = MatMul(more, c)
        active = LeakyRelu<alpha=0.1>(hidden)
        down = MatMul(active, d)
        sum = Add(down, more)
        y = LayerNormalization(sum, e)
    }""",
}
"""A network of convolutions and one of matrix products."""

S8, U8, S16, U16 = QuantType.QInt8, QuantType.QUInt8, QuantType.QInt16, QuantType.QUInt16
OPERATORS = QuantFormat.QOperator

STATIC: dict[str, dict[str, Any]] = {
    "qdq_s8s8_channel": dict(activation_type=S8, per_channel=True),
    "qdq_s8s8_tensor": dict(activation_type=S8),
    "qdq_u8s8_channel": dict(activation_type=U8, per_channel=True),
    "qdq_u8u8_tensor": dict(activation_type=U8, weight_type=U8),
    "qdq_symmetric": dict(activation_type=S8, extra_options={"ActivationSymmetric": True}),
    "qdq_reduced": dict(activation_type=U8, reduce_range=True, per_channel=True),
    "qdq_s16s8": dict(activation_type=S16, per_channel=True),
    "qdq_u16u8": dict(activation_type=U16, weight_type=U8),
    "qdq_s8s4": dict(activation_type=S8, weight_type=QuantType.QInt4),
    "operators_u8s8": dict(activation_type=U8, quant_format=OPERATORS, per_channel=True),
    "operators_s8s8": dict(activation_type=S8, quant_format=OPERATORS),
    "operators_u8u8": dict(activation_type=U8, weight_type=U8, quant_format=OPERATORS),
}
"""Options of ``quantize_static``; each is tried on both networks."""


class RandomInputs(CalibrationDataReader):
    """Gives a few random inputs for a network."""

    def __init__(self, model: onnx.ModelProto) -> None:
        shape = [one.dim_value for one in model.graph.input[0].type.tensor_type.shape.dim]
        random = np.random.default_rng(SEED)
        self._left = [random.standard_normal(shape).astype(np.float32) for _ in range(4)]

    def get_next(self) -> dict[str, Any] | None:
        """Return one that was not given yet."""
        return {"x": self._left.pop()} if self._left else None


def network(name: str) -> onnx.ModelProto:
    """Return a network with random weights."""
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {GRAPHS[name]}')
    random = np.random.default_rng(SEED)
    for weight, shape in WEIGHTS[name].items():
        values = (random.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, weight))
    return onnx.shape_inference.infer_shapes(model)


def in_few_bits(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """Return a network whose weights have a scale for each block of 16."""
    quantiser = MatMulNBitsQuantizer(model, block_size=16, **options)
    quantiser.process()
    return quantiser.model.model


def quantised(folder: Path) -> Iterator[tuple[str, Path | None, str]]:
    """Write every network; yield its name and file, or why there is none."""
    logging.disable(logging.WARNING)
    makers: dict[str, Callable[[Path], None]] = {}

    def dynamic(kind: str, name: str, **options: Any) -> None:
        makers[f"{kind}-dynamic_{name}"] = lambda to: quantize_dynamic(network(kind), to, **options)

    def converted(kind: str, name: str, convert: Callable[..., Any], **options: Any) -> None:
        makers[f"{kind}-{name}"] = lambda to: onnx.save(convert(network(kind), **options), to)

    for kind in GRAPHS:
        for name, options in STATIC.items():
            makers[f"{kind}-{name}"] = lambda to, kind=kind, options=options: quantize_static(
                network(kind), to, RandomInputs(network(kind)), **options
            )
    dynamic("text", "s8", weight_type=S8)
    dynamic("text", "u8_channel", weight_type=U8, per_channel=True)
    converted("text", "4_bits", in_few_bits)
    converted(
        "text", "4_bits_symmetric_qdq", in_few_bits, is_symmetric=True, quant_format=QuantFormat.QDQ
    )
    converted("image", "float16", convert_float_to_float16)
    converted("text", "float16_inside", convert_float_to_float16, keep_io_types=True)
    for name, make in makers.items():
        path = folder / f"{name}.onnx"
        try:
            make(path)
        except Exception as error:  # The library raises its own.
            yield name, None, f"{type(error).__name__}: {error}"
        else:
            yield name, path, ""
