"""Scales the weights of a network so that its signals neither die, nor grow, nor saturate.

Layer by layer, from the input on, random inputs are run through the network: the weights are
multiplied so that the layer's output has the deviation asked for (layer-sequential unit variance,
Mishkin and Matas, "All you need is a good init", ICLR 2016), and where a bias is added, it cancels
each channel's mean, which is what BatchNormalization folded into the layer would do.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Feed = Mapping[str, NDArray[np.generic]]


def calibrate(model: onnx.ModelProto, feeds: Sequence[Feed], deviation: float) -> dict[str, float]:
    """Scale every Conv, Gemm and MatMul with constant weights, in place.

    Returns
    -------
    dict
        The factor by which each weight was multiplied. Factors and biases are rounded, so that
        small differences between computers do not show.
    """
    tensors = {t.name: t for t in model.graph.initializer}
    factors: dict[str, float] = {}
    for node in model.graph.node:
        if node.op_type in {"Conv", "Gemm", "MatMul"} and node.input[1] in tensors:
            factors[node.input[1]] = _calibrate_layer(model, node, tensors, feeds, deviation)
    return factors


def _calibrate_layer(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    tensors: Mapping[str, TensorProto],
    feeds: Sequence[Feed],
    deviation: float,
) -> float:
    outputs = _run_up_to(model, node.output[0], feeds)
    # One row for each output channel: axis 1 of a Conv's output, the last of the others'.
    channels = np.moveaxis(outputs, 2 if node.op_type == "Conv" else -1, 0)
    channels = channels.reshape(channels.shape[0], -1).astype(np.float64)
    bias = _bias(model.graph, node, tensors)
    means = channels.mean(axis=1) if bias is not None else np.zeros(len(channels))
    spread = float(np.sqrt(((channels - means[:, None]) ** 2).mean()))
    factor = float(f"{deviation / spread:.3g}")
    weight = tensors[node.input[1]]
    _set(weight, numpy_helper.to_array(weight) * np.float32(factor))
    if bias is not None:
        old = numpy_helper.to_array(bias)
        # A bias that the layer itself adds is part of the outputs seen; it is not scaled.
        inside = old if bias.name in node.input else 0
        _set(bias, np.round(old - factor * (means - inside), 2).astype(np.float32))
    return factor


def _bias(
    graph: onnx.GraphProto, layer: onnx.NodeProto, tensors: Mapping[str, TensorProto]
) -> TensorProto | None:
    """Return the vector that the layer, or the Add that follows it, adds to each channel."""
    if len(layer.input) == 3:
        return tensors.get(layer.input[2])
    followers = [node for node in graph.node if layer.output[0] in node.input]
    if [node.op_type for node in followers] != ["Add"]:
        return None
    vectors = [tensors[name] for name in followers[0].input if name in tensors]
    return next((tensor for tensor in vectors if len(tensor.dims) == 1), None)


def _run_up_to(model: onnx.ModelProto, output: str, feeds: Sequence[Feed]) -> NDArray[np.generic]:
    """Return the value for all inputs, stacked along a new first axis."""
    truncated = onnx.ModelProto()
    truncated.CopyFrom(model)
    del truncated.graph.output[:]
    truncated.graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(
        truncated.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return np.stack([session.run([output], dict(feed))[0] for feed in feeds])


def _set(tensor: TensorProto, values: NDArray[np.generic]) -> None:
    tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
