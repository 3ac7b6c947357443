"""Print what each model of a folder costs: ``python measure.py [FOLDER]``.

The table is the one in ``README.md``.
"""

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnxscript.optimizer
from onnx import NodeProto, helper

DIMENSIONS = {"batch": 1, "sequence": 64}
"""What open dimensions are bound to."""

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What a network costs.

    Parameters
    ----------
    macs
        Multiply-accumulates of convolutions, matrix products and recurrent layers in one inference.
    parameters
        As the model's metadata state them: BatchNormalization counts with the vectors it had, and
        quantisation adds none.
    bytes
        Size of the file.
    """

    macs: int
    parameters: int
    bytes: int


def measure(path: Path) -> Measures:
    """Measure one model file."""
    model = onnx.load(path)
    bound = _bind(model)
    shapes = _shapes(bound)
    macs = sum(MACS[n.op_type](n, shapes) for n in bound.graph.node if n.op_type in MACS)
    parameters = next(int(p.value) for p in model.metadata_props if p.key == "parameters")
    return Measures(macs=macs, parameters=parameters, bytes=path.stat().st_size)


def _bind(model: onnx.ModelProto) -> onnx.ModelProto:
    """Bind open dimensions, and fold what depends on them."""
    infos = (*model.graph.input, *model.graph.output)
    dims = [dim for info in infos for dim in info.type.tensor_type.shape.dim if dim.dim_param]
    if not dims:
        return model
    for dim in dims:
        dim.dim_value = DIMENSIONS[dim.dim_param]
    del model.graph.value_info[:]
    return onnxscript.optimizer.optimize(model)


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
    shapes = {
        info.name: tuple(d.dim_value for d in info.type.tensor_type.shape.dim)
        for info in (*graph.input, *graph.output, *graph.value_info)
    }
    return shapes | {t.name: tuple(t.dims) for t in graph.initializer}


def _conv(node: NodeProto, shapes: Shapes) -> int:
    return math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[1]][1:])


def _gemm(node: NodeProto, shapes: Shapes) -> int:
    transposed = any(a.name == "transA" and a.i for a in node.attribute)
    return math.prod(shapes[node.output[0]]) * shapes[node.input[0]][0 if transposed else 1]


def _matmul(node: NodeProto, shapes: Shapes) -> int:
    return math.prod(shapes[node.output[0]]) * shapes[node.input[0]][-1]


def _recurrent(node: NodeProto, shapes: Shapes) -> int:
    steps, batch, _ = shapes[node.input[0]]
    return steps * batch * sum(math.prod(shapes[name]) for name in node.input[1:3])


MACS: Mapping[str, Callable[[NodeProto, Shapes], int]] = {
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "LSTM": _recurrent,
    "GRU": _recurrent,
}


def row(path: Path) -> str:
    """Return the model's numbers as they stand in the README's table."""
    m = measure(path)
    graph = onnx.load(path).graph
    inputs = " ".join(_describe(info) for info in graph.input)
    return f"| `{path.name}` | {inputs} | {m.macs:,} | {m.parameters:,} | {m.bytes:,} |"


def _describe(info: onnx.ValueInfoProto) -> str:
    tensor = info.type.tensor_type
    kind = helper.tensor_dtype_to_np_dtype(tensor.elem_type).name
    shape = " × ".join(d.dim_param or str(d.dim_value) for d in tensor.shape.dim)
    return f"{info.name}: {kind} {shape}"


def main() -> None:
    """Print a row for each model of the folder given, or of this one."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for path in sorted(folder.glob("*.onnx")):
        print(row(path))


if __name__ == "__main__":
    main()
