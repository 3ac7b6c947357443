"""Solvers keep to pins: the exact ones agree on what is best, and the others' plans are valid."""

import pytest

from spmilp.checker.check import check
from spmilp.explaining.chain import AnalysedPlan
from spmilp.explaining.slow import why_slow
from spmilp.problem.builder import ProblemBuilder
from spmilp.problem.named_pins import read_pins, with_pins
from spmilp.problem.pins import PinKind
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from tests.oracle.solver import solver_named
from tests.pins.pinned_problems import pinned_problem
from tests.solvers.chains import star

OPTIONS = SolveOptions(time_limit=60.0)
PROVEN = (SolveStatus.OPTIMAL, SolveStatus.INFEASIBLE)


def solved(problem: Problem, solver: str, options: SolveOptions = OPTIONS) -> SolverResult:
    """Let a solver find a plan, which the checker accepts with all pins."""
    result = solver_named(solver).solve(problem, options)
    assert result.plan is None or check(problem, result.plan) == ()
    return result


def best(problem: Problem, solver: str) -> tuple[SolveStatus, int | None]:
    """Return what a solver proves of the first quantity."""
    result = solved(problem, solver)
    assert result.status in PROVEN, result.reason
    if result.plan is None:
        return result.status, None
    return result.status, result.plan.claim.of(problem.objective.first)


@pytest.mark.parametrize("number", [1, 3, 5, 12, 17, 18, 20, 21, 22, 26])
def test_cpsat_and_brute_force_agree_on_pinned_problems(number: int) -> None:
    problem = pinned_problem(number, frozenset(PinKind) - {PinKind.RESIDENT}, most_tasks=2)
    assert best(problem, "cpsat") == best(problem, "bruteforce")


@pytest.mark.parametrize("number", [3, 4, 9, 12, 25, 33])
def test_cpsat_and_milp_agree_on_pinned_problems(number: int) -> None:
    problem = pinned_problem(number, most_tasks=2)
    assert best(problem, "cpsat") == best(problem, "milp")


def two_cores() -> Problem:
    """Two chains of two tasks on two cores that share nothing but DRAM."""
    b = ProblemBuilder(star(2, 1024), name="two chains")
    w = b.weight("w", (64,), "int8")
    for n in range(2):
        x = b.input(f"x{n}", (64,), "int8")
        y = b.task(f"a{n}", reads=[x, w], writes=(f"y{n}", (64,), "int8"), cycles=40)
        b.output(b.task(f"b{n}", reads=[y, w], writes=(f"z{n}", (64,), "int8"), cycles=40))
    return b.build()


EACH = {
    "cores": {"tasks": [{"task": ["a*", "b0"], "cores": "core1"}]},
    "forbidden": {"forbid_cores": "core0"},
    "not before": {"tasks": [{"task": "a0", "not_before": 300}]},
    "not after": {"tasks": [{"task": "a1", "not_after": 90}]},
    "late end": {"tasks": [{"task": "a1", "not_after": 200}]},
    "memory": {"buffers": [{"buffer": "y0", "memory": "spm1"}]},
    "address": {"buffers": [{"buffer": "y0", "memory": "spm1", "address": 512}]},
    "resident": {"buffers": [{"buffer": "w", "memory": ["spm0", "spm1"], "resident": True}]},
}


@pytest.mark.parametrize("kind", EACH)
def test_auto_takes_every_pin(kind: str) -> None:
    problem = with_pins(two_cores(), read_pins(EACH[kind]))
    assert problem.pins
    assert solved(problem, "auto", SolveOptions(time_limit=2.0)).plan is not None


@pytest.mark.parametrize("solver", ["list", "search", "lns", "residency", "peak", "rammer"])
def test_heuristics_keep_to_cores_and_to_starts(solver: str) -> None:
    pins = {
        "forbid_cores": "core0",
        "tasks": [{"task": "a0", "not_before": 300}, {"task": "a1", "not_before": 77}],
    }
    problem = with_pins(two_cores(), read_pins(pins))
    plan = solved(problem, solver).plan
    assert plan is not None
    assert {placement.core for placement in plan.placements} == {1}
    assert plan.placements[0].start >= 300
    assert len(plan.placements) == len(problem.tasks)


@pytest.mark.parametrize("kind", ["not after", "address", "resident"])
@pytest.mark.parametrize("solver", ["lns", "residency", "rammer"])
def test_a_solver_refuses_by_name_what_it_does_not_take(solver: str, kind: str) -> None:
    problem = with_pins(two_cores(), read_pins(EACH[kind]))
    result = solver_named(solver).solve(problem, OPTIONS)
    assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
    assert result.reason.startswith(f"solver {solver} does not take pins of this kind: ")


@pytest.mark.parametrize(
    ("solver", "kind"),
    [
        ("list", "address"),
        ("list", "resident"),
        ("list", "late end"),
        ("search", "address"),
        ("greedy:contiguous/critical_path", "address"),
    ],
)
def test_what_a_heuristic_finds_without_a_pin_is_settled(solver: str, kind: str) -> None:
    problem = with_pins(two_cores(), read_pins(EACH[kind]))
    assert solved(problem, solver, SolveOptions(time_limit=2.0)).plan is not None


@pytest.mark.parametrize("number", range(40, 64))
def test_a_settled_plan_is_valid_or_there_is_none(number: int) -> None:
    problem = pinned_problem(number)
    result = solved(problem, "list", SolveOptions(time_limit=5.0))
    assert result.plan is not None or result.reason


def test_waiting_for_a_pinned_start_is_explained() -> None:
    problem = with_pins(two_cores(), read_pins(EACH["not before"]))
    plan = solved(problem, "list").plan
    assert plan is not None
    text = why_slow(AnalysedPlan(problem=problem, plan=plan)).text
    assert "a task is pinned not to start any earlier" in text
