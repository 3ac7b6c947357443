"""How CP-SAT behaves: limits, streaming, interrupts, statuses, ties."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.convert import read_job_shop
from spmilp.checker.check import check
from spmilp.problem.objective import Objective, Quantity
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.common.clock import Pace
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.cpsat.solver import CpSatOptions, CpSatSolver
from spmilp.solvers.exact.milp.solver import MilpSolver
from tests.oracle.small import machine, spilling
from tests.solvers.chains import chain, star
from tests.solvers.tiny_problems import tiny_problem

SOLVERS: list[Solver] = [CpSatSolver(), MilpSolver()]
JOB_SHOPS = Path(__file__).resolve().parents[5] / "shared" / "data" / "fjsp"


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("channels", "pipelined", "loads"),
    [(1, False, 38 + 38), (1, True, 36 + 38), (2, False, 4 + 32 + 32 + 2)],
)
def test_one_task_takes_its_loads_its_cycles_and_its_store(
    solver: Solver, channels: int, pipelined: bool, loads: int
) -> None:
    problem = chain(star(1, 2048), 1, 1)
    (engine,) = problem.machine.engines
    engine = replace(engine, channels=channels, pipelined=pipelined)
    problem = replace(problem, machine=replace(problem.machine, engines=(engine,)))
    result = solver.solve(problem, SolveOptions())

    # The map and the weights come over one link, 256 B at 8 B a cycle each, after 4 cycles to set
    # up and with a latency of 2. The task takes 50, the store of its result 38.
    assert (result.status, result.bound) == (SolveStatus.OPTIMAL, loads + 50 + 38)
    assert not check(problem, result.plan)


@pytest.mark.parametrize(("pipelined", "cycles"), [(False, 43), (True, 41)])
def test_bytes_are_free_once_all_is_sent(pipelined: bool, cycles: int) -> None:
    slow = replace(spilling(32, Quantity.MAKESPAN), machine=machine(32, pipelined=pipelined))
    assert [s.solve(slow, SolveOptions()).bound for s in SOLVERS] == [cycles] * 2


def test_a_limit_without_a_plan_is_neither_infeasible_nor_an_error() -> None:
    problem = tiny_problem(33)  # The list scheduler finds no plan.
    solver = CpSatSolver(CpSatOptions(deterministic_limit=0.0))
    result = solver.solve(problem, SolveOptions())

    assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
    assert "limit was reached" in result.reason
    assert CpSatSolver().solve(problem, SolveOptions()).status is SolveStatus.OPTIMAL


def test_a_problem_too_large_for_the_model_is_only_repacked_and_says_so() -> None:
    problem = chain(star(2, 1536), 2, 3)
    result = CpSatSolver(CpSatOptions(literals=20)).solve(problem, SolveOptions())

    assert not check(problem, result.plan)
    assert any("literals > 20" in value for _, value in result.plan.options)


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


@pytest.mark.parametrize(
    ("name", "optimum"), [("fattahi1", 66), ("fattahi2", 107), ("fattahi3", 221)]
)
def test_job_shops_reach_the_published_optimum(name: str, optimum: int) -> None:
    if not JOB_SHOPS.exists():
        pytest.skip("data not present")
    result = CpSatSolver().solve(read_job_shop(JOB_SHOPS / f"{name}.txt"), SolveOptions())

    assert (result.status, result.bound) == (SolveStatus.OPTIMAL, optimum)


def test_a_problem_with_too_many_transfers_to_choose_from_keeps_its_plan() -> None:
    problem = chain(star(4, 1536), layers=4, strips=6)

    context = SearchContext(problem, SolveOptions(time_limit=0.01, pace=Pace(lambda: 0.0)))
    result = CpSatSolver().search(context)

    assert check(problem, result.plan) == ()
    assert any("transfers to choose from" in value for _, value in result.plan.options)
