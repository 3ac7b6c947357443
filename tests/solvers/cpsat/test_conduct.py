"""How CP-SAT behaves: limits, streaming, interrupts, statuses, ties."""

import os
import signal
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest

from benchmarks.exact.fjsp_cpsat import job_shop
from spmilp.checker.check import check
from spmilp.plan.write import plan_text
from spmilp.problem.objective import Objective, Quantity
from spmilp.solvers.base import Progress, SolveOptions, SolveStatus
from spmilp.solvers.cpsat.options import CpSatOptions
from spmilp.solvers.cpsat.solver import CpSatSolver
from spmilp.solvers.list_scheduler.solver import ListScheduler
from tests.solvers.chains import chain, star
from tests.solvers.tiny_problems import tiny_problem

JOB_SHOPS = Path(__file__).resolve().parents[4] / "shared" / "data" / "fjsp"


def test_one_task_takes_its_loads_its_cycles_and_its_store() -> None:
    problem = chain(star(1, 2048), 1, 1)
    result = CpSatSolver().solve(problem, SolveOptions())

    # The map and the weights come over one link, 256 B at 8 B a cycle with 6 cycles ahead: 38 each.
    # The task takes 50, the store of its result 38.
    assert (result.status, result.bound) == (SolveStatus.OPTIMAL, 38 + 38 + 50 + 38)
    assert result.plan is not None
    assert not check(problem, result.plan)


def test_the_same_seed_and_deterministic_limit_give_the_same_bytes() -> None:
    problem = chain(star(2, 1536), 3, 5)
    solver = CpSatSolver(CpSatOptions(deterministic_limit=0.5, tie_breaks=0.1))
    plans = [solver.solve(problem, SolveOptions(seed=3)).plan for _ in range(2)]
    texts = [plan_text(plan, problem) for plan in plans if plan is not None]

    assert len(texts) == 2
    assert texts[0] == texts[1]


def test_what_is_told_leads_to_the_result() -> None:
    told: list[Progress] = []
    problem = tiny_problem(64)
    result = CpSatSolver().solve(problem, SolveOptions(on_progress=told.append))
    values = [one.incumbent for one in told if one.incumbent is not None]
    bounds = [one.bound for one in told]

    assert result.plan is not None
    assert values == sorted(values, reverse=True)
    assert bounds == sorted(bounds)
    assert values[-1] == result.plan.claim.makespan
    assert bounds[-1] == result.bound


def test_a_gap_that_is_wide_enough_ends_the_search_at_once() -> None:
    problem = chain(star(2, 1536), 3, 5)
    start = ListScheduler().solve(problem, SolveOptions(gap=0.9)).plan
    result = CpSatSolver(CpSatOptions(tie_breaks=0.0)).solve(problem, SolveOptions(gap=0.9))

    assert start is not None
    assert result.plan is not None
    assert result.status is SolveStatus.FEASIBLE
    assert result.plan.claim.makespan == start.claim.makespan


def test_a_limit_without_a_plan_is_neither_infeasible_nor_an_error() -> None:
    problem = tiny_problem(33)  # The list scheduler finds no plan.
    solver = CpSatSolver(CpSatOptions(deterministic_limit=0.0))
    result = solver.solve(problem, SolveOptions())

    assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
    assert "limit was reached" in result.reason
    assert CpSatSolver().solve(problem, SolveOptions()).status is SolveStatus.OPTIMAL


def test_a_problem_too_large_for_the_model_is_only_retimed_and_says_so() -> None:
    problem = chain(star(2, 1536), 2, 3)
    result = CpSatSolver(CpSatOptions(literals=20)).solve(problem, SolveOptions())

    assert result.plan is not None
    assert not check(problem, result.plan)
    assert any("literals > 20" in value for _, value in result.plan.options)


def test_an_interrupt_returns_the_incumbent(interruptible: None) -> None:
    problem = chain(star(3, 1536), 4, 6)
    timer = Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))

    def interrupt_soon(progress: Progress) -> None:
        # Not before: until the list scheduler has a plan, an interrupt ends everything.
        if progress.source == "cpsat" and timer.ident is None:
            timer.start()

    result = CpSatSolver().solve(problem, SolveOptions(time_limit=60.0, on_progress=interrupt_soon))
    timer.join()

    assert result.status is SolveStatus.FEASIBLE
    assert result.plan is not None
    assert not check(problem, result.plan)


@pytest.mark.parametrize("second", [Quantity.DRAM_TRAFFIC, Quantity.ENERGY, Quantity.PEAK_SPM])
def test_later_objectives_break_ties_of_the_first(second: Quantity) -> None:
    first = Objective.of(Quantity.MAKESPAN)
    rest = tuple(q for q in first.order if q not in (Quantity.MAKESPAN, second))
    order = (Quantity.MAKESPAN, second, *rest)
    problem = replace(chain(star(2, 2048), 1, 2), objective=Objective(order))

    plans = [
        CpSatSolver(CpSatOptions(tie_breaks=spent)).solve(problem, SolveOptions()).plan
        for spent in (0.0, 5.0)
    ]

    values = [(p.claim.makespan, getattr(p.claim, second)) for p in plans if p is not None]
    assert len(values) == 2
    assert values[1] <= values[0]


def test_a_hint_that_is_better_than_the_start_is_kept() -> None:
    problem = chain(star(2, 1536), 2, 3)
    settings = CpSatOptions(deterministic_limit=0.2, tie_breaks=0.1)
    hint = CpSatSolver(settings).solve(problem, SolveOptions()).plan
    assert hint is not None
    idle = CpSatSolver(CpSatOptions(deterministic_limit=0.0))
    result = idle.solve(problem, SolveOptions(), hint)

    assert result.plan is not None
    assert result.plan.claim.makespan <= hint.claim.makespan


@pytest.mark.parametrize(
    ("name", "optimum"), [("fattahi1", 66), ("fattahi2", 107), ("fattahi3", 221)]
)
def test_job_shops_reach_the_published_optimum(name: str, optimum: int) -> None:
    if not JOB_SHOPS.exists():
        pytest.skip("data not present")
    result = CpSatSolver().solve(job_shop(JOB_SHOPS / f"{name}.txt"), SolveOptions())

    assert (result.status, result.bound) == (SolveStatus.OPTIMAL, optimum)
