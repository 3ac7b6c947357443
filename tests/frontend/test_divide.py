"""What fits no memory is divided, computes the same, and nothing else changes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spmilp
from benchmarks.player import programs
from spmilp.checker.values.compare import replay_plan
from spmilp.errors import DoesNotFitError
from spmilp.export.subject import Subject
from spmilp.frontend.load import load_network, load_network_of
from spmilp.frontend.passes import passes_from
from spmilp.machine.machine import Machine
from spmilp.machine.read import load_machine
from tests.frontend.running import kinds_of, model_with, saved
from tests.player.test_player import needs_gcc

NUMBERS = np.random.default_rng(5)
CONSTANTS = {
    "last": np.array([-1]),
    "one": np.array([1]),
    "two": np.array([1, 2]),
    "s": np.float32(0.02),
    "z": np.int8(3),
    "t": np.float32(0.005),
    "six": NUMBERS.standard_normal(6).astype(np.float32),
    "row": NUMBERS.standard_normal(1021).astype(np.float32),
    "pair": NUMBERS.standard_normal(2).astype(np.float32),
    "low": np.float32(-np.inf),
}
REDUCTIONS = ("L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
CASES: dict[str, tuple[str, str]] = {
    **{
        kind: ("float[3,1021] x", f"y = Reduce{kind}<keepdims={number % 2}>(x, last)")
        for number, kind in enumerate(REDUCTIONS)
    },
    "along two axes": ("float[2,30,31] x", "y = ReduceLogSumExp<keepdims=0>(x, two)"),
    "along the first axis": ("float[1021,3] x", "p = Abs(x) y = ReduceLogSum(p)"),
    "integers": ("int32[2,1021] x", "y = ReduceMean<keepdims=0>(x, last)"),
    "Softmax": ("float16[2,2048] x", "y = Softmax(x)"),
    "Softmax behind a mask": (
        "float[2,1021] x",
        "g = Greater(x, row) m = Where(g, x, low) y = Softmax(m)",
    ),
    "LogSoftmax": ("float[1,1021,3] x", "y = LogSoftmax<axis=1>(x)"),
    "first ArgMax": ("float[2,1021] x", "r = Round(x) y = ArgMax<axis=1>(r)"),
    "last ArgMin": (
        "float[1021,2] x",
        "r = Round(x) y = ArgMin<axis=0, keepdims=0, select_last_index=1>(r)",
    ),
    "InstanceNormalization": ("float[1,2,1021] x", "y = InstanceNormalization(x, pair, pair)"),
    "GroupNormalization": (
        "float[2,6,17,13] x",
        "y = GroupNormalization<num_groups=2>(x, six, six)",
    ),
    "LayerNormalization": ("float[2,1021] x", "y = LayerNormalization(x, row)"),
    "RMSNormalization": ("float[2,1021] x", "y = RMSNormalization(x, row)"),
    "GlobalMaxPool": ("float[1,2,30,30] x", "y = GlobalMaxPool(x)"),
    "AveragePool": ("float[1,2,30,30] x", "y = AveragePool<kernel_shape=[30,30]>(x)"),
    "of bytes": (
        "int8[2,4096] x",
        "d = DequantizeLinear(x, s, z) e = Softmax(d) y = QuantizeLinear(e, t, z)",
    ),
    "mean of bytes": (
        "int8[1,2,64,64] x",
        "d = DequantizeLinear(x, s, z) e = GlobalAveragePool(d) y = QuantizeLinear(e, t, z)",
    ),
}
QUICK = {"Sum", "along two axes", "integers", "Softmax", "GlobalMaxPool", "mean of bytes"}


def small(l1: int = 2048) -> Machine:
    """Return GAP9 with little L1."""
    machine = load_machine("gap9").machine
    memories = (
        replace(one, size=l1, reserved=()) if one.name == "l1" else one for one in machine.memories
    )
    return replace(machine, memories=tuple(memories))


def file_of(folder: Path, declared: str, body: str) -> Path:
    """Write a model with those constants that its nodes read."""
    kind = "int8" if body.endswith("z)") else declared.partition("[")[0]
    kind = "int64" if "Arg" in body else kind
    return saved(folder, model_with(declared, kind, body, CONSTANTS, opset=23))


@pytest.mark.parametrize(
    "case", [one if one in QUICK else pytest.param(one, marks=pytest.mark.full) for one in CASES]
)
def test_what_fits_no_memory_is_divided_and_computes_the_same(case: str, tmp_path: Path) -> None:
    path = file_of(tmp_path, *CASES[case])
    result = spmilp.solve(path, small(), solver="list")
    assert result.plan is not None, result.reason
    assert not spmilp.check(result.problem, result.plan)
    (found,) = replay_plan(result.problem, result.plan, path)
    assert found.within, found.why
    assert any("/" in task.name for task in result.problem.tasks)


@needs_gcc
@pytest.mark.full
@pytest.mark.parametrize("case", ["mean of bytes", "first ArgMax", "GroupNormalization"])
def test_c_of_what_is_divided_gives_the_bits_of_the_value_replay(case: str, tmp_path: Path) -> None:
    path = file_of(tmp_path, *CASES[case])
    result = spmilp.solve(path, small(), solver="list")
    assert result.plan is not None
    network = load_network(path, machine=small())
    inputs, wanted = programs.expected_outputs(result.problem, result.plan, network, seed=4)
    programs.write_code(
        Subject(problem=result.problem, plan=result.plan, network=network), tmp_path
    )
    program = programs.build(tmp_path, "spmilp_code_play", "address")
    found = programs.play([program, "--loop"], network, inputs, tmp_path)
    np.testing.assert_array_equal(found["y"], wanted["y"])


def test_what_fits_stays_whole_and_a_group_that_does_not_is_fused_less(tmp_path: Path) -> None:
    path = file_of(tmp_path, "float[2,200] x, float[2,200] m", "p = Mul(x, m) y = Softmax(p)")
    fits, tight = (load_network(path, machine=small(size)) for size in (3200, 3196))
    assert kinds_of(fits) == [("Mul", "Softmax")]
    assert kinds_of(tight) == [("Mul",), ("Softmax",)]
    result = spmilp.solve(path, small(3196), solver="list")
    assert result.plan is not None
    assert not spmilp.check(result.problem, result.plan)


def test_nothing_is_divided_into_what_no_core_can_run(tmp_path: Path) -> None:
    path = file_of(tmp_path, "float[2,1021] x", "y = Softmax(x)")
    (able,) = small().kinds
    weak = replace(small(), kinds=(replace(able, operators=frozenset({"Softmax"})),))
    assert kinds_of(load_network(path, machine=weak)) == [("Softmax",)]
    with pytest.raises(DoesNotFitError, match="its smallest tile"):
        spmilp.solve(path, weak, solver="list")


def test_a_problem_knows_its_parts_on_a_machine_that_would_not_need_them(tmp_path: Path) -> None:
    path = file_of(tmp_path, "float[2,1021] x", "y = Softmax(x)")
    problem = spmilp.solve(path, small(), solver="list").problem
    _, network = load_network_of(replace(problem, machine=small(1 << 16)), path, {})
    groups = {task.tile.of for task in problem.tasks if task.tile is not None}
    assert {group.name for group in network.groups} == groups
    asked = load_network(path, machine=small(1 << 16), passes=passes_from("rooms=2048"))
    assert kinds_of(asked) == kinds_of(network)
