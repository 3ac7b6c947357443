"""Kernels of others in straight code: called where they fit, a step from the reference at most."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.player import programs
from export.subjects import subject
from player.kernel_network import KernelNetwork, scale_of, windows
from player.test_player import needs_gcc
from spmilp.checker.values.replay import replay
from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower
from values.sequential import MACHINE, sequential_plan
from values.test_lowered_networks import cut

HERE = Path(__file__).parent


def network_of_bytes() -> KernelNetwork:
    """Return operators of int8: those that both libraries compute, one of them, or none."""
    made = KernelNetwork(seed=5)
    steps = made.reals(6, low=0.01, high=0.1)
    bias = made.random.integers(-9000, 9000, 6, np.int32)
    for pads, strides, dilations, group, zero in (
        ((1, 1, 1, 1), (1, 1), (1, 1), 1, -128),  # behind a Relu: PULP-NN can pad it
        ((2, 0, 1, 2), (2, 1), (2, 1), 1, 5),
        ((0, 0, 0, 0), (2, 1), (1, 1), 1, 5),
        ((0, 1, 2, 1), (1, 2), (1, 1), 6, 5),
        ((1, 1, 1, 1), (1, 2), (1, 1), 2, 5),  # neither whole nor depthwise
    ):
        made.add(
            "Conv",
            (made.integers(2, 6, 7, 5), made.integers(6, 6 // group, 3, 3), bias),
            windows((3, 3), strides, pads, dilations, group=group),
            scales=(scale_of(0.03, zero), scale_of(steps, axis=0), None),
            output=scale_of(1.7, -9),
            limits=(0.0, 60.0),
        )
    for trans_b, shape in ((1, (6, 40)), (0, (40, 6))):  # the second lies another way round
        made.add(
            "Gemm",
            (made.integers(3, 40), made.integers(*shape), bias),
            {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": trans_b},
            scales=(scale_of(0.04, -7), scale_of(steps, axis=1 - trans_b), None),
            output=scale_of(2.1, 30),
        )
    pair = (made.integers(2, 3, 4, 5), made.integers(2, 3, 4, 5))
    made.add("Add", pair, scales=(scale_of(0.2, 3), scale_of(0.05, -4)), output=scale_of(0.21, 9))
    for kind in ("AveragePool", "MaxPool"):
        attributes = windows((3, 2), (2, 1), (1, 0, 1, 1), ceil_mode=0, count_include_pad=0)
        same = scale_of(0.07, 12)
        made.add(kind, (made.integers(2, 3, 8, 6),), attributes, scales=(same,), output=same)
    attributes = windows((2, 2), (2, 2), ceil_mode=0, count_include_pad=0)
    other = scale_of(0.08, 12)  # another scale behind it
    made.add("MaxPool", (pair[0],), attributes, scales=(scale_of(0.07, 12),), output=other)
    made.add(
        "Softmax",
        (made.integers(5, 12),),
        {"axis": 1},
        scales=(scale_of(0.05, 2),),
        output=scale_of(1 / 256, -128),
    )
    return made


@needs_gcc
@pytest.mark.full
@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize(
    ("library", "whole"),
    [
        # Batches of convolutions, one by one; planes of pools; all rows of a Gemm.
        ("CMSIS_NN", {"conv": 6, "depthwise": 2, "connected": 1, "average": 6, "maximum": 6}),
        ("PULP_NN", {"conv": 4, "connected": 3}),
    ],
)
def test_a_library_computes_what_fits_within_a_step_of_the_reference(
    library: str, whole: dict[str, int], pieces: int, tmp_path: Path
) -> None:
    made = network_of_bytes()
    network: Network = made.network()
    problem = lower(network, MACHINE, cut(network, pieces, 1))
    plan = sequential_plan(problem)
    programs.write_code(subject(problem, plan, network=network), tmp_path)
    given = [f"{library}={HERE / library.lower()}"]
    program = programs.build(tmp_path, "spmilp_code_play", flags="-O0", variables=given)
    found = programs.play([program, "--loop"], network, made.inputs, tmp_path)
    for name, wanted in replay(problem, plan, network, made.inputs).items():
        np.testing.assert_allclose(found[name], wanted, rtol=0, atol=1, err_msg=name)
    lines = (tmp_path / "calls").read_text().splitlines()
    calls = {name: int(count) for name, count in map(str.split, lines)}
    assert calls.pop("refused") == 0
    assert all(calls.values()), calls
    for name, count in whole.items():
        assert calls[name] == count if pieces == 1 else calls[name] > count
