"""Every kernel in C against the value replay, whole and in tiles, under sanitizers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.player import programs
from player.kernel_network import integer_network, kernel_names, real_network
from spmilp.checker.values.replay import replay
from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower
from values.sequential import MACHINE, sequential_plan
from values.test_lowered_networks import cut

pytestmark = pytest.mark.skipif(
    bool(programs.missing(programs.HOST_TOOLS)), reason="gcc or make is not installed"
)

Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Network, Arrays, int], Arrays]:
    """Return what runs a network, cut into pieces, with the program that plays binary files."""
    folder = tmp_path_factory.mktemp("kernels")
    built: list[Path] = []

    def run(network: Network, inputs: Arrays, pieces: int) -> tuple[Arrays, Arrays]:
        problem = lower(network, MACHINE, cut(network, pieces, pieces))
        plan = sequential_plan(problem)
        programs.export_player(problem, plan, network, folder)
        if not built:
            built.append(programs.build(folder, "blob", "address", "spmb_play"))
        command = [built[0], folder / "plan.spmb", "--loop"]
        found = programs.play(command, network, inputs, folder)
        return found, replay(problem, plan, network, inputs)

    return run


@pytest.mark.parametrize("pieces", [1, 3])
def test_kernels_of_integers_give_the_bits_of_the_value_replay(
    play: Callable[[Network, Arrays, int], tuple[Arrays, Arrays]], pieces: int
) -> None:
    network, inputs = integer_network()
    found, wanted = play(network, inputs, pieces)
    for group in network.groups:
        np.testing.assert_array_equal(found[group.output], wanted[group.output], group.name)


@pytest.mark.parametrize("pieces", [1, 3])
def test_kernels_of_reals_are_close_to_the_value_replay(
    play: Callable[[Network, Arrays, int], tuple[Arrays, Arrays]], pieces: int
) -> None:
    network, inputs = real_network()
    found, wanted = play(network, inputs, pieces)
    for group in network.groups:
        got, right = found[group.output], wanted[group.output]
        np.testing.assert_allclose(got, right, rtol=3e-6, atol=3e-6, err_msg=group.name)


def test_each_kernel_is_tried() -> None:
    tried = {
        operator.kind.upper()
        for network, _ in (integer_network(), real_network())
        for group in network.groups
        for operator in group.operators
    }
    assert kernel_names() - tried == {"SQUEEZE"}  # the same function as that of Unsqueeze
