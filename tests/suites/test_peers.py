"""The inputs of other tools."""

from collections import Counter
from fractions import Fraction
from math import prod
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks.bench.suite import BUILDERS, Built, load_suite
from benchmarks.peers.set_resnet50 import in_bytes, resnet50, write_resnet50
from benchmarks.peers.stream import TWO_CONVOLUTIONS, MissingDataError, without_port
from spmilp.frontend.load import load_network
from spmilp.frontend.operators.family import Work
from spmilp.frontend.regions import network_macs
from spmilp.lowering.cost import mac_cycles, task_cycles
from spmilp.lowering.rates import dram_rate, shared_dram_rate
from spmilp.machine.read import load_machine


def two_convolutions(folder: Path) -> None:
    """Write a network of the shapes of Stream's, whose weights have no values."""
    shapes = {"weights_1": (16, 8, 3, 3), "weights_2": (32, 16, 3, 3)}
    half = TensorProto.FLOAT16
    same = {"kernel_shape": [3, 3], "pads": [1] * 4}
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["input", "weights_1"], ["middle"], "Conv1", **same),
            helper.make_node("Conv", ["middle", "weights_2"], ["output"], "Conv2", **same),
        ],
        "two",
        [helper.make_tensor_value_info("input", half, (1, 8, 32, 32))],
        [helper.make_tensor_value_info("output", half, (1, 32, 32, 32))],
        [TensorProto(name=name, data_type=half, dims=dims) for name, dims in shapes.items()],
    )
    file = folder / TWO_CONVOLUTIONS
    file.parent.mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), file)


def test_every_row_of_the_suite_has_a_builder_and_a_figure_with_its_source() -> None:
    rows = load_suite("peers").rows
    assert {row.source for row in rows} == {Built(name) for name in BUILDERS}
    assert all(row.peer is not None and row.peer.source for row in rows)


@pytest.mark.parametrize("name", [name for name in BUILDERS if name.startswith("stream")])
def test_without_the_data_a_row_says_what_is_missing(name: str, tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"stream/workload/.*\.onnx is not in"):
        BUILDERS[name](tmp_path)


def test_two_convolutions_have_the_traffic_that_stream_counts(tmp_path: Path) -> None:
    two_convolutions(tmp_path)
    problem = BUILDERS["stream-2conv"](tmp_path)
    assert sum(tensor.bytes for tensor in problem.tensors if tensor.name != "middle") == 747_520 / 8
    assert shared_dram_rate(problem.machine) == 8


def test_without_the_port_the_bus_alone_limits_and_nodes_take_the_cycles_of_their_slots(
    tmp_path: Path,
) -> None:
    two_convolutions(tmp_path)
    problem = BUILDERS["stream-2conv-without-port"](tmp_path)
    assert dram_rate(problem.machine, outgoing=True) == 16
    cycles: Counter[str] = Counter()
    for task in problem.tasks:
        assert task.tile is not None
        cycles[task.tile.of] += task.cycles[0] or 0
    tasks = len(problem.tasks)
    assert 4 * 2376 <= cycles["Conv1"] < 4 * 2376 + tasks
    assert 4 * 4656 <= cycles["Conv2"] < 4 * 4656 + tasks


def test_only_links_of_the_port_are_widened() -> None:
    before = load_machine("stream_quad").machine
    after = without_port(before)
    changed = [
        (old.rate, new.rate)
        for old, new in zip(before.links, after.links, strict=True)
        if old != new
    ]
    assert set(changed) == {(Fraction(8), Fraction(16))}


def test_resnet50_has_the_layers_and_the_work_that_set_lists() -> None:
    nodes = Counter(node.op_type for node in resnet50(1).graph.node)
    assert nodes["Conv"] == 53
    assert nodes["Add"] == 16
    with write_resnet50(2) as folder:
        network = load_network(Path(folder) / "resnet50.onnx")
    weights = [t for t in network.tensors.values() if t.name.endswith("_weight")]
    assert sum(prod(tensor.shape) for tensor in weights) == 25_502_912
    assert network_macs(network) == 2 * 3_857_973_248
    assert {tensor.dtype.name for tensor in in_bytes(network).tensors.values()} == {"int8"}


def test_a_core_of_sets_mesh_spreads_loops_as_its_code_does() -> None:
    kind = load_machine("set_8x8").machine.kinds[0]
    first = (("B", 1), ("K", 64), ("C", 3), ("Y", 28), ("X", 112), ("R", 7), ("S", 7))
    # 8 x 8 multipliers for K and C, 4 x 4 for Y and X: of eight input channels three are used.
    assert mac_cycles(Work(loops=first, dtype="int8"), kind) == 8 * 7 * 28 * 49
    inner = (("B", 1), ("K", 128), ("C", 128), ("Y", 14), ("X", 14))
    assert mac_cycles(Work(loops=inner, dtype="int8"), kind) == 4 * 4 * 14 * 14
    assert task_cycles(Work(vector=6400, dtype="int8"), kind) == kind.launch + 100
