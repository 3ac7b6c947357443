"""The smallest network and machine whose sizes matter, as files."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MACHINE = """
name: pair
topology: {type: bus, rate_bytes_per_cycle: 8}
core_kinds:
  core:
    arrays: [{dtype: float32, K: 4}]
    lanes: {float32: 4}
scratchpads:
  - cores: {core: 1}
    count: 2
    sites: [bus]
    size_kib: 8
    dma: [{channels: 1, setup_cycles: 10, rate_bytes_per_cycle: 4}]
dram: [{sites: [bus], rate_bytes_per_cycle: 4, latency_cycles: 20}]
"""
OPTIONS = {"solver": "greedy:contiguous/layer_by_layer", "time_limit": 240.0}
"""One rule alone. Rows end by themselves; a busy computer cuts some shorter with less time."""


def write_files(folder: Path, *, layers: int = 2) -> tuple[Path, Path]:
    """Write matrix products one after another as ONNX, and a machine; return both files."""
    shape = [8, 32]
    weights = [
        numpy_helper.from_array(np.full((32, 32), 0.5, np.float32), f"w{layer}")
        for layer in range(layers)
    ]
    names = ["x", *(f"y{layer}" for layer in range(layers))]
    nodes = [
        helper.make_node("MatMul", [names[layer], f"w{layer}"], [names[layer + 1]])
        for layer in range(layers)
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[-1:], weights)
    model, machine = folder / "chain.onnx", folder / "pair.yaml"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), model)
    machine.write_text(MACHINE)
    return model, machine
