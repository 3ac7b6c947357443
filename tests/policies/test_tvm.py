"""TVM's latency hiding: what tokens allow, no deadlock, plans that pass, and what hiding gains."""

from dataclasses import replace
from pathlib import Path

import pytest

import spmilp
from spmilp.checker.check import check
from spmilp.checker.races import check_commands
from spmilp.commands.build import build_commands
from spmilp.policies.tvm import DeadlockError, Instruction, Tvm, replay
from spmilp.solvers.base import SolveOptions
from tests.policies.small_instances import SMALL, small_instance
from tests.solvers.chains import chain, star

MODELS = Path(__file__).parents[2] / "models"
REFUSED = {
    "layers-20t-3c": "tvm takes machines with 1 DRAM; this one has 0",
    "stages-24t-4c-crossbar-staged-tight-compute": "no engine moves",
}


@pytest.mark.parametrize("name", SMALL)
def test_every_plan_passes_the_checker_and_its_commands_the_proof(name: str) -> None:
    problem = small_instance(name)
    for hides in (True, False):
        result = Tvm(hides=hides).solve(problem, SolveOptions())
        if name in REFUSED:
            assert REFUSED[name] in result.reason
            continue
        assert result.plan is not None
        assert check(problem, result.plan) == ()
        lists = build_commands(problem, result.plan)
        assert check_commands(problem, result.plan, lists) == ()


def step(name: str, **more: object) -> Instruction:
    return Instruction(name=name, cycles=10, **more)


def test_an_instruction_waits_for_its_tokens_and_takes_them() -> None:
    first = [step("load", gives=("loaded",)), step("load again", takes=("free",))]
    second = [step("run", takes=("loaded",), gives=("free",)), step("end", takes=("free",))]

    assert replay(star(1, 64), (first, second[:1]), ()) == [[0, 20], [10]]
    with pytest.raises(DeadlockError, match="end waits for free"):
        replay(star(1, 64), (first, second), ())


def test_a_circle_of_tokens_is_a_deadlock() -> None:
    here, there = step("a", takes=("x",), gives=("y",)), step("b", takes=("y",), gives=("x",))

    with pytest.raises(DeadlockError, match="a waits for x; b waits for y"):
        replay(star(1, 64), ([here], [there]), ())
    assert replay(star(1, 64), ([here], [there]), ("x",)) == [[0], [10]]


def test_hiding_runs_a_task_beside_the_loads_of_the_next() -> None:
    problem = chain(star(1, 1 << 16), layers=1, strips=6)
    tasks = tuple(replace(task, cycles=(500,)) for task in problem.tasks)
    problem = replace(problem, tasks=tasks)
    hidden, serial = (Tvm(hides=one).solve(problem, SolveOptions()).plan for one in (True, False))
    assert hidden is not None
    assert serial is not None

    busy = sum(task.cycles[0] for task in problem.tasks)
    moving = sum(one.end - one.start for one in serial.transfers)
    assert serial.claim.makespan == busy + moving
    assert hidden.claim.makespan < busy + moving / 2
    assert dict(hidden.options)["virtual threads"] == "2"


def test_without_room_for_two_threads_there_is_one() -> None:
    problem = chain(star(1, 1 << 16), layers=1, strips=4)
    plan = Tvm().solve(problem, SolveOptions()).plan
    assert plan is not None
    most = max(one.offset + one.bytes for one in plan.residencies if one.memory != 0)
    tight = chain(star(1, most * 2 // 3), layers=1, strips=4)
    plan = Tvm().solve(tight, SolveOptions()).plan
    assert plan is not None
    assert dict(plan.options)["virtual threads"] == "1"
    tiny = Tvm().solve(chain(star(1, most // 3), layers=1, strips=4), SolveOptions())
    assert "use smaller tiles" in tiny.reason


def test_a_limit_that_is_over_leaves_no_plan_and_says_so() -> None:
    problem = chain(star(1, 1 << 16), layers=1, strips=4)
    found = Tvm().solve(problem, SolveOptions(time_limit=0.0))
    assert found.plan is None
    assert "time limit" in found.reason


def test_the_numbers_are_right_with_random_delays() -> None:
    result = spmilp.solve(MODELS / "ds_cnn_int8.onnx", "vdla", solver="tvm")
    assert result.violations == ()
    assert result.replay(delays=0, runs=2)["within"].all()
