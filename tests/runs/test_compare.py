"""Runs are watched, timed and checked."""

from dataclasses import replace

import pytest

from checker.worked_example import PLAN, PROBLEM
from cli.fakes import FakeSolver, answer
from spmilp.pipeline import solve
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.runs.compare import compare
from spmilp.runs.jobs import REJECTED, run_of
from spmilp.solvers.base import Progress, SolveOptions, SolverResult
from spmilp.watch import Observer


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
    observer = Observer(on_log=lambda entry: heard.append(entry.incumbent))
    result = solve(PROBLEM, solver="cpsat", seed=7, observer=observer)
    run = run_of(result, instance="example", seed=7)

    assert [entry.incumbent for entry in run.log] == [None, 300, 196, 196]
    assert [entry.bound for entry in run.log] == [120, 120, 120, 150]
    assert heard == [None, 300, 196, 196]
    assert (run.objective, run.bound, run.seed, run.status) == (196, 150, 7, "feasible")


def test_a_plan_that_the_checker_rejects_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(PLAN, placements=PLAN.placements[1:])
    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: FakeSolver(answer(wrong)))
    found = compare([PROBLEM], solvers=["list"])

    (run,) = found.all_runs
    assert (run.status, run.objective) == (REJECTED, None)
    assert run.reason
    assert not found.is_sound


def test_an_interrupt_leaves_the_runs_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = replace(answer(), interrupted=True)
    monkeypatch.setattr("spmilp.pipeline.find_solver", lambda name: FakeSolver(stopped))
    found = compare({"one": PROBLEM, "other": PROBLEM}, solvers=["list"])

    assert found.interrupted
    assert [run.instance for run in found.all_runs] == ["one"]
