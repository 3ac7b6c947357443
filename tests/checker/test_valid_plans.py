"""Plans that break no rule: the one by hand, and one with more of everything than 256."""

from dataclasses import replace
from pathlib import Path

from checker.mutations.subjects import planned
from checker.worked_example import PLAN, PROBLEM, broken
from solvers.chains import chain, star
from spmilp.checker.check import check
from spmilp.machine.machine import Machine
from spmilp.plan.read import read_plan
from spmilp.plan.write import plan_text
from spmilp.problem.problem import Problem
from spmilp.problem.read import read_problem
from spmilp.problem.write import problem_text

MANY = 258


def test_the_worked_example_is_valid() -> None:
    assert broken(PLAN, PROBLEM) == {}


def with_dram_last(problem: Problem) -> Problem:
    """Return the problem on the same machine, whose DRAM is the last memory, not the first."""
    machine = problem.machine
    last = len(machine.memories) - 1
    memories = (*machine.memories[1:], machine.memories[0])
    turned: Machine = replace(
        machine,
        memories=tuple(replace(memory, index=index) for index, memory in enumerate(memories)),
        cores=tuple(replace(core, memory=core.memory - 1) for core in machine.cores),
        engines=tuple(replace(engine, owner=engine.owner - 1) for engine in machine.engines),
    )
    buffers = tuple(
        replace(
            buffer,
            starts_in=None if buffer.starts_in is None else last,
            ends_in=None if buffer.ends_in is None else last,
        )
        for buffer in problem.buffers
    )
    tensors = tuple(replace(tensor, memory=last) for tensor in problem.tensors)
    return replace(problem, machine=turned, buffers=buffers, tensors=tensors)


def test_a_plan_with_more_than_256_of_everything_is_valid(tmp_path: Path) -> None:
    """Equal numbers are one object in Python only up to 256."""
    strips = chain(star(MANY, 900), layers=1, strips=MANY, rows=2, row=8, weights=16)
    problem = with_dram_last(strips)
    plan = planned(problem, "greedy:round_robin/layer_by_layer")
    assert min(len(plan.placements), len(plan.transfers), len(problem.machine.memories)) > 256
    assert max(placement.core for placement in plan.placements) == MANY - 1

    (tmp_path / "problem.json").write_text(problem_text(problem))
    (tmp_path / "plan.json").write_text(plan_text(plan, problem))
    read = read_problem(tmp_path / "problem.json")
    assert check(read, read_plan(tmp_path / "plan.json")) == ()
