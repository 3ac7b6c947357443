"""Streams of inferences from end to end: solved for their period, checked, explained, drawn."""

import gzip
import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import spmilp
from spmilp.errors import ArgumentError, FileError
from spmilp.machine.read import load_machine
from spmilp.plan.plan import Plan
from spmilp.problem.file import write_problem
from spmilp.problem.problem import Problem
from spmilp.runs.target import Target
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.modulo import solver
from spmilp.watch import Observer
from tests.acceptance.doors import Run
from tests.checker import worked_example
from tests.checker.mutations.subjects import small_network


@pytest.fixture(scope="module")
def problem() -> Problem:
    return small_network(load_machine("mesh4x4").machine)


@pytest.fixture(scope="module")
def one(problem: Problem) -> spmilp.Result:
    return spmilp.solve(problem, solver="list")


def solved(problem: Problem, **given: Any) -> spmilp.Result:
    """Return a stream, whose bound and figures hold."""
    found = spmilp.solve(problem, objective="period", **{"solver": "list", **given})
    assert found.violations == ()
    assert found.plan is not None
    for use in found.data()["stream"]["busiest"]:  # type: ignore[index]
        assert use["cycles"] <= (found.period or 0)
    assert found.bound <= (found.period or 0) == found.objective
    return found


def test_a_stream_is_solved_written_and_shown(run: Run, problem: Problem, tmp_path: Path) -> None:
    write_problem(problem, tmp_path / "given.json")
    limits = ("--solver", "list", "--effort", "2", "-o", tmp_path, "--json")
    answer = run("solve", tmp_path / "given.json", "--objective", "period", *limits)
    assert (answer.code, answer.err) == (0, "")
    shown = answer.json["stream"]
    assert answer.json["objective"] == shown["period"] < answer.json["makespan"]
    assert shown["inferences_per_second"] == problem.machine.frequency / shown["period"]
    assert sum(shown["permanent"].values()) > 0
    written = (tmp_path / "plan.json").read_bytes()
    # The problem that was written asks for the same.
    assert run("solve", tmp_path / "problem.json", *limits).code == 0
    assert (tmp_path / "plan.json").read_bytes() == written

    for command in ("check", "explain"):
        said = run(command, tmp_path)
        assert said.code == 0
        for text in (f"{shown['period']:,} cycles", "permanent", shown["busiest"][0]["name"]):
            assert text in said.out
    explained = run("explain", tmp_path, "--json").json
    assert explained["busiest"] == shown["busiest"]
    assert explained["bound"] == answer.json["bound"]


def test_the_page_shows_one_period(problem: Problem) -> None:
    result = solved(problem)
    assert result.plan is not None
    (text,) = re.findall(r'id="plan">([^<]*)</script>', result.report().html)
    shown = json.loads(gzip.decompress(b64decode(text)))
    period, tasks, lying = shown["makespan"], shown["tasks"], shown["residencies"]
    assert period == result.period
    busy = [0] * len(shown["cores"])
    for core, start, end in zip(tasks["core"], tasks["start"], tasks["end"], strict=True):
        busy[core] += min(end, period) - max(start, 0)
    assert busy == [core["busy"] for core in shown["core_times"]]
    assert max(shown["behind"]) == (result.makespan or 0) // period
    for row, reads in enumerate(tasks["reads"]):
        # What is read in this period lies there then, unless that was in another one.
        for read in reads:
            assert lying["start"][read] <= max(0, tasks["start"][row])
            assert min(period, tasks["end"][row]) <= lying["end"][read]
    for filler in lying["filler"]:
        assert filler < len(shown["behind"])
    assert len(shown["causes"]["first"]) == len(shown["behind"]) + 1


def test_a_longer_period_lets_an_inference_end_sooner() -> None:
    problem = small_network(load_machine("gap9").machine)
    least = solved(problem)
    given = solved(problem, period=2 * (least.period or 0))
    assert (least.period or 0) < (given.period or 0) <= 2 * (least.period or 0)
    assert (given.makespan or 0) < (least.makespan or 0)
    warned = list[str]()
    observer = Observer(on_warning=warned.append)
    assert solved(problem, period=1, observer=observer).period == least.period
    (said,) = warned
    assert f"period 1: the shortest found is {least.period:,} cycles, and none is below" in said


def test_plans_of_single_rules_shorten_a_period(problem: Problem) -> None:
    one = spmilp.solve(problem, solver="tvm:serial")
    found = solver.stream_answer(solver.of_period(problem), one.answer, SolveOptions())
    assert found.plan is not None
    assert found.violations(solver.of_period(problem)) == ()
    assert 4 * (found.plan.claim.period or 0) < (one.stream().period or 0)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_interrupt_keeps_the_best_so_far(
    after: int, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[Plan]()
    original: Callable[..., Iterator[Plan]] = solver.streams_of

    def interrupted(*given: Any) -> Iterator[Plan]:
        for found in original(*given):
            if len(seen) == after:
                raise KeyboardInterrupt
            seen.append(found)
            yield found

    monkeypatch.setattr(solver, "streams_of", interrupted)
    result = spmilp.solve(problem, objective="period", solver="list")
    assert result.interrupted
    assert result.plan is not None
    stream = result.plan.stream
    assert stream == (seen[-1].stream if seen else None)


def test_a_plan_of_which_no_stream_can_be_made_is_kept() -> None:
    buffers = tuple(replace(one, kind="intermediate") for one in worked_example.PROBLEM.buffers)
    warned = list[str]()
    result = spmilp.solve(
        replace(worked_example.PROBLEM, buffers=buffers),
        objective="period",
        solver="list",
        observer=Observer(on_warning=warned.append),
    )
    assert result.plan is not None
    assert result.plan.stream is None
    assert result.objective == result.makespan
    (said,) = warned
    assert re.match(r"buffer \w+ starts in a scratchpad and is no weight: .* one inference$", said)


def test_what_contradicts_a_stream_is_refused(problem: Problem, one: spmilp.Result) -> None:
    with pytest.raises(ArgumentError, match="period 9: the objective is makespan"):
        spmilp.solve(problem, objective="makespan", period=9)
    with pytest.raises(ArgumentError, match="period 0: expected 1 cycle or more"):
        spmilp.solve(problem, period=0)
    with pytest.raises(ArgumentError, match="lock: a stream has addresses of its own"):
        spmilp.solve(problem, objective="period", lock=one)
    stream = one.stream()
    assert 0 < stream.bound <= (stream.period or 0) < (one.makespan or 0)
    with pytest.raises(FileError, match=f"hint: the plan is a stream of period {stream.period}"):
        spmilp.solve(problem, hint=stream)
    assert Target.of("period=100").most == 100
