"""Streams are judged in one period as they are when their inferences follow one another."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from docs import checker as second
from spmilp.checker.check import check
from spmilp.machine.read import load_machine
from spmilp.plan.file import plan_bytes
from spmilp.plan.plan import Plan, Stream
from spmilp.plan.unrolled import enough_inferences, unrolled
from spmilp.problem.file import problem_bytes
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from tests.checker import worked_example
from tests.checker.mutations.subjects import planned, small_network, tightened
from tests.checker.streams import as_stream
from tests.oracle.solver import solver_named
from tests.solvers.tiny_problems import tiny_problem

OWN = {"prologue", "permanent", "instances", "handed_over"}
"""Rules that an unrolled plan cannot break."""

PRESETS = ("gap9", "mesh4x4", "edge16", "xdna1", "cell_be", "stream_quad")


def judged(problem: Problem, read: second.Row, stream: Plan) -> str:
    """Return the verdict on a stream, on which all three ways to find it agree."""
    rules = {violation.rule for violation in check(problem, stream)}
    other = second.violations(read, second.read_plan(plan_bytes(stream, problem), read))
    assert {rule for rule, _ in other} == rules
    inferences = enough_inferences(stream)
    if inferences > 12:
        return "long"
    whole = {violation.rule for violation in check(*unrolled(problem, stream, inferences))}
    assert whole == rules - OWN
    return "valid" if not rules else "invalid"


def agreed(problem: Problem, tries: int, random: Random) -> Counter[str]:
    """Return how many streams of a problem are valid, with periods around the shortest."""
    plan = solver_named("list").solve(problem, SolveOptions()).plan
    if plan is None:
        return Counter()
    read = second.read_problem(problem_bytes(problem))
    latency, found = plan.claim.makespan, Counter[str]()
    for _ in range(tries):
        period = random.choice([latency, latency + 1, random.randint(1 + latency // 3, latency)])
        found[judged(problem, read, as_stream(problem, plan, period, random))] += 1
    return found


def test_one_period_says_what_all_inferences_say() -> None:
    found = Counter[str]()
    for name in PRESETS[:3]:
        found += agreed(small_network(load_machine(name).machine), 6, Random(name))
    assert found["valid"] > 5
    assert found["invalid"] > 3


@pytest.mark.full
def test_one_period_says_what_all_inferences_say_of_many_streams() -> None:
    found = Counter[str]()
    for name in PRESETS:
        found += agreed(small_network(tightened(load_machine(name).machine)), 12, Random(name))
    for number in range(120):
        found += agreed(tiny_problem(number, most_tasks=4), 8, Random(number))
    assert found["valid"] > 200
    assert found["invalid"] > 200


def test_a_stream_wraps_around_without_meeting_itself() -> None:
    problem = small_network(load_machine("mesh4x4").machine)
    stream = as_stream(problem, planned(problem, "list"), 180, Random(1))
    assert stream.stream is not None
    assert stream.claim.makespan > 2 * stream.stream.period
    assert check(problem, stream) == ()
    made, plan = unrolled(problem, stream, 5)
    assert len(made.tasks) == 5 * len(problem.tasks)
    assert plan.claim.makespan == stream.stream.begins + stream.claim.makespan + 4 * 180
    assert plan.claim.dram_traffic == 5 * stream.claim.dram_traffic + 128  # the weight, once
    assert check(made, plan) == ()


def test_a_plan_of_one_inference_is_not_unrolled() -> None:
    with pytest.raises(ValueError, match="no stream"):
        unrolled(worked_example.PROBLEM, worked_example.PLAN, 2)


def test_what_cannot_be_is_said_of_the_structure() -> None:
    stream = replace(worked_example.PLAN, stream=Stream(period=0, begins=-1, instances=((),) * 9))
    messages = [violation.message for violation in check(worked_example.PROBLEM, stream)]
    assert "stream: period 0 < 1 cycle" in messages
    assert "stream: begins at cycle -1 < 0" in messages
    assert any("instances of 9 tensors" in message for message in messages)
