"""Plans that break no rule: the one by hand, and one with more of everything than 256."""

from dataclasses import replace

import pytest

from checker.mutations.subjects import planned
from checker.worked_example import PLAN, PROBLEM, broken
from solvers.chains import chain, star
from spmilp.checker.check import check
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Claim, Plan, Residency
from spmilp.plan.read import read_plan
from spmilp.plan.write import plan_text
from spmilp.problem.problem import Buffer, BufferKind, Problem, Slice
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


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Problem, Plan]:
    """Return a plan with more than 256 of everything, as it is read from its file."""
    folder = tmp_path_factory.mktemp("large")
    strips = chain(star(MANY, 900), layers=1, strips=MANY, rows=2, row=8, weights=16)
    problem = with_dram_last(strips)
    plan = planned(problem, "greedy:round_robin/layer_by_layer")
    assert min(len(plan.placements), len(plan.transfers), len(problem.machine.memories)) > 256
    assert max(placement.core for placement in plan.placements) == MANY - 1
    (folder / "problem.json").write_text(problem_text(problem))
    (folder / "plan.json").write_text(plan_text(plan, problem))
    return read_problem(folder / "problem.json"), read_plan(folder / "plan.json")


def test_a_plan_with_more_than_256_of_everything_is_valid(large: tuple[Problem, Plan]) -> None:
    """Equal numbers are one object in Python only up to 256."""
    assert check(*large) == ()


def test_what_is_wrong_behind_the_first_256_is_found(large: tuple[Problem, Plan]) -> None:
    problem, plan = large
    dram = len(problem.machine.memories) - 1
    two = replace(plan, tensors=(plan.tensors[0], plan.tensors[0] + 8, *plan.tensors[2:]))
    assert "dram_tensors" in {violation.rule for violation in check(problem, two)}
    stray = Residency(
        index=len(plan.residencies), slice=None, memory=int(str(dram)), offset=plan.tensors[0],
        bytes=8, start=0, end=1, filled_by_task=None, filled_by_transfer=None,
    )  # fmt: skip
    more = replace(plan, residencies=(*plan.residencies, stray))
    found = {violation.rule for violation in check(problem, more)}
    assert found == {"dram_tensors", "filled_as_stated"}


def test_an_output_in_a_memory_before_its_own_is_not_stored(large: tuple[Problem, Plan]) -> None:
    problem, plan = large
    written = plan.placements[0].writes[0]
    last = max(move.end for move in plan.transfers)
    residencies = list(plan.residencies)
    (stored,) = [move for move in plan.transfers if move.source == written]
    residencies[written] = replace(residencies[written], end=last)
    there = residencies[stored.destinations[0]]
    residencies[there.index] = replace(there, end=stored.end)
    found = check(problem, replace(plan, residencies=tuple(residencies)))
    assert [violation.rule for violation in found] == ["outputs_stored"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Problem, Plan]:
    """Return 300 weights that stay in the last of 300 scratchpads, and nothing to do."""
    memory = 300
    buffers = tuple(
        Buffer(index=i, name=f"w{i}", kind=BufferKind.WEIGHT, shape=(8,), starts_in=memory)
        for i in range(300)
    )
    slices = tuple(Slice(index=i, buffer=i, start=(0,), extent=(8,), bytes=8) for i in range(300))
    residencies = tuple(
        Residency(
            index=i, slice=i, memory=memory, offset=8 * i, bytes=8, start=0, end=1,
            filled_by_task=None, filled_by_transfer=None,
        )
        for i in range(300)
    )  # fmt: skip
    machine = star(memory, 1 << 14)
    problem = Problem(name="kept", machine=machine, buffers=buffers, slices=slices, tasks=())
    claim = Claim(
        makespan=0, dram_traffic=0, energy=0, peak_spm=2400, bound=0, bound_source="no task"
    )
    plan = Plan(placements=(), residencies=residencies, claim=claim, solver="hand")
    folder = tmp_path_factory.mktemp("kept")
    (folder / "problem.json").write_text(problem_text(problem))
    (folder / "plan.json").write_text(plan_text(plan, problem))
    return read_problem(folder / "problem.json"), read_plan(folder / "plan.json")


def test_three_hundred_weights_may_stay_where_they_are(kept: tuple[Problem, Plan]) -> None:
    assert check(*kept) == ()


def test_the_last_of_three_hundred_weights_is_there_once(kept: tuple[Problem, Plan]) -> None:
    problem, plan = kept
    again = replace(plan.residencies[299], index=300, offset=2400)
    found = check(problem, replace(plan, residencies=(*plan.residencies, again)))
    assert {violation.rule for violation in found} == {"filled_as_stated", "claims"}
