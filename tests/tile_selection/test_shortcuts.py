"""What is found the short way is what the long way finds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spmilp.frontend.graph import Network
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.source import load
from spmilp.tile_selection.candidates import CandidateMaker
from spmilp.tile_selection.group_model import GroupModel
from tests.lowering.builders import NetworkBuilder, star_machine

MODELS = Path(__file__).parents[2] / "models"


def network_with_views() -> Network:
    """Inputs that some tiles read nothing of, and an input that two axes drive."""
    builder = NetworkBuilder()
    data = builder.input((1, 3, 12, 12))
    left, right = builder.conv(data, 6), builder.conv(data, 10)
    joined = builder.operator("Concat", [left, right], axis=1)
    pooled = builder.pool(
        builder.group(joined, builder.operator("Relu", [joined.output]), anchor=1)
    )
    turned = builder.operator("Transpose", [pooled], perm=(0, 2, 3, 1))
    flat = builder.operator("Reshape", [turned.output], shape=(18, 32))
    softmax = builder.operator("Softmax", [flat.output], axis=1)
    return builder.network(builder.group(turned, flat, softmax, anchor=2))


@pytest.mark.full
def test_slabs_tell_what_every_tile_reads() -> None:
    machine = star_machine(4, 1 << 14)
    mobilenet, _ = load(MODELS / "ds_cnn_int8.onnx", "mesh4x4")
    compared = 0
    for network in (mobilenet, network_with_views()):
        for group in network.groups:
            model = GroupModel(network, group, machine)
            maker = CandidateMaker(machine, machine_rates(machine))
            for candidate in maker.candidates(model, 0)[::2]:
                short, long = model.reads(candidate.grid), model._all_reads(candidate.grid)
                assert [name for name in long if name in short] == list(short)
                for name, reads in short.items():
                    np.testing.assert_array_equal(reads.boxes, long[name].boxes)
                compared += 1
    assert compared > 100


def test_parts_of_a_reduction_that_are_alike_are_counted_together() -> None:
    network, target = load(MODELS / "gpt2_block_f32.onnx", "mesh4x4")
    compared = 0
    for group in network.groups:
        model = GroupModel(network, group, target.machine)
        for parts in range(2, min(model.reduction, 100), 7):
            grid = model.grid(Tiling(counts=(1,) * len(model.shape), parts=parts))
            alone = (model.cycles(replace(grid, parts=(part,))) for part in grid.parts)
            assert model.cycles(grid) == (sum(cycles for (cycles,) in alone if cycles),)
            compared += 1
    assert compared > 50
