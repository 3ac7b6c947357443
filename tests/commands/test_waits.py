"""No wait and no signal can be left out: tried for each one of ten plans, in each scheme."""

import pytest

from commands.helpers import commands_as, numbered, ten_plans, with_events, without
from spmilp.checker.races import check_commands
from spmilp.commands.commands import Command, EventScheme, Signal, Wait

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
