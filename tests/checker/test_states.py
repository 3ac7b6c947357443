"""States are judged in one period as they are when inferences follow one another."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from docs import checker as second
from spmilp.bounds.period import proofs_of_period
from spmilp.checker.check import check
from spmilp.machine.machine import Machine
from spmilp.plan.file import plan_bytes
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.plan.unrolled import enough_inferences, unrolled
from spmilp.problem.file import problem_bytes, read_problem
from spmilp.problem.problem import Problem
from spmilp.solvers.modulo.stream import stream_of
from tests.checker.mutations.subjects import planned
from tests.checker.states import on_chip, with_states
from tests.oracle.small import DRAM, ProblemSketch, machine

OWN = {"prologue", "permanent", "instances", "handed_over"}


def broken(problem: Problem, plan: Plan) -> set[str]:
    """Return the rules that a stream breaks, on which all three ways to find them agree.

    What is read too early breaks other rules where inferences follow one another.
    """
    measures = measure(problem, plan.placements, plan.residencies, plan.transfers, plan.stream)
    plan = replace(plan, claim=claim_of(measures, 0, "none"))
    rules = {violation.rule for violation in check(problem, plan)}
    read = second.read_problem(problem_bytes(problem))
    other = second.violations(read, second.read_plan(plan_bytes(plan, problem), read))
    assert {rule for rule, _ in other} == rules
    whole = {one.rule for one in check(*unrolled(problem, plan, enough_inferences(plan)))}
    assert bool(whole) == bool(rules - OWN)
    return rules


def changed(plan: Plan, table: str, row: int, **fields: object) -> Plan:
    rows = list(getattr(plan, table))
    rows[row] = replace(rows[row], **fields)
    return replace(plan, **{table: tuple(rows)})


BREAKS: dict[str, tuple[set[str], Callable[[Plan], Plan]]] = {
    "nothing": (set(), lambda plan: plan),
    "a_period_too_short": (
        {"state", "one_task_at_a_time", "channels", "instances", "no_shared_bytes"},
        lambda plan: replace(plan, stream=replace(plan.stream, period=9)),
    ),
    "left_in_another_place": (
        {"state"},
        lambda plan: changed(plan, "residencies", 2, offset=0, instances=(8,)),
    ),
    "begun_in_another_place": (
        {"state"}, lambda plan: changed(plan, "residencies", 2, offset=48, instances=(56,))
    ),
    "lost_before_it_is_read": ({"state"}, lambda plan: changed(plan, "residencies", 4, end=30)),
    "without_room_for_the_first": (
        {"instances", "no_shared_bytes"},
        lambda plan: changed(
            changed(plan, "residencies", 4, instances=()), "residencies", 2, offset=0, instances=()
        ),
    ),
    "a_tensor_elsewhere": (
        {"handed_over"},
        lambda plan: changed(
            replace(plan, tensors=(512, *plan.tensors[1:])), "residencies", 0, offset=512
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
def test_a_state_on_the_chip_is_there_when_it_is_read(name: str) -> None:
    rules, change = BREAKS[name]
    problem, plan = on_chip()
    assert broken(problem, change(plan)) == rules


def recurrent(own: Machine) -> Problem:
    """Return a cell of two tasks, of which the first needs an input too, and leaves one behind."""
    sketch = ProblemSketch(own).buffer("x", 16, starts=DRAM)
    sketch.buffer("s", 8, starts=DRAM).buffer("c", 8, starts=DRAM).buffer("h", 8)
    sketch.buffer("s2", 8, ends=DRAM).buffer("c2", 8, ends=DRAM)
    sketch.task("t", 9, reads=["x", "s", "c"], writes=["h", "c2"])
    sketch.task("u", 7, reads=["h"], writes=["s2"])
    return with_states(sketch.problem(), s="s2", c="c2")


@pytest.mark.parametrize("cores", [1, 2])
def test_a_stream_reads_a_state_when_the_inference_before_has_left_it(cores: int) -> None:
    problem = recurrent(machine(*[200] * cores, channels=2))
    plan = stream_of(problem, planned(problem, "list"))
    assert plan.stream is not None
    assert broken(problem, plan) == set()
    found = {proof.name: proof.value() for proof in proofs_of_period(problem)}
    assert found["states"] == 16
    assert 16 <= plan.stream.period < plan.claim.makespan
    shorter = replace(plan, stream=replace(plan.stream, period=plan.stream.period - 3))
    assert "state" in broken(problem, shorter)


def test_what_stays_on_the_chip_is_stored_for_readers_elsewhere() -> None:
    sketch = ProblemSketch(machine(200, 200, kinds=2, between=False))
    sketch.buffer("s", 8, starts=DRAM).buffer("s2", 8, ends=DRAM).buffer("y", 8, ends=DRAM)
    sketch.task("t", 9, None, reads=["s"], writes=["s2"])
    sketch.task("u", None, 7, reads=["s2"], writes=["y"])
    problem = with_states(sketch.problem(), s="s2")
    plan = stream_of(problem, planned(problem, "list"))
    assert plan.stream is not None
    assert broken(problem, plan) == set()
    assert plan.claim.dram_traffic == 3 * 8  # s2 to the other core, and y


def test_states_are_kept_in_the_file_of_a_problem(tmp_path: Path) -> None:
    problem, _ = on_chip()
    file = tmp_path / "problem.json"
    file.write_bytes(problem_bytes(problem))
    assert read_problem(file) == problem
    assert problem.states() == {0: 2}
    with pytest.raises(ValueError, match="its buffers are other boxes than those of x"):
        with_states(problem, s="x")
