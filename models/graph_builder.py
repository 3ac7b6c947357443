"""Builds ONNX graphs layer by layer, with random weights under which signals neither die nor grow.

Every value carries the mean and the mean square that its elements have about. BatchNormalization
takes its statistics from them, so that a network with random weights behaves like a trained one:
each channel is normalised, and about a third of what enters a Relu leaves it as zero.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from random_numbers import RandomNumbers

OPSET = 18
IR_VERSION = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A tensor of the graph and what its elements are like.

    Parameters
    ----------
    mean, square
        About the mean and the mean square of each channel (of all of them where there is one).
    """

    name: str
    shape: tuple[int, ...]
    mean: NDArray[np.float64]
    square: NDArray[np.float64]

    @property
    def variance(self) -> NDArray[np.float64]:
        """Variance of each channel."""
        return self.square - self.mean**2


class GraphBuilder:
    """Grows one graph; each method appends one layer and returns its output.

    Layers are named after their position, so that equal calls give equal files.
    """

    def __init__(self, name: str, seed: int) -> None:
        self._name = name
        self._seed = seed
        self._random = RandomNumbers(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []

    def image(self, name: str, shape: tuple[int, ...]) -> Value:
        """Add the network's input: zero mean, unit variance."""
        self._inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return Value(name=name, shape=shape, mean=np.zeros(1), square=np.ones(1))

    def conv(
        self,
        x: Value,
        channels: int,
        kernel: tuple[int, int],
        stride: int = 1,
        *,
        depthwise: bool = False,
        centred: bool = False,
        normalised: bool = True,
    ) -> Value:
        """Append a convolution with bias and TensorFlow's "same" padding.

        Where that padding is odd, the larger half lies at the bottom and at the right. ``centred``
        filters add up to zero over each input channel, so that brightness makes no difference.
        Where no BatchNormalization follows (not ``normalised``), the bias cancels what the input's
        mean contributes; else some channels would be the same for all inputs.
        """
        _, depth, *size = x.shape
        out = tuple(-(-extent // stride) for extent in size)
        spare = [
            max(0, (o - 1) * stride + k - s) for o, k, s in zip(out, kernel, size, strict=True)
        ]
        weight_shape = (channels, 1 if depthwise else depth, *kernel)
        w = self._random.he(weight_shape, math.prod(weight_shape[1:]))
        if centred:
            w = _centred(w)
        b = self._random.uniform((channels,), -0.1, 0.1)
        if not normalised:
            without_bias, _ = _through_weights(x, w, np.zeros_like(b), depthwise=depthwise)
            b = b - without_bias.astype(np.float32)
        return self._append(
            "Conv",
            [x.name, *self._constants("Conv", weight=w, bias=b)],
            (1, channels, *out),
            _through_weights(x, w, b, depthwise=depthwise),
            kernel_shape=kernel,
            strides=(stride, stride),
            pads=[pad // 2 for pad in spare] + [pad - pad // 2 for pad in spare],
            group=depth if depthwise else 1,
        )

    def dense(self, x: Value, features: int, gain: float = 1.0) -> Value:
        """Append a fully connected layer; its bias cancels what the input's mean contributes.

        ``gain`` scales the weights: averaged features differ little between random inputs.
        """
        w = self._random.he((features, x.shape[1]), x.shape[1]) * np.float32(gain)
        shift = [-math.fsum(row) for row in (w.astype(np.float64) * x.mean)]
        b = self._random.uniform((features,), -0.1, 0.1) + np.array(shift, dtype=np.float32)
        return self._append(
            "Gemm",
            [x.name, *self._constants("Gemm", weight=w, bias=b)],
            (1, features),
            _through_weights(x, w, b, depthwise=False),
            transB=1,
        )

    def batch_norm(self, x: Value) -> Value:
        """Append BatchNormalization whose statistics are close to the input's own.

        Its outputs are more often positive than not: were they centred, deep networks of random
        weights would blow small differences up, such as those that quantisation makes.
        """
        shape = (x.shape[1],)
        gamma = self._random.uniform(shape, 0.8, 1.2)
        beta = self._random.uniform(shape, 0.2, 0.6)
        mean = x.mean.astype(np.float32) + self._random.uniform(shape, -0.1, 0.1)
        variance = x.variance.astype(np.float32) * self._random.uniform(shape, 0.8, 1.25)
        names = self._constants(
            "BatchNormalization", gamma=gamma, beta=beta, mean=mean, variance=variance
        )
        mu, spread = beta.astype(np.float64), gamma.astype(np.float64)
        moments = (mu, mu**2 + spread**2)
        return self._append("BatchNormalization", [x.name, *names], x.shape, moments, epsilon=1e-3)

    def relu(self, x: Value) -> Value:
        """Append Relu. The moments are a normal distribution's, to first order in its mean."""
        deviation = np.sqrt(x.variance)
        mean = deviation / math.sqrt(2 * math.pi) + x.mean / 2
        square = x.square / 2 + x.mean * deviation * math.sqrt(2 / math.pi)
        return self._append("Relu", [x.name], x.shape, (mean, square))

    def add(self, x: Value, y: Value) -> Value:
        """Append the sum of two independent values."""
        mean = x.mean + y.mean
        return self._append(
            "Add", [x.name, y.name], x.shape, (mean, x.variance + y.variance + mean**2)
        )

    def average(self, x: Value, kernel: tuple[int, int]) -> Value:
        """Append average pooling with stride equal to the kernel, and flatten what is left."""
        out = (1, x.shape[1], x.shape[2] // kernel[0], x.shape[3] // kernel[1])
        moments = (x.mean, x.mean**2 + x.variance / math.prod(kernel))
        pooled = self._append(
            "AveragePool", [x.name], out, moments, kernel_shape=kernel, strides=kernel
        )
        return self._append("Flatten", [pooled.name], (1, math.prod(out)), moments, axis=1)

    def softmax(self, x: Value) -> Value:
        """Append Softmax over the classes."""
        share = np.full(1, 1 / x.shape[1])
        return self._append("Softmax", [x.name], x.shape, (share, share**2), axis=-1)

    def save(self, output: Value, path: Path, description: str, origin: str) -> None:
        """Write the model; equal graphs give equal bytes."""
        output_info = helper.make_tensor_value_info("output", TensorProto.FLOAT, output.shape)
        self._nodes[-1].output[0] = "output"
        graph = helper.make_graph(
            self._nodes, self._name, self._inputs, [output_info], initializer=self._weights
        )
        metadata = {
            "architecture": origin,
            "parameters": str(sum(math.prod(t.dims) for t in self._weights)),
            "weights": f"random, seed {self._seed}; not trained",
        }
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        save_model(model, path, description, metadata)

    def _append(
        self,
        kind: str,
        inputs: Sequence[str],
        shape: tuple[int, ...],
        moments: tuple[NDArray[np.float64], NDArray[np.float64]],
        **attributes: object,
    ) -> Value:
        name = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [f"{name}_out"], name, **attributes))
        return Value(name=f"{name}_out", shape=shape, mean=moments[0], square=moments[1])

    def _constants(self, kind: str, **arrays: NDArray[np.float32]) -> list[str]:
        layer = f"{kind}_{len(self._nodes)}"
        names = [f"{layer}_{role}" for role in arrays]
        self._weights += map(numpy_helper.from_array, arrays.values(), names)
        return names


def save_model(
    model: onnx.ModelProto, path: Path, description: str, metadata: Mapping[str, str]
) -> None:
    """Label a model, check it fully and write it.

    Raises
    ------
    onnx.checker.ValidationError, onnx.shape_inference.InferenceError
        If it is not a valid model.
    """
    model.ir_version = IR_VERSION
    model.producer_name = "spmilp models"
    model.producer_version = ""
    model.doc_string = f"{description}; weights: {metadata['weights']}"
    helper.set_model_props(model, dict(sorted(metadata.items())))
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def _centred(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Subtract each filter's mean over the kernel, rounded alike on every computer."""
    flat = weight.astype(np.float64).reshape(-1, math.prod(weight.shape[2:]))
    means = np.array([math.fsum(row) / row.size for row in flat])
    return (flat - means[:, None]).astype(np.float32).reshape(weight.shape)


def _through_weights(
    x: Value, weight: NDArray[np.float32], bias: NDArray[np.float32], *, depthwise: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Moments of each output channel, the inputs taken as independent.

    Sums are exact (``fsum``), so that they do not depend on how a computer orders them.
    """
    channels = weight.shape[0]
    flat = weight.astype(np.float64).reshape(channels, weight.shape[1], -1)
    axis = 0 if depthwise else 1
    each = [np.broadcast_to(m, (flat.shape[axis],)) for m in (x.mean, x.variance)]
    mean, variance = (m[:, None, None] if depthwise else m[None, :, None] for m in each)
    out_mean = np.array([math.fsum(row.flat) for row in flat * mean]) + bias
    out_variance = np.array([math.fsum(row.flat) for row in flat**2 * variance])
    return out_mean, out_variance + out_mean**2
