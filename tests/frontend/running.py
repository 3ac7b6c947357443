"""Small models as text or nodes, and the ways to compute what they say."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import numpy_helper, parser

import spmilp
from spmilp.checker.values.kernels.call import Call
from spmilp.checker.values.kernels.registry import compute
from spmilp.checker.values.nodes import session_options
from spmilp.checker.values.replay import replay
from spmilp.frontend.cleanup.clean import clean_up
from spmilp.frontend.graph import Network, Operator
from spmilp.frontend.load import load_network
from spmilp.frontend.operators.boxes import slices, whole
from spmilp.frontend.operators.registry import geometries, known_kinds
from spmilp.frontend.read import read_model
from spmilp.frontend.regions import group_work
from spmilp.machine.machine import CoreKind
from spmilp.machine.read import load_machine

Array = NDArray[Any]


def model_of(graph: str, opset: int = 18) -> onnx.ModelProto:
    """Return a model whose graph is given in ONNX's text syntax."""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{graph}')


def model_with(
    declared: str, result: str, body: str, constants: Mapping[str, Any], opset: int = 18
) -> onnx.ModelProto:
    """Return a model that gives ``y``, with those constants that its nodes read."""
    model = model_of(f"agraph ({declared}) => ({result}[?] y) {{ {body} }}", opset)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in constants.items()
        if name in read
    )
    return model


def saved(folder: Path, model: onnx.ModelProto) -> Path:
    """Write a model to a file."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def loaded(
    folder: Path,
    model: onnx.ModelProto | str,
    dims: Mapping[str, int] | None = None,
    kinds: Sequence[CoreKind] = (),
) -> Network:
    """Load a model as the front end does for a machine with certain kinds of cores."""
    proto = model_of(model) if isinstance(model, str) else model
    machine = None
    if kinds:
        numbered = tuple(replace(one, index=at, name=f"kind{at}") for at, one in enumerate(kinds))
        machine = replace(load_machine("gap9").machine, kinds=numbered)
    return load_network(saved(folder, proto), dims or {}, machine)


def cleaned(
    folder: Path, model: onnx.ModelProto, dims: Mapping[str, int] | None = None
) -> ir.Model:
    """Read and clean up a model."""
    read, _ = read_model(saved(folder, model))
    return clean_up(read, dims or {}, known_kinds())


def given(shapes: Mapping[str, tuple[int, ...]], seed: int = 0) -> dict[str, Array]:
    """Return random float32 inputs."""
    numbers = np.random.default_rng(seed)
    return {name: numbers.standard_normal(s).astype(np.float32) for name, s in shapes.items()}


def onnxruntime_outputs(
    model: onnx.ModelProto | Path, inputs: Mapping[str, Array]
) -> dict[str, Array]:
    """Compute with onnxruntime, its own optimisations switched off."""
    import onnxruntime as ort

    loaded = onnx.load(model) if isinstance(model, Path) else model
    options = session_options(loaded.graph)
    options.intra_op_num_threads = 1
    source = loaded.SerializeToString()
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def network_values(network: Network, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Compute all tensors of a network, group by group, with the project's kernels."""
    values = {name: np.asarray(array) for name, array in inputs.items()}
    for name, tensor in network.tensors.items():
        if tensor.values is not None:
            values[name] = tensor.values
    for group in network.groups:
        for operator in group.operators:
            values[operator.output] = _computed(network, operator, values)
    return values


def network_outputs(network: Network, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return what a network gives."""
    values = network_values(network, inputs)
    return {name: values[name] for name in network.outputs}


def plan_of(path: Path, machine: str = "gap8") -> spmilp.Result:
    """Return a plan of the list scheduler that the checker accepts."""
    result = spmilp.solve(path, machine, solver="list")
    assert result.plan is not None, result.reason
    assert not spmilp.check(result.problem, result.plan)
    return result


def planned_outputs(path: Path, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return what a plan's tasks compute, tile by tile, from the bytes at their addresses."""
    result = plan_of(path)
    assert result.plan is not None
    network = load_network(path, machine=result.problem.machine)
    return dict(replay(result.problem, result.plan, network, inputs))


def macs_of(network: Network) -> int:
    """Return the multiply-accumulates of a network."""
    shapes = {group.index: network.tensors[group.output].shape for group in network.groups}
    works = (group_work(network, group, whole(shapes[group.index])) for group in network.groups)
    return sum(work.macs for work in works)


def kinds_of(network: Network) -> list[tuple[str, ...]]:
    """Return the kinds of the operators of each group."""
    return [tuple(operator.kind for operator in group.operators) for group in network.groups]


def _computed(network: Network, operator: Operator, values: Mapping[str, Array]) -> Array:
    box = whole(network.tensors[operator.output].shape)
    boxes = geometries(network)[operator].reads(box)
    arrays = [
        None if read is None else values[name][slices(read, (0,) * len(read))]
        for name, read in zip(operator.inputs, boxes, strict=True)
    ]
    return compute(Call(operator, network.tensors, arrays, boxes, box))
