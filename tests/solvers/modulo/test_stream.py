"""Streams made of plans: valid however many inferences are written out, and shorter than plans."""

from dataclasses import replace

import pytest

import spmilp
from spmilp.checker.check import check
from spmilp.errors import SpmilpError
from spmilp.machine.machine import MemoryKind
from spmilp.machine.read import load_machine
from spmilp.plan.plan import Plan
from spmilp.plan.unrolled import enough_inferences, unrolled
from spmilp.problem.problem import Buffer, BufferKind, Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.modulo.stream import stream_of
from tests.checker import worked_example
from tests.checker.mutations.subjects import planned, small_network, tightened
from tests.oracle.solver import solver_named
from tests.solvers.tiny_problems import tiny_problem


def made(problem: Problem, plan: Plan) -> Plan:
    """Return a stream that both ways to judge it accept."""
    found = stream_of(problem, plan)
    assert check(problem, found) == ()
    inferences = enough_inferences(found)
    if inferences <= 30:
        assert check(*unrolled(problem, found, inferences)) == ()
    return found


def starts_on_chip(problem: Problem, buffer: Buffer) -> bool:
    """Say whether a buffer that is no weight starts elsewhere than in DRAM."""
    at = buffer.starts_in
    is_dram = at is None or problem.machine.memories[at].kind is MemoryKind.DRAM
    return not is_dram and not buffer.is_constant


def with_weights(problem: Problem) -> Problem:
    """Return a problem in which all that is there at first is a weight."""
    buffers = (
        replace(one, kind=BufferKind.WEIGHT) if one.starts_in is not None else one
        for one in problem.buffers
    )
    return replace(problem, buffers=tuple(buffers))


@pytest.mark.parametrize(("machine", "period"), [("mesh4x4", 40), ("edge16", 80), ("gap9", 1200)])
def test_inferences_overlap_and_weights_stay(machine: str, period: int) -> None:
    problem = small_network(load_machine(machine).machine)
    plan = planned(problem, "list")
    found = made(problem, plan)
    assert found.stream is not None
    assert found.stream.period <= period < plan.claim.makespan
    assert found.claim.dram_traffic < plan.claim.dram_traffic
    assert stream_of(problem, plan) == found


@pytest.mark.full
def test_streams_of_many_problems_are_valid() -> None:
    shorter = plans = refused = 0
    for number in range(300):
        problem = tiny_problem(number % 150, most_tasks=4)
        problem = problem if number < 150 else with_weights(problem)
        plan = solver_named("list").solve(problem, SolveOptions()).plan
        if plan is None or any(starts_on_chip(problem, one) for one in problem.buffers):
            continue
        try:
            found = made(problem, plan)
        except SpmilpError:
            refused += 1
            continue
        plans += 1
        assert found.stream is not None
        assert found.stream.period <= plan.claim.makespan
        shorter += found.stream.period < plan.claim.makespan
    assert plans > 120
    assert refused < 10
    assert shorter > plans // 2


@pytest.mark.full
@pytest.mark.parametrize("machine", ["cell_be", "gap8", "stream_quad", "vdla", "xdna1"])
def test_streams_keep_to_small_memories(machine: str) -> None:
    problem = small_network(tightened(load_machine(machine).machine))
    made(problem, planned(problem, "list"))


def test_data_that_starts_in_a_scratchpad_is_refused() -> None:
    buffers = tuple(replace(one, kind="intermediate") for one in worked_example.PROBLEM.buffers)
    problem = replace(worked_example.PROBLEM, buffers=buffers)
    with pytest.raises(SpmilpError, match="starts in a scratchpad and is no weight"):
        stream_of(problem, worked_example.PLAN)


def test_what_nobody_reads_is_not_loaded() -> None:
    problem = with_weights(tiny_problem(978))
    plan = planned(problem, "list")
    read = {row for run in plan.placements for row in run.reads}
    assert any(read.isdisjoint(move.destinations) for move in plan.transfers)
    assert len(made(problem, plan).transfers) < len(plan.transfers)


def test_a_plan_that_overwrites_a_given_weight_makes_no_stream() -> None:
    problem = with_weights(tiny_problem(82))
    with pytest.raises(SpmilpError, match=r"makes no stream: residency 0 .* share bytes"):
        stream_of(problem, planned(problem, "list"))


def test_a_result_becomes_a_stream() -> None:
    result = spmilp.solve(small_network(load_machine("mesh4x4").machine), solver="list")
    stream = result.stream()
    assert stream.violations == ()
    assert stream.plan is not None
    assert stream.plan.stream is not None
    assert stream.plan.stream.period < (result.makespan or 0)
