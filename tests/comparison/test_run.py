"""Runs are watched, timed and checked."""

from dataclasses import replace

import pytest

from checker.worked_example import PLAN, PROBLEM
from cli.fakes import FakeSolver, answer
from spmilp.comparison.run import REJECTED, compare, run_one
from spmilp.errors import SpmilpError
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, SolveOptions, SolverResult


class Improving:
    """Reports a worse plan first, then the one of its answer."""

    name = "improving"

    def solve(
        self, problem: Problem, options: SolveOptions, hint: Plan | None = None
    ) -> SolverResult:
        assert options.on_progress is not None
        for incumbent in (None, 300, 196, 196):
            options.on_progress(Progress(incumbent=incumbent, bound=120, source="here"))
        return answer()


def test_the_course_of_a_run_ends_with_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: Improving())
    heard: list[int | None] = []
    options = SolveOptions(seed=7, on_progress=lambda progress: heard.append(progress.incumbent))
    run = run_one("example", PROBLEM, "improving", options)

    assert [moment.objective for moment in run.course] == [None, 300, 196, 196, 196]
    assert [moment.bound for moment in run.course] == [120, 120, 120, 120, 150]
    assert run.seconds_to_best == run.course[2].seconds <= run.seconds
    assert heard == [None, 300, 196, 196]
    assert (run.objective, run.bound, run.seed, run.status) == (196, 150, 7, "feasible")


def test_a_plan_that_the_checker_rejects_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(PLAN, placements=PLAN.placements[1:])
    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: FakeSolver(answer(wrong)))
    run = run_one("example", PROBLEM, "wrong", SolveOptions())

    assert (run.status, run.objective, run.seconds_to_best) == (REJECTED, None, None)
    assert run.reason


def test_every_solver_runs_on_every_problem_problem_by_problem() -> None:
    started: list[tuple[str, str]] = []
    runs = compare(
        {"one": PROBLEM, "other": PROBLEM},
        ("greedy:contiguous/layer_by_layer", "list"),
        SolveOptions(),
        lambda instance, solver: started.append((instance, solver)),
    )

    pairs = [(run.instance, run.solver) for run in runs]
    assert pairs == [
        (name, solver)
        for name in ("one", "other")
        for solver in ("greedy:contiguous/layer_by_layer", "list")
    ]
    assert started == pairs


def test_an_unknown_solver_is_named() -> None:
    with pytest.raises(SpmilpError, match="'greedy:no/such'"):
        run_one("example", PROBLEM, "greedy:no/such", SolveOptions())
