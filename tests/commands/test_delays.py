"""Whatever the delays, command lists give the same numbers; without a wait, they do not."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from commands.helpers import Mapped, commands_as, numbered, planned, with_events, without
from commands.oracle import conflicting_pairs
from solvers.chains import star
from solvers.random_problems import problems
from spmilp.checker.values.delays import Actor, Step, delayed_events
from spmilp.checker.values.replay import compute_network, replay, replay_with_delays
from spmilp.checker.values.state import ReplayError
from spmilp.commands.commands import CommandLists, EventScheme, Wait
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


@pytest.mark.full
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


@pytest.mark.full
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
