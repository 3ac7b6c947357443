"""Command lists of streams: proven as many inferences take them, with no wait too many."""

from dataclasses import replace
from random import Random

import pytest

from checker.mutations.subjects import planned, small_network
from checker.streams import as_stream
from commands.helpers import with_events
from spmilp.checker.check import check
from spmilp.checker.races import check_commands
from spmilp.commands import loop
from spmilp.commands.build import TooManyEventsError, build_commands
from spmilp.commands.commands import LoopWait, Move, Run, Signal, StreamCommands
from spmilp.commands.loop import build_stream_commands, enough_to_prove, in_turns
from spmilp.errors import SpmilpError
from spmilp.machine.read import load_machine
from spmilp.plan.plan import Plan
from spmilp.plan.running import running
from spmilp.problem.problem import Problem
from spmilp.simulator.simulate import simulate
from spmilp.solvers.modulo.stream import stream_of

Streamed = tuple[Problem, Plan]


def streamed(machine: str) -> Streamed:
    problem = small_network(load_machine(machine).machine)
    return problem, stream_of(problem, planned(problem, "list"))


@pytest.fixture(scope="module")
def long() -> Streamed:
    """Return a stream whose inferences last more than two periods, with up to four instances."""
    problem = small_network(load_machine("mesh4x4").machine)
    plan = as_stream(problem, planned(problem, "list"), 180, Random(1))
    assert check(problem, plan) == ()
    assert max(len(each.instances) for each in plan.residencies) > 0
    return problem, plan


def rules(problem: Problem, plan: Plan, commands: StreamCommands, inferences: int) -> set[str]:
    """Return the rules that the lists of so many inferences break."""
    runs = running(problem, plan, inferences)
    lists = in_turns(commands, runs, inferences)
    proven = with_events(runs.problem, problem.machine.events, commands.highest)
    return {one.rule for one in check_commands(proven, runs.plan, lists)}


def counting_to(given: Streamed, maximum: int | None) -> Streamed:
    """Return a stream on its machine with many events that count to a maximum."""
    return with_events(given[0], 640, maximum), given[1]


def test_no_inference_races_with_another(long: Streamed) -> None:
    given = (long, *map(streamed, ("gap9", "edge16", "stream_quad")))
    for problem, plan in (*given, *(counting_to(one, 8) for one in given)):
        assert plan.stream is not None
        commands = build_stream_commands(problem, plan)
        assert (commands.highest is not None) == (problem.machine.event_maximum == 8)
        most = enough_to_prove(plan, plan.stream, commands.highest)
        assert not any(rules(problem, plan, commands, some) for some in (1, most, 3 * most))
        work = [each for one in commands.body for each in one if isinstance(each, Run | Move)]
        loaded = sum(move.start < plan.stream.begins for move in plan.transfers)
        assert len(work) == len(problem.tasks) + 2 + len(plan.transfers) - loaded
        once = [each for one in commands.prologue.lists for each in one.commands]
        assert sum(isinstance(each, Move) for each in once) == loaded


@pytest.mark.parametrize("maximum", [None, 63])
def test_no_wait_can_be_left_out(
    long: Streamed, maximum: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But those with which a list begins a turn."""
    monkeypatch.setattr(loop, "with_pacing", lambda problem, plan, activities, before: before)
    problem, plan = counting_to(long, maximum)
    assert plan.stream is not None
    commands, most = build_stream_commands(problem, plan), enough_to_prove(plan, plan.stream)
    backs, application = set(), commands.body[len(problem.machine.cores)]
    handed_in = {each.event for each in application if isinstance(each, Signal)}
    for number, mine in enumerate(commands.body):
        for place, wait in enumerate(mine):
            if not isinstance(wait, LoopWait) or wait.event in handed_in:
                continue
            body = list(commands.body)
            body[number] = mine[:place] + mine[place + 1 :]
            backs.add(wait.back)
            assert rules(problem, plan, replace(commands, body=tuple(body)), most)
    assert len(backs) > 2


def test_a_stage_that_is_wrong_is_found(long: Streamed) -> None:
    problem, plan = long
    commands = build_stream_commands(problem, plan)
    stages = tuple(stage + (stage > 1) for stage in commands.task_stages)
    assert rules(problem, plan, replace(commands, task_stages=stages), 8)


def test_events_that_count_to_little_are_refused(long: Streamed) -> None:
    problem, plan = long
    with pytest.raises(TooManyEventsError, match=r"as semaphores that count to \d+; .* to 1:"):
        build_stream_commands(with_events(problem, 640, 1), plan)
    with pytest.raises(TooManyEventsError, match=r"the stream needs \d+ events.* has 2"):
        build_stream_commands(with_events(problem, 2, None), plan)
    with pytest.raises(SpmilpError, match="a prologue and a loop"):
        build_commands(problem, plan)


def test_inferences_follow_each_other_about_as_planned(long: Streamed) -> None:
    for problem, plan in (long, streamed("gap9")):
        found = simulate(problem, plan, jitter=0.05, seeds=2)
        assert plan.stream is not None
        assert found.planned == plan.stream.period
        assert 0.5 < found.ratio < 1.1
        assert f"a period of {round(found.simulated):,} cycles" in found.lines()[0]
        assert 0.9 * found.simulated < found.makespans[0] < 1.2 * found.simulated
