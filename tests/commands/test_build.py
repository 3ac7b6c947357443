"""Who waits for whom: what conflicts, and nothing that is implied or could be left out."""

from dataclasses import replace
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings

from commands.helpers import (
    commands_as,
    numbered,
    planned,
    ten_plans,
    text,
    with_events,
    with_latency,
    without,
)
from commands.oracle import conflicting_pairs, waits_of
from commands.small import load_run_store
from solvers.random_problems import problems
from spmilp.checker.races import check_commands
from spmilp.commands.build import TooManyEventsError, build_commands
from spmilp.commands.commands import Command, EventScheme, Signal, Wait
from spmilp.errors import ExitCode
from spmilp.problem.problem import Problem


def test_a_pipelined_list_waits_for_data_that_it_has_brought_itself() -> None:
    problem, plan = load_run_store()
    both = tuple(replace(task, reads=(0,)) for task in problem.tasks)
    problem = with_latency(replace(problem, tasks=both), pipelined=True)
    stays, moves = list(plan.residencies), list(plan.transfers)
    stays[5] = replace(stays[5], slice=0)
    moves[1] = replace(moves[1], slice=0, source=1, channel=0, start=10, end=20)
    plan = replace(plan, residencies=tuple(stays), transfers=tuple(moves))
    lists = build_commands(problem, plan)
    assert text(lists)["dma0.0"] == "move0 s2 w2>=1 move1 s2 w0>=1 move2 w1>=1 move3"
    assert check_commands(problem, plan, lists) == ()

    plain = build_commands(with_latency(problem, pipelined=False), plan)
    said = check_commands(problem, plan, plain)[0].message
    assert said.startswith("transfer 0 of slice 0 (x0) writes [0, 8) and transfer 1 of slice 0")


@pytest.mark.full
@pytest.mark.parametrize("pipelined", [False, True])
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problem=problems(most_tasks=8))
def test_waits_are_the_transitive_reduction_of_conflicts(problem: Problem, pipelined: bool) -> None:
    """The oracle looks at every pair of accesses, byte by byte, and lets networkx reduce."""
    problem = with_latency(problem, pipelined=pipelined, channels=1)
    plan = planned(problem)
    if plan is None:
        return
    lists = commands_as(EventScheme.COUNTERS, problem, plan)
    sequences, waits = waits_of(lists)
    list_of = {name: number for number, names in enumerate(sequences) for name in names}
    steps = {((name, "starts"), (name, "ends")) for name in list_of}
    for number, names in enumerate(sequences):
        goes_on = "starts" if pipelined and number >= len(lists.cores) else "ends"
        for one, other in pairwise(names):
            steps |= {((one, goes_on), (other, "starts")), ((one, "ends"), (other, "ends"))}
    order = nx.DiGraph(steps)
    for first, second, only_reads in conflicting_pairs(problem, plan):
        if not only_reads or list_of[first] != list_of[second]:
            order.add_edge((first, "ends"), (second, "starts"))

    made = {((first, "ends"), (second, "starts")) for first, second in waits}
    assert made == set(nx.transitive_reduction(order).edges) - steps
    assert len(waits) == len(made)


def test_other_ways_are_taken_where_counters_are_too_many() -> None:
    problem, plan = ten_plans()[0]
    ways = {
        21: (EventScheme.COUNTERS, 21),
        20: (EventScheme.COUNTERS, 20),
        19: (EventScheme.SEMAPHORES, 14),
    }
    for events, way in ways.items():
        given = with_events(problem, events, 1)
        found = build_commands(given, plan)
        assert (found.scheme, found.events) == way
        assert check_commands(given, plan, found) == ()


def test_too_few_events_are_refused_with_all_numbers() -> None:
    problem, plan = ten_plans()[0]

    message = (
        "needs 21 events as counters that count to 1, 20 with fewer signals, or 14 as semaphores; "
        "star has 11"
    )
    with pytest.raises(TooManyEventsError, match=message) as raised:
        build_commands(with_events(problem, 11, 1), plan)
    assert raised.value.exit_code is ExitCode.EXPORT_IMPOSSIBLE


@pytest.mark.parametrize(
    ("start", "links", "waits"),
    [
        (10, (0,), True),  # when the one before on the link has arrived
        (9, (0,), True),  # a little sooner
        (8, (0,), False),  # as soon as all is sent: to wait would cost more than to share
        (10, (1,), False),  # another link
    ],
)
def test_a_transfer_waits_for_what_sends_before_it_on_its_link(
    start: int, links: tuple[int, ...], waits: bool
) -> None:
    problem, plan = load_run_store()
    stays, moves = list(plan.residencies), list(plan.transfers)
    stays[5] = replace(stays[5], start=start)
    moves[0] = replace(moves[0], route=(0,), sent=8)
    moves[1] = replace(moves[1], start=start, sent=start + 10, end=start + 10, route=links)
    plan = replace(plan, residencies=tuple(stays), transfers=tuple(moves))
    lists = build_commands(problem, plan)
    assert text(lists)["dma0.1"] == f"{'w2>=1 ' * waits}move1 s3"
    assert check_commands(problem, plan, lists) == ()


SCHEMES = [
    pytest.param(EventScheme.COUNTERS, None, id="counters"),
    pytest.param(EventScheme.COUNTERS, 3, id="counters up to 3"),
    pytest.param(EventScheme.SEMAPHORES, 1, id="binary"),
    pytest.param(EventScheme.SEMAPHORES, 3, id="semaphores up to 3"),
]


@pytest.mark.parametrize(("scheme", "maximum"), SCHEMES)
def test_the_lists_of_ten_plans_pass_the_checker(scheme: EventScheme, maximum: int | None) -> None:
    for problem, plan in ten_plans():
        problem = with_events(problem, None, maximum)
        assert check_commands(problem, plan, commands_as(scheme, problem, plan)) == ()


@pytest.mark.full
@pytest.mark.parametrize(("scheme", "maximum"), SCHEMES)
@pytest.mark.parametrize(("kind", "least"), [(Wait, 160), (Signal, 140)])
def test_no_wait_and_no_signal_is_redundant(
    scheme: EventScheme, maximum: int | None, kind: type[Command], least: int
) -> None:
    tried = 0
    for problem, plan in ten_plans():
        problem = with_events(problem, None, maximum)
        lists = commands_as(scheme, problem, plan)
        for number, position, command in numbered(lists):
            if isinstance(command, kind):
                found = check_commands(problem, plan, without(lists, number, position))
                assert {each.rule for each in found} & {"race", "task_order", "deadlock"}
                tried += 1
    assert tried > least
