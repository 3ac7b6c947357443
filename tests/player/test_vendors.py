"""Kernels of others in straight code: called where they fit, a step from the reference at most.

In fixed point CMSIS-NN has the same bits, but for products in double precision and exponentials.
"""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.player import programs
from export.subjects import subject
from player.kernel_network import KernelNetwork, integer_network
from player.test_player import needs_gcc
from spmilp.checker.values.replay import replay
from spmilp.frontend.fixed_point import is_fixed
from spmilp.lowering.lower import lower
from values.sequential import MACHINE, sequential_plan
from values.test_lowered_networks import cut

HERE = Path(__file__).parent


@needs_gcc
@pytest.mark.full
@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize(
    ("library", "whole"),
    [
        # Batches of convolutions, one by one; planes of pools; all rows of a Gemm.
        ("CMSIS_NN", {"conv": 12, "depthwise": 4, "connected": 2, "average": 12, "maximum": 12}),
        ("PULP_NN", {"conv": 4, "connected": 3}),
    ],
)
def test_a_library_computes_what_fits_within_a_step_of_the_reference(
    library: str, whole: dict[str, int], pieces: int, tmp_path: Path
) -> None:
    network, inputs = integer_network()
    problem = lower(network, MACHINE, cut(network, pieces, 1))
    plan = sequential_plan(problem)
    programs.write_code(subject(problem, plan, network=network), tmp_path)
    given = [f"{library}={HERE / library.lower()}"]
    program = programs.build(tmp_path, "spmilp_code_play", flags="-O0", variables=given)
    found = programs.play([program, "--loop"], network, inputs, tmp_path)
    same = {
        group.output
        for group in network.groups
        if library == "CMSIS_NN" and is_fixed(group.operators[0])
        if group.operators[0].kind not in ("Gemm", "Softmax")
    }
    assert same or library != "CMSIS_NN"
    for name, wanted in replay(problem, plan, network, inputs).items():
        steps = 0 if name in same else 1
        np.testing.assert_allclose(found[name], wanted, rtol=0, atol=steps, err_msg=name)
    lines = (tmp_path / "calls").read_text().splitlines()
    calls = {name: int(count) for name, count in map(str.split, lines)}
    assert calls.pop("refused") == 0
    assert all(calls.values()), calls
    for name, count in whole.items():
        assert calls[name] == count if pieces == 1 else calls[name] > count


@needs_gcc
@pytest.mark.parametrize("library", ["CMSIS_NN", "PULP_NN"])
def test_a_folder_without_the_library_is_named(library: str, tmp_path: Path) -> None:
    made = KernelNetwork()
    made.add("Relu", (made.reals(4),))
    network = made.network()
    problem = lower(network, MACHINE, cut(network, 1, 1))
    programs.write_code(subject(problem, sequential_plan(problem), network=network), tmp_path)
    command = ["make", "-f", "code.mk", f"{library}={tmp_path}"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert f"{library}={tmp_path}: there is no " in ended.stderr
