"""The checker of command lists finds what is wrong with them, and names it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from checker.worked_example import PLAN, PROBLEM
from commands.helpers import changed, commands_as, with_events
from commands.small import load_run_store
from spmilp.checker import races
from spmilp.checker.races import check_commands
from spmilp.commands.build import build_commands
from spmilp.commands.commands import (
    Command,
    CommandLists,
    EventScheme,
    Move,
    Run,
    Signal,
    Wait,
)
from spmilp.problem.problem import Problem

SMALL, SMALL_PLAN = load_run_store()
CORE0, CORE1, DMA0, DMA1 = range(4)


def lists_with(problem: Problem = SMALL, **commands: tuple[Command, ...]) -> CommandLists:
    """Return the lists of the small plan with other commands in some of them."""
    lists = build_commands(problem, SMALL_PLAN)
    for name, given in commands.items():
        lists = changed(lists, ["core0", "core1", "dma0", "dma1"].index(name), given)
    return lists


def messages(lists: CommandLists, problem: Problem = SMALL) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for violation in check_commands(problem, SMALL_PLAN, lists):
        found.setdefault(violation.rule, []).append(violation.message)
    return found


@pytest.mark.parametrize("scheme", list(EventScheme))
def test_a_plan_with_everything_that_plans_can_have_passes(scheme: EventScheme) -> None:
    assert check_commands(PROBLEM, PLAN, commands_as(scheme, PROBLEM, PLAN)) == ()


def test_a_load_that_nobody_waits_for_races() -> None:
    """With the task that reads it, and with the one that waits for that to reuse the bytes."""
    found = messages(lists_with(core0=(Run(0), Signal(0))))

    assert found == {
        "race": [
            "task 0 (left) reads [0, 8) and transfer 0 of slice 0 (x0) writes [0, 8) of spm, and "
            "neither waits for the other",
            "transfer 0 of slice 0 (x0) writes [0, 8) and task 1 (right) writes [0, 8) of spm, and "
            "neither waits for the other",
        ]
    }


def test_an_order_against_the_plan_is_no_order() -> None:
    """The task waits for nothing, and its load waits for the task."""
    lists = lists_with(
        core0=(Run(0), Signal(0)),
        dma0=(Wait(0, 1), Move(0), Signal(2), Move(2), Wait(1, 1), Move(3)),
    )

    assert messages(lists)["race"][0] == (
        "task 0 (left) reads [0, 8) and transfer 0 of slice 0 (x0) writes [0, 8) of spm, in this "
        "order, but the plan ends the first at cycle 20 > 0, the start of the second"
    )


def test_stores_of_the_same_elements_race() -> None:
    moves = list(SMALL_PLAN.transfers)
    moves[3] = replace(moves[3], channel=1)
    place = replace(SMALL.buffers[3].place, start=(4,))
    problem = replace(SMALL, buffers=(*SMALL.buffers[:3], replace(SMALL.buffers[3], place=place)))
    plan = replace(SMALL_PLAN, transfers=tuple(moves))
    lists = build_commands(problem, plan)
    lists = changed(lists, DMA1, (Move(1), Signal(3), Wait(1, 1), Move(3)))

    (violation,) = check_commands(problem, plan, lists)
    assert violation.rule == "race"
    assert "writes elements in [64, 72)" in violation.message
    assert "writes elements in [68, 76) of dram" in violation.message


def test_a_task_that_does_not_wait_for_one_that_it_follows_is_found() -> None:
    stays = list(SMALL_PLAN.residencies)
    stays[6] = replace(stays[6], offset=32)
    plan = replace(SMALL_PLAN, residencies=tuple(stays))
    tasks = (SMALL.tasks[0], replace(SMALL.tasks[1], after=(0,)))

    (violation,) = check_commands(replace(SMALL, tasks=tasks), plan, build_commands(SMALL, plan))
    assert violation.rule == "task_order"
    assert violation.message == (
        "nothing keeps task 1 (right) from starting before task 0 (left) has ended"
    )


def test_lists_that_wait_for_each_other_are_in_deadlock() -> None:
    lists = lists_with(
        core0=(Wait(2, 1), Wait(1, 1), Run(0), Signal(0)),
    )

    found = messages(lists)["deadlock"]
    assert found == [
        "command 1 of core c0, wait for event 1 to reach 1, never ends: the event stays at 0",
        "command 0 of core c1, wait for event 0 to reach 1, never ends: the event stays at 0",
        "command 2 of channel 0 of engine dma, wait for event 0 to reach 1, never ends: the event "
        "stays at 0",
    ]


@pytest.mark.parametrize(
    ("name", "commands", "message"),
    [
        ("core0", (), "task 0: stands 0 times in the lists, expected once"),
        ("core0", (Run(0), Run(0)), "task 0: stands 2 times in the lists, expected once"),
        ("core0", (Run(1),), "command 0 of core c0: is task 1, which the plan gives to core c1"),
        ("core0", (Run(-1),), "command 0 of core c0: is task -1, which the plan gives to no list"),
        ("core0", (Wait(4, 1),), "command 0 of core c0: waits for event 4 of 4 to reach 1"),
        ("core0", (Wait(-1, 1),), "command 0 of core c0: waits for event -1 of 4 to reach 1"),
        ("core0", (Wait(1, 0),), "command 0 of core c0: waits for event 1 of 4 to reach 0"),
        ("core0", (Signal(4),), "command 0 of core c0: signals event 4, but there are 4"),
        ("dma1", (Move(0),), "is transfer 0, which the plan gives to channel 0 of engine dma"),
        ("dma1", (Move(4),), "is transfer 4, which the plan gives to no list"),
    ],
)
def test_lists_that_do_not_run_the_plan_are_refused(
    name: str, commands: tuple[Command, ...], message: str
) -> None:
    found = messages(lists_with(**{name: commands}))

    assert list(found) == ["command_lists"]
    assert any(message in each for each in found["command_lists"])


def test_a_counter_with_two_writers_in_no_order_is_found() -> None:
    """Both channels count in event 2: core 0 may start after the load that it does not need."""
    lists = lists_with(dma1=(Move(1), Signal(2), Signal(3)))

    (message,) = messages(lists)["event_order"]
    assert message.endswith(
        "use event 2 in an order that depends on delays, so that waits may get the wrong signals"
    )


def test_a_semaphore_with_two_lists_that_wait_is_found() -> None:
    lists = replace(
        lists_with(
            core0=(Wait(2, 1), Run(0), Signal(0), Signal(0)),
        ),
        scheme=EventScheme.SEMAPHORES,
    )

    assert "use event 0 in an order that depends on delays" in messages(lists)["event_order"][0]


def test_more_events_than_the_machine_has_are_found() -> None:
    problem = with_events(SMALL, 3, None)

    assert messages(lists_with(), problem)["event_limits"] == ["4 events > 3 of two cores"]


def test_counts_above_what_an_event_can_hold_are_found() -> None:
    problem = with_events(SMALL, None, 1)
    lists = lists_with(
        dma0=(Move(0), Signal(2), Wait(0, 1), Move(2), Signal(2), Wait(1, 1), Move(3))
    )

    assert messages(lists, problem)["event_limits"] == [
        "command 4 of channel 0 of engine dma may take event 2 above 1, which two cores counts to"
    ]


def test_a_semaphore_that_may_hold_too_much_is_found() -> None:
    """Semaphores for events that hold two signals, on a machine where they hold one."""
    problem, plan = load_run_store()
    right = replace(plan.placements[1], core=0)
    plan = replace(plan, placements=(plan.placements[0], right))
    lists = commands_as(EventScheme.SEMAPHORES, with_events(problem, None, 2), plan)

    assert check_commands(with_events(problem, None, 2), plan, lists) == ()
    (violation,) = check_commands(with_events(problem, None, 1), plan, lists)
    assert violation.rule == "event_limits"


def test_every_rule_is_documented_and_no_other() -> None:
    source = Path(races.__file__).read_text()
    asked = set(re.findall(r'Violation\("(\w+)"', source))
    page = Path(__file__).parents[2] / "docs" / "commands.md"
    assert asked == set(re.findall(r"^- `(\w+)`:", page.read_text(), flags=re.MULTILINE))
