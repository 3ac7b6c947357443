"""SET's published example: ResNet-50 on a mesh of 8 x 8 cores, 64 images at a time.

SET counts a byte for each element of every tensor and works with shapes alone, so the network here
has shapes and no values, and its tensors are declared as int8 after it has been read.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower
from spmilp.problem.problem import Problem
from spmilp.source import load
from spmilp.tile_selection.first_choice import choose_tilings

MACHINE = "set_8x8"
BATCH = 64


def resnet50_on_mesh(data: Path) -> Problem:
    """ResNet-50, batch 64, one byte per element; it needs no data.

    Tile sizes are the first choice: evaluating others would take minutes each.
    """
    with write_resnet50(BATCH) as folder:
        network, target = load(Path(folder) / "resnet50.onnx", MACHINE)
    network = in_bytes(network)
    tilings = choose_tilings(network, target.machine)
    sources = (("model", network.sha256), ("machine", target.sha256))
    return lower(network, target.machine, tilings, sources=sources)


def in_bytes(network: Network) -> Network:
    """Return a network of the same shapes whose elements are bytes."""
    byte = np.dtype(np.int8)
    tensors = {name: replace(tensor, dtype=byte) for name, tensor in network.tensors.items()}
    return replace(network, tensors=tensors)


STAGES = ((3, 64, 256), (4, 128, 512), (6, 256, 1024), (3, 512, 2048))
"""Blocks, inner and outer channels of each stage."""


def resnet50(batch: int) -> onnx.ModelProto:
    """Return the network of SET-Scheduling-Project/SET-ISCA2023, ``src/nns/resnet.cpp``.

    Strides stand in the first convolution of a block; convolutions have neither bias nor
    activation, for SET counts none; the Relu after an addition stands for the second of the two
    operations that SET counts for each of its elements.
    """
    graph = _Graph()
    data = graph.convolution("input", "conv1", 3, 64, 7, 2)
    data = graph.add("MaxPool", "pool1", [data], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels, stride = 64, 1
    for stage, (blocks, inner, outer) in enumerate(STAGES, start=2):
        for block in range(blocks):
            name = f"conv_{stage}_{block}"
            left = graph.convolution(data, f"{name}_a", channels, inner, 1, stride)
            left = graph.convolution(left, f"{name}_b", inner, inner, 3, 1)
            left = graph.convolution(left, f"{name}_c", inner, outer, 1, 1)
            if block == 0:
                data = graph.convolution(data, f"conv_{stage}_br", channels, outer, 1, stride)
            data = graph.add("Add", f"{name}_res", [data, left])
            data = graph.add("Relu", f"{name}_relu", [data])
            channels, stride = outer, 1
        stride = 2
    data = graph.add("GlobalAveragePool", "pool5", [data])
    data = graph.add("Flatten", "flatten", [data])
    graph.add("Gemm", "fc", [data, graph.weight("fc_weight", 1000, channels)], transB=1)
    return graph.model(batch)


def write_resnet50(batch: int) -> "TemporaryDirectory[str]":
    """Return a folder that holds the network as ``resnet50.onnx``, until it is closed."""
    folder = TemporaryDirectory()
    onnx.save(resnet50(batch), Path(folder.name) / "resnet50.onnx")
    return folder


class _Graph:
    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[TensorProto] = []

    def convolution(
        self, data: str, name: str, channels: int, out: int, kernel: int, stride: int
    ) -> str:
        weight = self.weight(f"{name}_weight", out, channels, kernel, kernel)
        pads = [kernel // 2] * 4
        return self.add("Conv", name, [data, weight], strides=[stride, stride], pads=pads)

    def add(self, kind: str, name: str, inputs: list[str], **attributes: Any) -> str:
        self._nodes.append(helper.make_node(kind, inputs, [f"{name}_out"], name, **attributes))
        return f"{name}_out"

    def weight(self, name: str, *shape: int) -> str:
        """Add a constant that has a shape and no values."""
        self._weights.append(TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape))
        return name

    def model(self, batch: int) -> onnx.ModelProto:
        last = self._nodes[-1].output[0]
        graph = helper.make_graph(
            self._nodes,
            "resnet50",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, [batch, 3, 224, 224])],
            [helper.make_tensor_value_info(last, TensorProto.FLOAT, [batch, 1000])],
            self._weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
