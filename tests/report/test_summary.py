"""The figures of a plan."""

import pytest

from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.result import Result
from spmilp.solvers.base import SolverResult, SolveStatus


def result_of(problem: Problem, plan: Plan, bound: int) -> Result:
    answer = SolverResult(
        status=SolveStatus.FEASIBLE, plan=plan, bound=bound, bound_source="critical path"
    )
    return Result(problem=problem, answer=answer)


def test_the_figures_of_the_plan_by_hand(problem: Problem, plan: Plan) -> None:
    result = result_of(problem, plan, bound=54)
    data = result.data()

    expected = {"makespan": 72, "objective": 72, "bound": 54, "gap": 0.25, "tasks": 2}
    expected |= {"dram_traffic": 96, "compulsory_dram_traffic": 96, "transfers": 3}
    assert {name: data[name] for name in expected} == expected
    assert data["makespan_seconds"] == pytest.approx(72e-6)
    assert [core["utilisation"] for core in data["cores"]] == [pytest.approx(20 / 72)] * 2
    assert data["memories"] == [
        {"memory": "spm0", "kind": "spm", "peak": 96, "capacity": 256},
        {"memory": "spm1", "kind": "spm", "peak": 192, "capacity": 256},
    ]
    assert data["unverified"] == ["dma.rate"]
    remarks = {name: remark for name, _, remark in result.rows()}
    assert remarks["peak SPM"] == "75.0% of 256 B in spm1"
    assert remarks["DRAM traffic"] == "1.00 × compulsory 96 B"
