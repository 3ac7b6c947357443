"""The bound from stages: by hand, against optima, and in spite of rounding."""

import random
from fractions import Fraction
from itertools import product
from math import ceil

import pytest

from spmilp.bounds.best import all_bounds
from spmilp.bounds.linear_program import LinearProgram, proven_minimum
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.solver import ListScheduler
from tests.oracle.small import DRAM, ProblemSketch
from tests.solvers.chains import star


def bounds_of(problem: Problem) -> dict[str, int]:
    return {bound.name: bound.value for bound in all_bounds(problem)}


def long_then_hungry(spm: int) -> Problem:
    """Return a task of 1,000 cycles, and ten in a row behind it that read 400 bytes each."""
    sketch = ProblemSketch(star(1, spm)).task("long", 1000)
    for n in range(10):
        sketch.buffer(f"w{n}", 400, starts=DRAM).task(f"t{n}", 1, reads=[f"w{n}"], after=[n])
    return sketch.problem()


def written_first_and_read_last(spm: int) -> Problem:
    """Return a task that writes an output of 800 bytes, forty that load 40 each, and its reader."""
    sketch = ProblemSketch(star(1, spm, setup=0)).buffer("out", 800, ends=DRAM)
    sketch.task("writes", 1, writes=["out"])
    for n in range(40):
        sketch.buffer(f"w{n}", 40, starts=DRAM).task(f"t{n}", 1, reads=[f"w{n}"], after=[n])
    return sketch.task("reads", 1, reads=["out"], after=[40]).problem()


def test_what_does_not_fit_beside_is_loaded_after_the_work_that_it_cannot_hide_behind() -> None:
    """Of 4,000 bytes at most 1,000 come before the long task ends; 8 of the others each cycle."""
    problem = long_then_hungry(spm=1000)
    bounds = bounds_of(problem)

    assert bounds["stages"] >= 1000 + 3000 // 8
    assert bounds["work"] < bounds["stages"]
    assert bounds["traffic"] < bounds["stages"]
    plan = ListScheduler().solve(problem, SolveOptions()).plan
    assert bounds["stages"] <= plan.claim.makespan


def test_in_ample_scratchpads_all_of_it_comes_before() -> None:
    assert bounds_of(long_then_hungry(spm=4000))["stages"] < 1000 + 400 // 8


@pytest.mark.parametrize("spm", [1000, 1300, 2600])
def test_an_output_that_is_read_lies_on_the_chip_once_and_is_stored_once(spm: int) -> None:
    """The plan keeps it and loads the rest beside it; a bound above that would refuse the plan."""
    problem = written_first_and_read_last(spm)
    plan = ListScheduler().solve(problem, SolveOptions()).plan

    assert bounds_of(problem)["stages"] <= plan.claim.makespan


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.full
def test_what_the_dual_proves_is_at_most_the_minimum_and_near_it(seed: int) -> None:
    """Rows ``sum of distinct variables >= least``, minimised exactly by enumeration of vertices:
    with costs of 1 and one row per pair the minimum is at half-integral points."""
    draw = random.Random(seed)
    program = LinearProgram()
    scale = draw.choice((1e-3, 1.0, 1e7))
    names = [program.variable(most=10.0 * scale, cost=1.0) for _ in range(4)]
    rows = []
    for a in names:
        for b in names[:a]:
            least = draw.randint(0, 7)
            rows.append((a, b, least))
            program.at_least(least * scale, [(a, 1.0), (b, 1.0)])
    best = min(
        sum(point)
        for point in product((Fraction(n, 2) for n in range(15)), repeat=4)
        if all(point[a] + point[b] >= least for a, b, least in rows)
    )

    exact = best * Fraction(scale)
    proven = proven_minimum(program, 1000)
    assert proven <= ceil(exact)
    assert proven >= exact * (1 - Fraction(1, 10**9)) - 1


def test_a_program_that_is_not_solved_proves_nothing() -> None:
    program = LinearProgram()
    program.at_least(5.0, [(program.variable(most=10.0, cost=1.0), 1.0)])
    program.at_least(11.0, [(0, 1.0)])

    assert proven_minimum(program, 1000) == 0
