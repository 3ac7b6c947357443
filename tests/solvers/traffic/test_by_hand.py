"""Small problems on one core, whose least traffic can be told by hand."""

from dataclasses import replace

import pytest

from benchmarks.exact.cosma.setting import compulsory_bytes, problem_of
from spmilp.checker.check import check
from spmilp.machine.machine import ByteRange
from spmilp.plan.plan import Plan
from spmilp.policies.cosma import Network, Operator
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem, Slice
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.schedule.solver import ListScheduler
from spmilp.solvers.traffic.solver import Residency
from tests.solvers.fork import FORK

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
"""Tensor 1 waits while "c" runs: 30 + 20 + 20 bytes, more than the 55 of the largest operator."""

OFTEN = Network(
    name="x returns twice",
    sizes=(10, 30, 20, 20, 5, 20, 20, 5),
    operators=(
        *WAITING.operators,
        Operator(name="e", reads=(4,), writes=5),
        Operator(name="f", reads=(5,), writes=6),
        Operator(name="g", reads=(1, 6), writes=7),
    ),
    outputs=frozenset({7}),
)


def solved(problem: Problem) -> Plan:
    """Return the plan, which the checker accepts."""
    plan = Residency().solve(problem, SolveOptions()).plan
    assert check(problem, plan) == ()
    return plan


def extra(network: Network, problem: Problem) -> int:
    return solved(problem).claim.dram_traffic - compulsory_bytes(network)


def on(problem: Problem, **changes: object) -> Problem:
    """Return the problem with another scratchpad."""
    dram, spm = problem.machine.memories
    machine = replace(problem.machine, memories=(dram, replace(spm, **changes)))  # type: ignore[arg-type]
    return replace(problem, machine=machine)


def test_what_finds_no_room_is_stored_and_loaded_again() -> None:
    assert extra(WAITING, problem_of(WAITING, 70)) == 0
    assert extra(WAITING, problem_of(WAITING, 69)) == 30 + 30


def test_what_is_loaded_again_twice_is_stored_once() -> None:
    assert extra(OFTEN, problem_of(OFTEN, 69)) == 30 + 30 + 30


def test_a_constant_is_loaded_again_and_never_stored() -> None:
    # The input of 30 bytes is read before and after "b" and "c", beside which it has no space.
    last = Operator(name="d", reads=(0, 3), writes=4)
    operators = (*WAITING.operators[:3], last)
    network = replace(WAITING, name="weight", sizes=(30, 10, 30, 30, 5), operators=operators)

    assert extra(network, problem_of(network, 65)) == 30


def test_an_output_that_is_read_again_is_stored_once() -> None:
    waiting = replace(WAITING, outputs=frozenset({1, 4}))

    assert extra(waiting, problem_of(waiting, 69)) == 30


def test_tasks_change_places_where_that_saves_bytes() -> None:
    assert extra(FORK, problem_of(FORK, 100)) == 0


def test_reserved_bytes_and_alignment_count() -> None:
    problem = problem_of(WAITING, 86)

    assert extra(WAITING, on(problem, reserved=(ByteRange(0, 16),))) == 0
    # Between them 40 bytes, where two of 30, 20 and 20 have to lie in 36 or 34.
    assert extra(WAITING, on(problem, reserved=(ByteRange(36, 52),))) == 60
    # With offsets at multiples of 16, they take 32 bytes each.
    assert extra(WAITING, on(problem_of(WAITING, 80), alignment=16)) == 60
    assert extra(WAITING, on(problem_of(WAITING, 96), alignment=16)) == 0


def test_scratch_leaves_less_room() -> None:
    problem = problem_of(WAITING, 75)
    tasks = [replace(task, scratch=5 if task.name == "c" else 0) for task in problem.tasks]

    assert extra(WAITING, replace(problem, tasks=tuple(tasks))) == 0
    tasks = [replace(task, scratch=6 if task.name == "c" else 0) for task in problem.tasks]
    assert extra(WAITING, replace(problem, tasks=tuple(tasks))) == 60


def test_a_result_in_place_of_an_operand_saves_room() -> None:
    problem = problem_of(WAITING, 55)
    tasks = list(problem.tasks)
    tasks[2] = replace(tasks[2], in_place=((2, 3),))

    assert extra(WAITING, problem) == 60
    assert extra(WAITING, replace(problem, tasks=tuple(tasks))) == 0


def test_of_a_large_buffer_only_the_part_is_stored_that_is_read() -> None:
    problem = problem_of(WAITING, 69)
    part = Slice(index=5, buffer=1, start=(20,), extent=(10,), bytes=10)
    tasks = list(problem.tasks)
    tasks[3] = replace(tasks[3], reads=(5, 3))

    assert (
        extra(WAITING, replace(problem, slices=(*problem.slices, part), tasks=tuple(tasks))) == 20
    )


@pytest.mark.parametrize("quantity", [Quantity.MAKESPAN, Quantity.PEAK_SPM])
def test_for_other_objectives_the_start_is_the_answer(quantity: Quantity) -> None:
    problem = replace(problem_of(WAITING, 69), objective=Objective.of(quantity))
    start = ListScheduler().solve(problem, SolveOptions())

    found = Residency().solve(problem, SolveOptions())
    assert found == start


def test_a_hint_that_is_optimal_is_kept() -> None:
    problem = problem_of(WAITING, 70)
    first = Residency().solve(problem, SolveOptions())

    again = Residency().solve(problem, SolveOptions(), first.plan)
    assert again.status is SolveStatus.OPTIMAL
    assert again.plan.residencies == first.plan.residencies


def test_what_fits_nowhere_is_told_in_words() -> None:
    found = Residency().solve(problem_of(WAITING, 54), SolveOptions())

    assert found.status is SolveStatus.INFEASIBLE
    assert "55 B" in found.reason
