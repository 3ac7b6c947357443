"""The portfolio on Dask workers: turns, what is lost with a worker, and what never is."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import spmilp
from spmilp.checker.check import check
from spmilp.dask_client import connected
from spmilp.errors import ArgumentError, SpmilpError
from spmilp.problem.problem import Problem
from spmilp.problem.read import read_problem
from spmilp.sizing.local_cluster import LocalCluster
from spmilp.solvers import auto, spread
from spmilp.solvers.auto import Member
from spmilp.solvers.base import Progress, SolveOptions
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.rounds import Rounds
from spmilp.solvers.partial_order.schedule import TimedSchedule
from spmilp.solvers.spread import Spread, Turn, take, turns_of
from tests.solvers.chains import chain, star

pytest.importorskip("distributed")
INSTANCES = Path(__file__).parents[3] / "instances" / "problems"
LNS = Member(name="lns", until=0.5, make=auto._lns)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return read_problem(INSTANCES / "dense-16t-2c-bus-tight-traffic.json")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    own = LocalCluster(2, tmp_path)
    yield own
    own.end()


@pytest.fixture(autouse=True)
def _quick_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "members_for", lambda problem: (LNS,))
    monkeypatch.setattr(spread, "TURNS_WITHOUT_LIMIT", 1)


def when_two_have_begun(monkeypatch: pytest.MonkeyPatch, do: partial[object]) -> None:
    begin = spread._Turns._begin

    def begin_and_do(turns: spread._Turns, slots: int) -> bool:
        has_begun = begin(turns, slots)
        if turns._count == 2 and has_begun:
            do()
        return has_begun

    monkeypatch.setattr(spread._Turns, "_begin", begin_and_do)


def kill_one(address: str) -> None:
    with connected(address) as client:
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_that_dies_costs_no_plan(
    problem: Problem, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, told = cluster.start(), list[Progress]()
    when_two_have_begun(monkeypatch, partial(kill_one, address))
    start = ListScheduler().solve(problem, SolveOptions()).plan
    assert start is not None

    result = Spread(address).solve(problem, SolveOptions(on_progress=told.append), start)

    assert result.violations(problem) == ()
    assert result.plan is not None
    assert result.plan.claim.makespan < start.claim.makespan
    assert any(news.source.startswith("lns, turn") for news in told)


def test_without_a_scheduler_the_search_goes_on_here(
    problem: Problem, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    when_two_have_begun(monkeypatch, partial(cluster.end))
    monkeypatch.setattr(spread, "Auto", ListScheduler)
    start = ListScheduler(greedy=("contiguous", "depth_first")).solve(problem, SolveOptions()).plan
    assert start is not None

    result = Spread(cluster.start()).solve(problem, SolveOptions(), start)

    assert result.plan is not None
    assert check(problem, result.plan) == ()
    assert result.plan.claim.makespan < start.claim.makespan


@pytest.mark.slow
def test_each_worker_gets_a_stretch_of_a_large_plan(
    problem: Problem, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spread, "LEAST_ROWS", 1)
    monkeypatch.setattr(spread, "ROUNDS_WITHOUT_LIMIT", 2)
    answered: list[int] = []
    join = Rounds.join

    def join_and_note(rounds: Rounds, found: list[TimedSchedule | None]) -> bool:
        answered.append(sum(one is not None for one in found))
        return join(rounds, found)

    monkeypatch.setattr(Rounds, "join", join_and_note)
    start = ListScheduler(greedy=("contiguous", "depth_first")).solve(problem, SolveOptions()).plan
    assert start is not None

    result = Spread(cluster.start()).solve(problem, SolveOptions(), start)

    assert answered
    assert set(answered) == {2}
    assert result.violations(problem) == ()
    assert result.plan is not None
    assert result.plan.claim.makespan < start.claim.makespan


def test_exact_members_have_one_turn_and_go_on_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "members_for", auto.members_for)
    first, again = turns_of(chain(star(2, 2_048), layers=2, strips=2))
    assert [turn.name for turn in (*first, again)] == ["search", "lns", "cpsat", "lns"]
    assert first[2].until == 1.0
    assert again.until < first[0].until


def test_other_code_on_a_worker_is_refused(problem: Problem) -> None:
    turn = Turn(problem=b"", key="", version="0", member=LNS, options=SolveOptions(), plan=None)
    with pytest.raises(SpmilpError, match="the search is of spmilp 0, and this worker has "):
        take(turn)


def test_a_turn_keeps_what_it_finds_out(problem: Problem) -> None:
    packed, key = spread.packed(problem)
    turn = Turn(
        problem=packed,
        key=key,
        version=spread.code_version(),
        member=LNS,
        options=SolveOptions(),
        plan=None,
    )
    found = take(turn)
    known = spread._known[key]
    assert found.plan is not None
    assert take(replace(turn, problem=b"not looked at", plan=found.plan)).plan is not None
    assert spread._known[key] is known


def test_only_the_portfolio_is_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="scheduler: solver lns works in one process"):
        spmilp.solve("any.onnx", solver="lns", scheduler="tcp://127.0.0.1:1")
    monkeypatch.setattr("spmilp.pipeline.connected", partial(connected, seconds=0.3))
    with pytest.raises(SpmilpError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1 "):
        spmilp.solve("any.onnx", scheduler="tcp://127.0.0.1:1")
