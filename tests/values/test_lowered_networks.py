"""Whole models, lowered and run through a plan without skill, equal onnxruntime."""

from pathlib import Path

import numpy as np
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
from tests.frontend.running import network_values
from values.sequential import MACHINE, channels_last, sequential_plan

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
    ("model", "pieces", "parts", "layout"),
    [
        ("resnet8_f32", 1, 1, "nchw"),
        ("resnet8_f32", 3, 2, "nchw"),
        ("resnet8_int8", 3, 2, "nhwc"),
        ("ds_cnn_int8", 5, 1, "nchw"),
        ("ds_cnn_f16", 2, 3, "nchw"),
        ("autoencoder_int8", 4, 3, "nchw"),
        ("tiny_gru_f32", 2, 1, "nchw"),
        ("gpt2_block_f32", 2, 3, "nchw"),
    ],
)
def test_a_lowered_model_replays_to_what_onnxruntime_computes(
    model: str, pieces: int, parts: int, layout: str
) -> None:
    path = MODELS / f"{model}.onnx"
    network = load_network(path)
    problem = lower(network, MACHINE, cut(network, pieces, parts))
    if layout == "nhwc":
        problem = channels_last(problem)
    inputs = random_inputs(network, seed=3)
    outputs = replay(problem, sequential_plan(problem), network, inputs)
    for difference in compare(outputs, reference_outputs(path, inputs), network):
        assert difference.within, difference


@pytest.mark.parametrize("model", ["resnet8_int8", "ds_cnn_int8"])
def test_tiles_of_integer_networks_change_no_bit(model: str) -> None:
    network = load_network(MODELS / f"{model}.onnx")
    inputs = random_inputs(network, seed=0)
    whole = network_values(network, inputs)
    problem = lower(network, MACHINE, cut(network, 4, 2))
    outputs = replay(problem, sequential_plan(problem), network, inputs)
    for name, values in outputs.items():
        np.testing.assert_array_equal(values, whole[name])
