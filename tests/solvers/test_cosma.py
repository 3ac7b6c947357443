"""COSMA's setting: budgets, networks, and its model as a reference."""

from pathlib import Path

import pytest
from onnx import TensorProto, helper, save

from benchmarks.exact.cosma.networks import model_network, random_network
from benchmarks.exact.cosma.setting import largest_operator, least_peak, problem_of, solve
from spmilp.policies.cosma import Network, Operator
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.exact.cpsat.solver import CpSatSolver

WAITING = Network(
    name="x waits",
    sizes=(10, 30, 20, 20, 5),
    operators=(
        Operator(name="a", reads=(0,), writes=1),
        Operator(name="b", reads=(1,), writes=2),
        Operator(name="c", reads=(2,), writes=3),
        Operator(name="d", reads=(1, 3), writes=4),
    ),
    outputs=frozenset({4}),
)
"""Tensor 1 waits while ``c`` runs: 30 + 20 + 20 bytes, more than the 55 of the largest operator."""


def test_budgets_of_a_network_by_hand() -> None:
    assert largest_operator(WAITING) == 30 + 20 + 5
    assert least_peak(WAITING) == 30 + 20 + 20


def test_the_model_spills_and_retrieves_what_finds_no_room() -> None:
    tight = solve(WAITING, 55, seconds=10.0)
    ample = solve(WAITING, 70, seconds=10.0)

    assert (tight.status, tight.extra, tight.bound) == ("optimal", 60, 60)
    assert (ample.status, ample.extra, ample.bound) == ("optimal", 0, 0)


def test_the_model_runs_one_operator_in_a_step() -> None:
    # Without that, both branches would run at once and nothing would ever wait beside them.
    fork = Network(
        name="fork",
        sizes=(10, 40, 40, 10),
        operators=(
            Operator(name="left", reads=(0,), writes=1),
            Operator(name="right", reads=(0,), writes=2),
            Operator(name="join", reads=(1, 2), writes=3),
        ),
        outputs=frozenset({3}),
    )

    assert solve(fork, 90, seconds=10.0).extra == 0
    assert solve(fork, 89, seconds=10.0).status == "unknown"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("share", [0, 1])
def test_our_optimum_is_at_most_that_of_the_model(seed: int, share: int) -> None:
    network = random_network(5, seed)
    least, peak = largest_operator(network), least_peak(network)
    budget = least + share * (peak - least)
    theirs = solve(network, budget, seconds=20.0)
    ours = CpSatSolver().solve(problem_of(network, budget), SolveOptions(time_limit=20.0))

    assert ours.status is SolveStatus.OPTIMAL
    assert ours.plan is not None
    extra = ours.plan.claim.dram_traffic - network.compulsory
    if theirs.extra is not None:
        assert theirs.status == "optimal"
        assert extra <= theirs.extra


def test_a_model_becomes_activations_of_one_byte_an_element(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("MaxPool", ["r"], ["y"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 2, 3, 3], [0.5] * 72)
    graph = helper.make_graph(
        nodes,
        "small",
        [value("x", TensorProto.FLOAT, [1, 2, 8, 8])],
        [value("y", TensorProto.FLOAT, [1, 4, 4, 4])],
        [weight],
    )
    file = tmp_path / "small.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)

    fused, nodes_alone = model_network(str(file)), model_network(str(file), fused=False)

    assert fused.sizes == (2 * 64, 4 * 64, 4 * 16)
    assert nodes_alone.sizes == (2 * 64, 4 * 64, 4 * 64, 4 * 16)
    assert [operator.reads for operator in nodes_alone.operators] == [(0,), (1,), (2,)]


@pytest.mark.full
def test_densenet_has_more_to_keep_than_its_largest_operator() -> None:
    network = model_network("onnx:light_densenet121")

    assert largest_operator(network) == 2 * 256 * 56 * 56
    assert least_peak(network) == (224 + 224 + 128) * 56 * 56
