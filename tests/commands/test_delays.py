"""Whatever the delays, command lists give the same numbers; without a wait, they do not."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from commands.helpers import Mapped, changed, numbered, planned, ten_plans, with_events, without
from commands.oracle import conflicting_pairs
from solvers.chains import star
from solvers.random_problems import problems
from spmilp.checker.races import check_commands
from spmilp.checker.values.delays import Actor, Step, delayed_events
from spmilp.checker.values.errors import ReplayError
from spmilp.checker.values.replay import compute_network, replay, replay_with_delays
from spmilp.commands.build import commands_as
from spmilp.commands.commands import Command, CommandLists, EventScheme, Signal, Wait
from spmilp.problem.problem import Problem
from values.small_network import NETWORK, some_inputs, two_strips

INPUTS = some_inputs()


@pytest.fixture(scope="module")
def mapped() -> Mapped:
    """Return a convolution and a Relu in two strips on two cores, in memories that are reused."""
    problem = replace(two_strips(), machine=star(2, 464))
    plan = planned(problem)
    assert plan is not None
    assert len({placement.core for placement in plan.placements}) == 2
    return problem, plan


@pytest.mark.parametrize("scheme", list(EventScheme))
def test_delays_change_no_bit(mapped: Mapped, scheme: EventScheme) -> None:
    problem, plan = mapped
    outputs = replay(problem, plan, NETWORK, INPUTS)
    lists = commands_as(scheme, problem, plan)

    replay_with_delays(problem, plan, NETWORK, INPUTS, outputs, lists, range(40))


def test_delays_show_every_missing_wait_sooner_or_later(mapped: Mapped) -> None:
    problem, plan = mapped
    outputs = replay(problem, plan, NETWORK, INPUTS)
    lists = commands_as(EventScheme.COUNTERS, problem, plan)
    waits = [(n, at) for n, at, command in numbered(lists) if isinstance(command, Wait)]

    for number, position in waits:
        broken = without(lists, number, position)
        with pytest.raises(ReplayError, match="with random delays from seed"):
            replay_with_delays(problem, plan, NETWORK, INPUTS, outputs, broken, range(100))


def test_a_deadlock_is_an_error(mapped: Mapped) -> None:
    problem, plan = mapped
    lists = commands_as(EventScheme.COUNTERS, problem, plan)
    number, position, _ = next(
        (n, at, c) for n, at, c in numbered(lists) if type(c).__name__ == "Signal"
    )

    with pytest.raises(ReplayError, match=r"deadlock after .* tasks and transfers: .* lists wait"):
        delayed_events(problem.machine, without(lists, number, position), seed=0)


def test_a_seed_always_gives_the_same_delays_and_another_gives_others(mapped: Mapped) -> None:
    problem, plan = mapped
    lists = commands_as(EventScheme.COUNTERS, problem, plan)

    once, again, other = (delayed_events(problem.machine, lists, seed) for seed in (1, 1, 2))

    assert once == again
    assert [(e.step, e.actor, e.index) for e in once] != [(e.step, e.actor, e.index) for e in other]


def test_everything_starts_and_ends_once(mapped: Mapped) -> None:
    problem, plan = mapped
    events = delayed_events(problem.machine, commands_as(EventScheme.COUNTERS, *mapped), seed=0)

    for step in (Step.START, Step.FINISH, Step.DELIVER):
        found = sorted((e.actor, e.index) for e in events if e.step is step)
        assert found == [
            *((Actor.TASK, n) for n in range(len(plan.placements))),
            *((Actor.TRANSFER, n) for n in range(len(plan.transfers))),
        ]


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problem=problems(most_tasks=8))
def test_whatever_conflicts_keeps_its_order_under_delays(problem: Problem) -> None:
    plan = planned(problem)
    if plan is None:
        return
    pairs = conflicting_pairs(problem, plan)
    for scheme in EventScheme:
        lists = commands_as(scheme, with_events(problem, None, 2), plan)
        for seed in range(3):
            starts, ends = times(problem, lists, seed)
            for first, second in pairs:
                assert ends[first] <= starts[second]


def test_a_semaphore_for_two_lists_is_right_exactly_where_the_checker_says_so() -> None:
    """Each two semaphores of five plans made one: what passes keeps its order under all delays.

    Of the others most show it: by another order, or by a wait that never ends.
    """
    passed, failed, shown = 0, 0, 0
    for problem, plan in ten_plans()[2:7]:
        pairs = conflicting_pairs(problem, plan)
        given = with_events(problem, None, 1)
        lists = commands_as(EventScheme.SEMAPHORES, given, plan)
        for one, other in combinations(range(lists.events), 2):
            merged = with_one_event(lists, one, other)
            is_right = all(keeps_order(given, merged, pairs, seed) for seed in range(25))
            if check_commands(given, plan, merged):
                failed += 1
                shown += not is_right
            else:
                waiting = {n for n, _, c in numbered(merged) if c in (Wait(one, 1), Wait(other, 1))}
                passed += len(waiting) > 1
                assert is_right
    assert passed > 3
    assert shown > 0.6 * failed > 10


def with_one_event(lists: CommandLists, kept: int, gone: int) -> CommandLists:
    """Return lists in which one event is another one too."""

    def renamed(command: Command) -> Command:
        if isinstance(command, Wait | Signal) and command.event == gone:
            return replace(command, event=kept)
        return command

    for number, one in enumerate(lists.lists):
        lists = changed(lists, number, tuple(map(renamed, one.commands)))
    return lists


def keeps_order(
    problem: Problem,
    lists: CommandLists,
    pairs: list[tuple[tuple[str, int], tuple[str, int]]],
    seed: int,
) -> bool:
    """Say whether all comes to its end, what conflicts in the plan's order."""
    try:
        starts, ends = times(problem, lists, seed)
    except ReplayError:
        return False
    return all(ends[first] <= starts[second] for first, second in pairs)


def test_lists_of_ten_plans_come_to_their_end_in_every_queue() -> None:
    for problem, plan in ten_plans():
        for depth in (1, 3):
            engines = tuple(replace(e, descriptors=depth) for e in problem.machine.engines)
            machine = replace(problem.machine, engines=engines)
            for scheme in EventScheme:
                lists = commands_as(scheme, problem, plan)
                events = delayed_events(machine, lists, seed=depth)
                assert len(events) == 3 * (len(plan.placements) + len(plan.transfers))


def times(
    problem: Problem, lists: CommandLists, seed: int
) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
    """Return when tasks and transfers start and end with the delays of a seed."""
    starts, ends = {}, {}
    for event in delayed_events(problem.machine, lists, seed):
        name = ("run" if event.actor is Actor.TASK else "move", event.index)
        if event.step is Step.START:
            starts[name] = event.cycle
        if event.step is Step.FINISH:
            ends[name] = event.cycle
    return starts, ends


def test_outputs_are_those_of_the_whole_network(mapped: Mapped) -> None:
    problem, plan = mapped
    lists = commands_as(EventScheme.COUNTERS, problem, plan)
    events = delayed_events(problem.machine, lists, seed=5)

    found = replay(problem, plan, NETWORK, INPUTS, events)["z"]

    np.testing.assert_allclose(found, compute_network(NETWORK, INPUTS)["z"], rtol=1e-6)
