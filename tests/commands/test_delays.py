"""Whatever the delays, command lists give the same numbers; without a wait, they do not."""

from dataclasses import replace

import pytest

from commands.helpers import Mapped, commands_as, numbered, planned, without
from solvers.chains import star
from spmilp.checker.values.delays import delayed_events
from spmilp.checker.values.replay import replay, replay_with_delays
from spmilp.checker.values.state import ReplayError
from spmilp.commands.commands import EventScheme, Wait
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
