"""A small U-Net, quantised by onnxruntime."""

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

SIZE = 32


def write_int8_unet(path: Path) -> Path:
    """Write a U-Net of two levels in QDQ form: int8, one scale for each output channel."""
    from onnxruntime import quantization

    random, nodes, weights = np.random.default_rng(0), [], []

    def conv(data: str, output: str, inputs: int, outputs: int, kind: str = "Conv") -> None:
        rows = (outputs, inputs, 3, 3) if kind == "Conv" else (inputs, outputs, 2, 2)
        values = random.normal(size=rows).astype(np.float32) / 5
        weights.append(numpy_helper.from_array(values, f"w_{output}"))
        how = {"pads": [1] * 4} if kind == "Conv" else {"strides": [2, 2]}
        nodes.append(helper.make_node(kind, [data, f"w_{output}"], [f"c_{output}"], **how))
        nodes.append(helper.make_node("Relu", [f"c_{output}"], [output]))

    conv("x", "high", 3, 16)
    conv("high", "skip", 16, 16)
    nodes.append(
        helper.make_node("MaxPool", ["skip"], ["half"], kernel_shape=[2] * 2, strides=[2] * 2)
    )
    conv("half", "low", 16, 32)
    conv("low", "up", 32, 16, "ConvTranspose")
    nodes.append(helper.make_node("Concat", ["skip", "up"], ["both"], axis=1))
    conv("both", "y", 32, 8)
    ends = (("x", (1, 3, SIZE, SIZE)), ("y", (1, 8, SIZE, SIZE)))
    given, found = ([helper.make_tensor_value_info(n, 1, shape)] for n, shape in ends)
    graph = helper.make_graph(nodes, "unet", given, found, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feeds = iter([{"x": random.normal(size=ends[0][1]).astype(np.float32)} for _ in range(4)])
    reads = {"get_next": lambda _: next(feeds, None)}
    reader = type("Images", (quantization.CalibrationDataReader,), reads)
    onnx.save(model, path.with_suffix(".f32.onnx"))
    quantization.quantize_static(
        path.with_suffix(".f32.onnx"),
        path,
        reader(),
        per_channel=True,
        activation_type=quantization.QuantType.QInt8,
    )
    return path
