"""Chains of convolutions on large images: models made by a script, with weights by shape only.

Usage: python -m benchmarks.tiles.chains FOLDER [NAME ...]

Results are far larger than scratchpads, of which a few rows of each would do: what more than the
image in, the result out and the weights passes through DRAM is for the lack of a better plan.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHAINS = {
    "plain4": "3 16 16 16 3",
    "plain8": "3 16 16 16 16 16 16 16 3",
    "plain16": "3 16 16 16 16 16 16 16 16 16 16 16 16 16 16 16 3",
    "wide8": "32 32 32 32 32 32 32 32 32",
    "residual8": "3 16 16 16+ 16 16+ 16 16+ 3",
    "branch8": "3 16 16 16 16+ 16 16 16& 3",
    "strided8": "3 16 16 16/ 32 32 32 32 8",
}
"""Channels of the image, then of each 3x3 convolution, which a Relu follows.

``/`` halves rows and columns; ``+`` adds what came in two convolutions before; ``&`` has a second
convolution read the same, and joins both along the channels.
"""

APART = {
    "residual16": "3 16 16 16+ 16 16+ 16 16+ 16 16+ 16 16+ 16 16+ 16 16+ 3",
    "strided6": "3 24 24/ 24 24+ 24& 12",
    "wide12": "16 24 24 24 24 24 24 24 24 24 24 24 16",
}
"""Nothing is chosen with these in view."""


@dataclass(slots=True)
class _Graph:
    nodes: list[onnx.NodeProto]
    weights: list[TensorProto]

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def convolution(self, x: str, depth: int, channels: int, stride: int) -> str:
        weight = numpy_helper.from_array(
            np.full((channels, depth, 3, 3), 0.01, np.float32), f"weight{len(self.nodes)}"
        )
        self.weights.append(weight)
        conv = self.add("Conv", x, weight.name, strides=[stride, stride], pads=[1, 1, 1, 1])
        return self.add("Relu", conv)


def chain(spec: str, width: int, height: int) -> onnx.ModelProto:
    """Return a chain of convolutions on an image of so many columns and rows."""
    image, *stages = spec.split()
    graph = _Graph([], [])
    results, depth = ["image"], int(image)
    for stage in stages:
        channels, x = int(stage.rstrip("/+&")), results[-1]
        found = graph.convolution(x, depth, channels, 2 if "/" in stage else 1)
        if "+" in stage:
            found = graph.add("Add", found, results[-2])
        if "&" in stage:
            other = graph.convolution(x, depth, channels, 1)
            found = graph.add("Concat", found, other, axis=1)
        depth = 2 * channels if "&" in stage else channels
        results.append(found)
    shape = (1, int(image), height, width)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "chain",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(results[-1], TensorProto.FLOAT, None)],
            graph.weights,
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def main() -> None:
    """Write the chains that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=[*CHAINS])
    parser.add_argument("--size", default="960x540", help="columns x rows (default: %(default)s)")
    given = parser.parse_args()
    width, height = map(int, given.size.split("x"))
    for name in given.names:
        model = chain({**CHAINS, **APART}[name], width, height)
        given.folder.mkdir(parents=True, exist_ok=True)
        onnx.save(model, given.folder / f"{name}_{given.size}.onnx")


if __name__ == "__main__":
    main()
