"""Plans for the tests of command lists, and ways to break the lists."""

from collections.abc import Iterator
from dataclasses import astuple, replace
from functools import cache
from typing import Any

from solvers.chains import chain, star
from solvers.tiny_problems import tiny_problem
from spmilp.checker.check import check
from spmilp.commands.build import (
    with_counters,
    with_semaphores,
)
from spmilp.commands.commands import Command, CommandLists, EventScheme
from spmilp.commands.order import activities_of, predecessors, transitive_reduction
from spmilp.plan.plan import Claim, Placement, Plan, Residency, Transfer
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver
from spmilp.solvers.base import SolveOptions

Mapped = tuple[Problem, Plan]

CLAIM = Claim(makespan=0, dram_traffic=0, energy=0, peak_spm=0, bound=0, bound_source="none")


def planned(problem: Problem, solver: str = "list") -> Plan | None:
    """Return a solver's plan, if there is one that the checker accepts."""
    plan = find_solver(solver).solve(problem, SolveOptions(time_limit=60.0, seed=0)).plan
    return None if plan is None or check(problem, plan) else plan


@cache
def ten_plans() -> tuple[Mapped, ...]:
    """Return plans of ten small problems, some pipelined: strips with halos, all that may be."""
    found = []
    for cores, spm, strips in ((2, 900, 3), (3, 1200, 4)):
        problem = chain(star(cores, spm), layers=2, strips=strips)
        plan = planned(problem)
        assert plan is not None
        found.append((problem, plan))
    for number in range(100):
        problem = tiny_problem(number, most_tasks=8)
        problem = with_latency(problem, pipelined=True, channels=1) if number % 2 else problem
        plan = planned(problem)
        if plan is not None and len(plan.transfers) > 6:
            found.append((problem, plan))
        if len(found) == 10:
            break
    assert len(found) == 10
    return tuple(found)


def with_events(problem: Problem, events: int | None, maximum: int | None) -> Problem:
    """Return the problem on a machine with so many events, which count so far."""
    machine = replace(problem.machine, events=events, event_maximum=maximum)
    return replace(problem, machine=machine)


def with_latency(problem: Problem, latency: int = 4, setup: int = 2, **engine: Any) -> Problem:
    """Return the problem with links of up to three latencies, and engines of other fields."""
    links, engines = problem.machine.links, problem.machine.engines
    links = tuple(replace(link, latency=latency * (1 + link.index % 3)) for link in links)
    engines = tuple(replace(each, setup=setup, **engine) for each in engines)
    return replace(problem, machine=replace(problem.machine, links=links, engines=engines))


def numbered(lists: CommandLists) -> Iterator[tuple[int, int, Command]]:
    """Yield every command with the number of its list and its position."""
    for number, one in enumerate(lists.lists):
        for position, command in enumerate(one.commands):
            yield number, position, command


def changed(lists: CommandLists, number: int, commands: tuple[Command, ...]) -> CommandLists:
    """Return the lists with other commands in one of them."""
    cores, channels = list(lists.cores), list(lists.channels)
    if number < len(cores):
        cores[number] = replace(cores[number], commands=commands)
    else:
        number -= len(cores)
        channels[number] = replace(channels[number], commands=commands)
    return replace(lists, cores=tuple(cores), channels=tuple(channels))


def without(lists: CommandLists, number: int, position: int) -> CommandLists:
    """Return the lists without one command."""
    commands = lists.lists[number].commands
    return changed(lists, number, commands[:position] + commands[position + 1 :])


def text(lists: CommandLists) -> dict[str, str]:
    """Return the lists that are not empty as text: ``w0>=1 run2 s1``."""
    found = {f"core{one.core}": _words(one.commands) for one in lists.cores}
    found |= {f"dma{one.engine}.{one.channel}": _words(one.commands) for one in lists.channels}
    return {name: words for name, words in found.items() if words}


def _words(commands: tuple[Command, ...]) -> str:
    words = {"Wait": "w{}>={}", "Signal": "s{}", "Run": "run{}", "Move": "move{}"}
    return " ".join(words[type(one).__name__].format(*astuple(one)) for one in commands)


def stay(
    index: int, slice_: int | None, memory: int, low: int, high: int, start: int, end: int,
    *, task: int | None = None, transfer: int | None = None,
) -> Residency:  # fmt: skip
    """Return a residency at ``[low, high)`` during ``[start, end)``."""
    return Residency(
        index=index, slice=slice_, memory=memory, offset=low, bytes=high - low, start=start,
        end=end, filled_by_task=task, filled_by_transfer=transfer,
    )  # fmt: skip


def move(
    index: int, slice_: int, source: int, target: int, start: int, end: int, engine: int = 0,
    channel: int = 0,
) -> Transfer:  # fmt: skip
    """Return a transfer during ``[start, end)``."""
    return Transfer(
        index=index, slice=slice_, source=source, destinations=(target,), engine=engine,
        channel=channel, start=start, sent=end, end=end, route=(),
    )  # fmt: skip


def plan_of(
    placements: tuple[Placement, ...],
    residencies: tuple[Residency, ...],
    transfers: tuple[Transfer, ...] = (),
    tensors: tuple[int, ...] = (),
) -> Plan:
    """Return a plan that claims nothing."""
    return Plan(
        placements=placements, residencies=residencies, transfers=transfers, tensors=tensors,
        claim=CLAIM, solver="by hand",
    )  # fmt: skip


def commands_as(scheme: EventScheme, problem: Problem, plan: Plan) -> CommandLists:
    """Return the command lists of a valid plan in one scheme, however many events it takes."""
    machine, activities = problem.machine, activities_of(problem, plan)
    before = transitive_reduction(activities, predecessors(problem, plan, activities))
    if scheme is EventScheme.COUNTERS:
        return with_counters(machine, activities, before, machine.event_maximum)
    return with_semaphores(machine, activities, before, machine.event_maximum)
