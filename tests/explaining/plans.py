"""Plans that a solver has made, on which what an analysis says is looked up again."""

from functools import cache

import spmilp
from benchmarks.generated import generated_problem
from spmilp.explaining.slow import Analysis, analyse
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem

SIZES = ((60, 4),)
"""Tasks and cores."""


@cache
def planned(tasks: int, cores: int) -> tuple[Problem, Plan]:
    """Return a generated problem, and the plan of one pass of the list scheduler."""
    problem = generated_problem(tasks, cores)
    result = spmilp.solve(problem, solver="greedy:locality/round_robin")
    assert result.plan is not None
    return problem, result.plan


@cache
def analysed(tasks: int, cores: int) -> Analysis:
    """Return its analysis."""
    return analyse(*planned(tasks, cores))
