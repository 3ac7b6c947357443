"""The inputs of other tools."""

from collections import Counter
from math import prod
from pathlib import Path

import pytest

from benchmarks.bench.suite import BUILDERS, Built, load_suite
from benchmarks.peers.set_resnet50 import in_bytes, resnet50, write_resnet50
from benchmarks.peers.stream import MissingDataError
from spmilp.frontend.load import load_network
from tests.frontend.running import macs_of


def test_every_row_of_the_suite_has_a_builder_and_a_figure_with_its_source() -> None:
    rows = load_suite("peers").rows
    assert {row.source for row in rows} == {Built(name) for name in BUILDERS}
    assert all(row.peer is not None and row.peer.source for row in rows)


@pytest.mark.parametrize("name", [name for name in BUILDERS if name.startswith("stream")])
def test_without_the_data_a_row_says_what_is_missing(name: str, tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"stream/workload/.*\.onnx is not in"):
        BUILDERS[name](tmp_path)


def test_resnet50_has_the_layers_and_the_work_that_set_lists() -> None:
    nodes = Counter(node.op_type for node in resnet50(1).graph.node)
    assert nodes["Conv"] == 53
    assert nodes["Add"] == 16
    with write_resnet50(2) as folder:
        network = load_network(Path(folder) / "resnet50.onnx")
    weights = [t for t in network.tensors.values() if t.name.endswith("_weight")]
    assert sum(prod(tensor.shape) for tensor in weights) == 25_502_912
    assert macs_of(network) == 2 * 3_857_973_248
    assert {tensor.dtype.name for tensor in in_bytes(network).tensors.values()} == {"int8"}
