"""Every solver by its name: valid plans, bounds below them, and the same proven optimum."""

from functools import cache
from itertools import product
from pathlib import Path

import pytest

import spmilp
from tests.acceptance.doors import PROBLEMS, Run, assert_valid

OWN = ("auto", "list", "search", "lns", "residency", "peak", "cpsat", "milp")
PUBLISHED = (
    *("onsram", "cosma", "toplib", "rammer", "cdm", "set", "stream", "tvm", "tvm:serial"),
    "belady",
)
GREEDY = "greedy:locality/round_robin"
TINY = ("residual-6t-1c-tight-balanced", "branch-6t-2c-crossbar-nolinks-tight-compute", "by hand")
"""One core, two cores and sixteen."""
FOR = {"residency": "dram_traffic", "peak": "peak_spm", "cosma": "dram_traffic"}
"""What solvers make small that do not make the makespan small."""


def problem_of(name: str, tiny: Path) -> Path:
    return tiny / "problem.json" if name == "by hand" else PROBLEMS / f"{name}.json"


def assert_consistent(result: "spmilp.Result", folder: Path) -> None:
    """What a result says of itself and of its plan holds together."""
    if result.plan is None:
        assert str(result.status) in ("unknown", "infeasible")
        assert result.reason
        return
    assert result.violations == ()
    assert result.objective is not None
    assert result.bound is not None
    assert result.bound <= result.objective
    assert (str(result.status) == "optimal") == (result.bound == result.objective)
    assert result.gap == pytest.approx((result.objective - result.bound) / result.objective)
    result.save(folder)
    assert_valid(folder)


def answer(solver: str, problem: Path, seconds: float) -> "spmilp.Result":
    return spmilp.solve(problem, solver=solver, objective=FOR.get(solver), time_limit=seconds)


@pytest.mark.parametrize("solver", [*OWN, *PUBLISHED, GREEDY])
def test_a_solver_gives_a_valid_plan_or_says_why_not(
    solver: str, tiny: Path, tmp_path: Path
) -> None:
    result = answer(solver, problem_of(TINY[1], tiny), 1.0)
    assert_consistent(result, tmp_path)
    if solver in OWN and solver != "milp":
        assert result.plan is not None


@pytest.mark.full
@pytest.mark.parametrize(
    ("solver", "problem"), [*product((*OWN, *PUBLISHED, GREEDY), (TINY[0], TINY[2]))]
)
def test_a_solver_gives_valid_plans_on_one_core_and_on_sixteen(
    solver: str, problem: str, tiny: Path, tmp_path: Path
) -> None:
    assert_consistent(answer(solver, problem_of(problem, tiny), 2.0), tmp_path)


SEVERAL = (
    *("autoencoder-10t-1c-exact-traffic", "branch-15t-4c-mesh2x2-remote-tight-balanced"),
    "stages-24t-4c-crossbar-staged-tight-compute",
)


@pytest.mark.full
@pytest.mark.parametrize(("solver", "problem"), [*product(PUBLISHED, SEVERAL)])
def test_a_published_policy_gives_valid_plans_or_says_why_not(
    solver: str, problem: str, tmp_path: Path
) -> None:
    assert_consistent(answer(solver, PROBLEMS / f"{problem}.json", 2.0), tmp_path)


def test_the_command_lists_every_solver_by_name(run: Run) -> None:
    listed = [row["name"] for row in run("solvers", "--json").json["solvers"]]
    assert {*OWN, *PUBLISHED} <= {*listed}
    assert any(name.startswith("greedy:") for name in listed)


def test_exact_solvers_prove_the_same_optimum() -> None:
    problem = three_tasks()
    found = {name: spmilp.solve(problem, solver=name, time_limit=20) for name in EXACT}
    assert {str(result.status) for result in found.values()} == {"optimal"}
    assert len({result.objective for result in found.values()}) == 1
    listed = spmilp.solve(problem, solver="list")
    assert listed.objective >= found["cpsat"].objective


EXACT = ("auto", "cpsat", "milp")


@cache
def three_tasks() -> object:
    """Return a chain and a task beside it for two small cores, with little to choose."""
    builder = spmilp.ProblemBuilder(spmilp.load_machine("vdla"))
    x = builder.input("x", (8, 8), "int8")
    first = builder.task("first", reads=[x], writes=("a", (8, 8), "int8"), cycles=100)
    second = builder.task("second", reads=[first], writes=("b", (8, 8), "int8"), cycles=50)
    builder.output(builder.task("last", reads=[second, x], writes=("c", (8, 8), "int8"), cycles=70))
    return builder.build()


@pytest.mark.full
@pytest.mark.parametrize("objective", ["makespan", "dram_traffic", "peak_spm"])
def test_exact_solvers_agree_whatever_is_made_small(objective: str) -> None:
    found = {
        name: spmilp.solve(three_tasks(), solver=name, objective=objective, time_limit=30)
        for name in EXACT
    }
    proven = {each.objective for each in found.values() if str(each.status) == "optimal"}
    assert len(proven) == 1
    assert all(each.bound <= min(proven) <= each.objective for each in found.values())


def test_no_bound_is_above_any_plan() -> None:
    problem = spmilp.load_problem(PROBLEMS / f"{TINY[1]}.json")
    bound = spmilp.bound(problem)
    assert bound.name
    assert 0 < bound.value <= 42284, "the proven optimum"
