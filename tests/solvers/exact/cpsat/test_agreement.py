"""CP-SAT against brute force; a large run of the same is ``benchmarks/exact/agreement.py``."""

from dataclasses import replace
from random import Random

import pytest

from benchmarks.exact.agreement import contradictions
from spmilp.checker.check import check
from spmilp.machine.machine import ByteRange, MemoryKind
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.exact.cpsat.solver import CpSatSolver
from spmilp.solvers.schedule.solver import ListScheduler
from tests.oracle.small import DRAM, ProblemSketch, machine
from tests.oracle.solver import BruteForce, proven
from tests.solvers.tiny_problems import tiny_problem

WITH_PLANS = (
    *(4, 12, 20, 28, 32, 48, 60, 288),
    *(5, 21, 37, 41, 49, 113),
    *(6, 22, 26, 46, 50, 54, 66, 70, 82),
    *(3, 31, 43, 51, 71, 91, 103),
)
"""Problems of each objective that brute force solves in about a second.

Of the quantities behind the first nothing is claimed; in these problems they are the best, too.
"""

WITHOUT_PLANS = (0, 1, 2, 8, 9, 14, 74, 1249)


def few(numbers: tuple[int, ...], step: int) -> list[object]:
    """Return parameters of which only one in so many is not marked full."""
    return [
        number if place % step == 0 else pytest.param(number, marks=pytest.mark.full)
        for place, number in enumerate(numbers)
    ]


@pytest.mark.parametrize("number", few(WITH_PLANS, 5))
def test_cpsat_and_brute_force_prove_the_same_optimum(number: int) -> None:
    problem = tiny_problem(number)
    results = {
        "bruteforce": BruteForce().solve(problem, SolveOptions()),
        "cpsat": CpSatSolver().solve(problem, SolveOptions()),
    }

    assert [result.status for result in results.values()] == [SolveStatus.OPTIMAL] * 2
    assert not list(contradictions(problem, results))
    assert proven(problem, results["cpsat"].plan) == proven(problem, results["bruteforce"].plan)


@pytest.mark.parametrize("number", few(WITHOUT_PLANS, 3))
def test_cpsat_proves_that_there_is_no_plan_and_says_why(number: int) -> None:
    problem = tiny_problem(number)
    result = CpSatSolver().solve(problem, SolveOptions())

    assert BruteForce().solve(problem, SolveOptions()).status is SolveStatus.INFEASIBLE
    assert (result.status, result.plan) == (SolveStatus.INFEASIBLE, None)
    assert " B" in result.reason or "engine" in result.reason


@pytest.mark.parametrize(("alignment", "status"), [(1, "optimal"), (4, "infeasible")])
def test_brute_force_finds_congruent_addresses_or_there_is_no_plan(
    alignment: int, status: str
) -> None:
    # The first byte is reserved, so 16 bytes of 17 lie at address 1; those of DRAM must do so, too.
    sketch = ProblemSketch(machine(17, reserved=(ByteRange(0, 1),))).buffer("a", 16, starts=DRAM)
    problem = sketch.task("t", 5, reads=["a"]).problem()
    dram, spm = problem.machine.memories
    engines = tuple(replace(engine, congruence=4) for engine in problem.machine.engines)
    memories = (replace(dram, alignment=alignment), spm)
    problem = replace(problem, machine=replace(problem.machine, engines=engines, memories=memories))
    assert BruteForce().solve(problem, SolveOptions()).status == status


def ending_in_a_scratchpad(number: int) -> Problem:
    """Return a tiny problem whose last output must end in one of its scratchpads, not in DRAM."""
    problem = tiny_problem(number)
    spms = [m.index for m in problem.machine.memories if m.kind is MemoryKind.SPM]
    last = [b for b in problem.buffers if b.ends_in is not None and b.starts_in is None][-1]
    gone = -1 if last.place is None else last.place.tensor
    buffers = []
    for buffer in problem.buffers:
        place = buffer.place
        if buffer is last:
            ends_in = Random(number).choice(spms)
            buffers.append(replace(buffer, ends_in=ends_in, place=None))
        elif place is not None and place.tensor > gone >= 0:
            buffers.append(replace(buffer, place=replace(place, tensor=place.tensor - 1)))
        else:
            buffers.append(buffer)
    tensors = [tensor for tensor in problem.tensors if tensor.index != gone]
    return replace(
        problem,
        buffers=tuple(buffers),
        tensors=tuple(replace(tensor, index=index) for index, tensor in enumerate(tensors)),
    )


@pytest.mark.full
def test_outputs_that_end_in_the_scratchpad_of_another_core_need_no_hint() -> None:
    """The list scheduler has no plan for these: nothing says how many residencies it takes."""
    elsewhere = 0
    for number in (20, 26, 116, 119, 142, 172, 193, 261):
        problem = ending_in_a_scratchpad(number)
        assert ListScheduler().solve(problem, SolveOptions()).plan is None
        best = BruteForce().solve(problem, SolveOptions())
        found = CpSatSolver().solve(problem, SolveOptions())

        assert (found.status, found.bound) == (SolveStatus.OPTIMAL, best.bound)
        assert check(problem, found.plan) == ()
        last = [b for b in problem.buffers if b.ends_in is not None and b.starts_in is None][-1]
        for placement in found.plan.placements:
            written = problem.tasks[placement.task].writes
            memory = problem.machine.cores[placement.core].memory
            elsewhere += last.index in written and memory != last.ends_in
    assert elsewhere > 0
