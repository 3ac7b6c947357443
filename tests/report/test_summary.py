"""The figures of a plan."""

from dataclasses import replace

import pytest

from spmilp.plan.plan import Plan
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.quantities import relative_gap
from spmilp.report.summary import summarise


def test_the_figures_of_the_plan_by_hand(problem: Problem, plan: Plan) -> None:
    summary = summarise(problem, plan, bound=54, bound_source="critical path")

    assert (summary.makespan, summary.objective, summary.bound) == (72, 72, 54)
    assert summary.gap == pytest.approx(0.25)
    assert summary.makespan_seconds == pytest.approx(72e-6)
    assert (summary.dram_traffic, summary.compulsory_dram_traffic) == (96, 96)
    assert (summary.tasks, summary.transfers) == (2, 3)
    assert [core.utilisation for core in summary.cores] == [pytest.approx(20 / 72)] * 2
    assert [(use.memory, use.peak, use.capacity) for use in summary.memories] == [
        ("spm0", 96, 256),
        ("spm1", 192, 256),
    ]
    assert summary.fullest is not None
    assert summary.fullest.memory == "spm1"
    assert summary.unverified == ("dma.rate",)


def test_the_objective_is_the_problems_first_quantity(problem: Problem, plan: Plan) -> None:
    frugal = replace(problem, objective=Objective.of(Quantity.DRAM_TRAFFIC))
    summary = summarise(frugal, plan, bound=96, bound_source="compulsory traffic")

    assert (summary.quantity, summary.objective, summary.gap) == (Quantity.DRAM_TRAFFIC, 96, 0.0)


def test_no_frequency_means_no_seconds(problem: Problem, plan: Plan) -> None:
    timeless = replace(problem, machine=replace(problem.machine, frequency=None))
    assert summarise(timeless, plan, 54, "critical path").makespan_seconds is None


def test_the_gap_of_an_objective_of_zero_is_zero() -> None:
    assert relative_gap(0, 0) == 0.0
