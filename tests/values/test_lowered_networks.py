"""Whole models, lowered and run through a plan without skill, equal onnxruntime."""

from pathlib import Path

import pytest

from spmilp.checker.values.compare import compare, reference_outputs
from spmilp.checker.values.inputs import random_inputs
from spmilp.checker.values.replay import replay
from spmilp.frontend.graph import Network
from spmilp.frontend.load import load_network
from spmilp.frontend.regions import splittable_axes
from spmilp.lowering.groups import reduction_length
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling
from values.sequential import MACHINE, sequential_plan

pytestmark = pytest.mark.full

MODELS = Path(__file__).parents[2] / "models"


def cut(network: Network, pieces: int, parts: int) -> dict[int, Tiling]:
    """Cut every group along its longest axis, and the reductions of those that have one."""
    tilings = {}
    for group in network.groups:
        shape = network.tensors[group.output].shape
        allowed = splittable_axes(network, group)
        counts = [1] * len(shape)
        axes = [axis for axis in range(len(shape)) if allowed[axis]]
        if axes:
            longest = max(axes, key=lambda axis: shape[axis])
            counts[longest] = min(pieces, shape[longest])
        length = reduction_length(network, group)
        tilings[group.index] = Tiling(counts=tuple(counts), parts=min(parts, length))
    return tilings


@pytest.mark.parametrize(
    ("model", "pieces", "parts"),
    [("resnet8_f32", 3, 2), ("ds_cnn_f16", 2, 3), ("gpt2_block_f32", 2, 3)],
)
def test_a_lowered_model_replays_to_what_onnxruntime_computes(
    model: str, pieces: int, parts: int
) -> None:
    path = MODELS / f"{model}.onnx"
    network = load_network(path)
    problem = lower(network, MACHINE, cut(network, pieces, parts))
    inputs = random_inputs(network, seed=3)
    outputs = replay(problem, sequential_plan(problem), network, inputs)
    for difference in compare(outputs, reference_outputs(path, inputs), network):
        assert difference.within, difference
