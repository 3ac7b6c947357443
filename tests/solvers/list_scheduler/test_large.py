"""The list scheduler on machines whose memories are too many to know all routes between them."""

import pytest

from benchmarks.generated import generated_problem
from spmilp.checker.check import check
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.kernels.tables import MOST_MEMORIES_WITH_ALL_PAIRS
from spmilp.solvers.list_scheduler.solver import ListScheduler


@pytest.mark.parametrize(
    "rules", [("round_robin", "layer_by_layer"), ("locality", "critical_path")]
)
def test_plans_for_many_memories_are_valid(rules: tuple[str, str]) -> None:
    problem = generated_problem(500, 100)
    assert len(problem.machine.memories) > MOST_MEMORIES_WITH_ALL_PAIRS

    result = ListScheduler(rules).solve(problem, SolveOptions())

    assert result.plan is not None
    assert check(problem, result.plan) == ()
