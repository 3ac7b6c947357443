"""VGG16 and MobileNetV1 as ONNX models of nothing but shapes, one node after another."""

from itertools import pairwise

from onnx import ModelProto, NodeProto, TensorProto
from onnx.helper import make_graph, make_model, make_node, make_tensor_value_info

PICTURE = (1, 3, 224, 224)
VGG16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
MOBILENET = (
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
    *((512, 1),) * 5,
    *((1024, 2), (1024, 1)),
)
"""Channels of a pointwise convolution, and the stride of the depthwise one before it."""


class _Chain:
    """Takes down nodes, each of which reads what the one before it writes."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._weights: list[TensorProto] = []
        self._last = "picture"

    def add(self, kind: str, *weights: tuple[int, ...], **attributes: object) -> None:
        """Append a node with constants of these shapes."""
        number = len(self._nodes)
        names = [f"weights{number}_{position}" for position in range(len(weights))]
        for name, shape in zip(names, weights, strict=True):
            self._weights.append(TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT))
        inputs, self._last = [self._last, *names], f"value{number}"
        self._nodes.append(make_node(kind, inputs, [self._last], f"node{number}", **attributes))

    def model(self, name: str) -> ModelProto:
        """Return the model; its constants have shapes and no values."""
        picture = make_tensor_value_info("picture", TensorProto.FLOAT, PICTURE)
        result = make_tensor_value_info(self._last, TensorProto.FLOAT, (1, 1000))
        return make_model(make_graph(self._nodes, name, [picture], [result], self._weights))


def vgg16() -> ModelProto:
    """Return configuration D of Simonyan and Zisserman."""
    made, before = _Chain(), 3
    for block in VGG16:
        for channels in block:
            made.add("Conv", (channels, before, 3, 3), (channels,), pads=[1] * 4)
            made.add("Relu")
            before = channels
        made.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    made.add("Flatten")
    for before, after in pairwise((25_088, 4096, 4096, 1000)):
        made.add("Gemm", (before, after), (after,))
        made.add("Relu" if after != 1000 else "Softmax")
    return made.model("vgg16")


def mobilenet_v1() -> ModelProto:
    """Return MobileNetV1 of width 1, of which each convolution has a normalisation and a Relu."""
    made = _Chain()
    _convolution(made, 3, 32, 3, 2, 1)
    before = 32
    for channels, stride in MOBILENET:
        _convolution(made, before, before, 3, stride, before)
        _convolution(made, before, channels, 1, 1, 1)
        before = channels
    made.add("GlobalAveragePool")
    made.add("Flatten")
    made.add("Gemm", (1024, 1000), (1000,))
    made.add("Softmax")
    return made.model("mobilenet_v1")


def _convolution(
    made: _Chain, before: int, channels: int, kernel: int, stride: int, groups: int
) -> None:
    weights = (channels, before // groups, kernel, kernel)
    made.add("Conv", weights, strides=[stride] * 2, pads=[kernel // 2] * 4, group=groups)
    made.add("BatchNormalization", *[(channels,)] * 4)
    made.add("Relu")
