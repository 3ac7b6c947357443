"""TVM's latency hiding: plans that pass, and what hiding gains."""

from dataclasses import replace
from pathlib import Path

import pytest

import spmilp
from spmilp.checker.races import check_commands
from spmilp.commands.build import build_commands
from spmilp.plan.plan import Plan
from spmilp.policies.tvm import Tvm
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from tests.policies.small_instances import QUICK, small_instance
from tests.solvers.chains import chain, star

MODELS = Path(__file__).parents[2] / "models"


def planned(problem: Problem, *, hides: bool = True) -> Plan:
    plan = Tvm(hides=hides).solve(problem, SolveOptions()).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize("name", QUICK)
def test_the_commands_of_a_plan_are_proven_free_of_races(name: str) -> None:
    problem = small_instance(name)
    for hides in (True, False):
        plan = planned(problem, hides=hides)
        assert check_commands(problem, plan, build_commands(problem, plan)) == ()


def test_hiding_runs_a_task_beside_the_loads_of_the_next() -> None:
    problem = chain(star(1, 1 << 16), layers=1, strips=6)
    tasks = tuple(replace(task, cycles=(500,)) for task in problem.tasks)
    problem = replace(problem, tasks=tasks)
    hidden, serial = (planned(problem, hides=one) for one in (True, False))

    busy = sum(task.cycles[0] for task in problem.tasks)
    moving = sum(one.end - one.start for one in serial.transfers)
    assert serial.claim.makespan == busy + moving
    assert hidden.claim.makespan < busy + moving / 2
    assert dict(hidden.options)["virtual threads"] == "2"


def test_a_pipelined_engine_sends_while_other_bytes_are_on_their_way() -> None:
    problem = chain(star(1, 1 << 16), layers=1, strips=6)
    links = tuple(replace(link, latency=40) for link in problem.machine.links)
    spans = []
    for pipelined in (False, True):
        engine = replace(problem.machine.engines[0], channels=1, pipelined=pipelined)
        machine = replace(problem.machine, links=links, engines=(engine,))
        spans.append(planned(replace(problem, machine=machine)).claim.makespan)

    # Each later load and store that waits for the channel alone comes 80 cycles sooner.
    assert spans[0] - spans[1] > 5 * 80


def test_without_room_for_two_threads_there_is_one() -> None:
    plan = planned(chain(star(1, 1 << 16), layers=1, strips=4))
    most = max(one.offset + one.bytes for one in plan.residencies if one.memory != 0)
    tight = planned(chain(star(1, most * 2 // 3), layers=1, strips=4))
    assert dict(tight.options)["virtual threads"] == "1"
    tiny = Tvm().solve(chain(star(1, most // 3), layers=1, strips=4), SolveOptions())
    assert "use smaller tiles" in tiny.reason


@pytest.mark.full
def test_the_numbers_are_right_for_two_virtual_threads() -> None:
    result = spmilp.solve(MODELS / "ds_cnn_int8.onnx", "vdla", solver="tvm")
    assert result.violations == ()
    assert result.replay()["within"].all()
