"""What binds a plan, on plans that are slowed in known ways, and that its steps fill it."""

from dataclasses import replace

import pytest

import spmilp
from commands.helpers import with_latency
from explaining.slowed import Made, independent_tasks, listed
from spmilp.explaining.chain import (
    AnalysedPlan,
    Binding,
    Holder,
    Reason,
    cycles_by_binding,
    steps_of,
)
from spmilp.machine.machine import CoreKind
from spmilp.problem.pins import BufferPin, Pins
from spmilp.problem.problem import Problem


def most_binding(problem: Problem) -> Binding:
    """Return what takes most of the makespan of the list scheduler's plan."""
    result = listed(problem)
    assert result.plan is not None
    assert result.makespan is not None
    subject = AnalysedPlan(problem=problem, plan=result.plan)
    found = cycles_by_binding(steps_of(subject, subject.chain))
    assert sum(cycles for _, cycles in found) == result.makespan
    return found[0][0]


ALONE = (0, 16376)
"""Bytes that are reserved, so that no task fits the second scratchpad."""


def in_turns(problem: Problem, other: int) -> Problem:
    """Tasks run on the two cores in turns, which are of two kinds; the second takes ``other``."""
    machine = problem.machine
    kinds = (*machine.kinds, CoreKind(index=1, name="second"))
    cores = (machine.cores[0], replace(machine.cores[1], kind=1))
    tasks = tuple(
        replace(task, cycles=(None, other) if task.index % 2 else (task.cycles[0], None))
        for task in problem.tasks
    )
    return replace(problem, machine=replace(machine, kinds=kinds, cores=cores), tasks=tasks)


def one_after_another() -> Problem:
    problem = independent_tasks(Made(), cycles=600, read=64)
    tasks = tuple(
        replace(task, after=(task.index - 1,)) if 0 < task.index < 8 else task
        for task in problem.tasks
    )
    return in_turns(replace(problem, tasks=tasks), 500)


def handed_on() -> Problem:
    """Each task reads what the one before it writes, on the other core."""
    builder = spmilp.ProblemBuilder(Made().machine(), name="chain")
    part = builder.input("x", (64,))
    for number in range(6):
        part = builder.task(f"t{number}", reads=part, writes=(f"y{number}", 64, "int8"), cycles=600)
    builder.output(part)
    return in_turns(builder.build(), 500)


def buffers_pinned_badly() -> Problem:
    """All operands are pinned to the second scratchpad, so that one core computes alone."""
    problem = independent_tasks(Made(), cycles=3000, read=64)
    operands = (buffer.index for buffer in problem.buffers if buffer.name.startswith("x"))
    pinned = tuple(BufferPin(buffer=operand, memories=(2,)) for operand in operands)
    return replace(problem, pins=Pins(buffers=pinned))


CORE, ENGINE, LINK, MEMORY = Holder.CORE, Holder.ENGINE, Holder.LINK, Holder.MEMORY
EIGHT = independent_tasks(Made(channels=1), cycles=10, read=64)
SLOWED: dict[str, tuple[Problem, Binding]] = {
    "long tasks": (
        independent_tasks(Made(), cycles=5000, read=64, tasks=7),
        Binding(CORE, 0, Reason.BUSY),
    ),
    "one core slow": (
        in_turns(independent_tasks(Made(), cycles=100, read=64), 2000),
        Binding(CORE, 1, Reason.BUSY),
    ),
    "a channel removed": (
        independent_tasks(Made(channels=1, engine_rate=4, reserved=ALONE), cycles=500, read=3072),
        Binding(ENGINE, 0, Reason.CHANNELS),
    ),
    "set-up": (with_latency(EIGHT, 0, 300, channels=9), Binding(ENGINE, 1, Reason.SETUP)),
    "latency": (with_latency(EIGHT, 99, pipelined=True), Binding(ENGINE, 0, Reason.LATENCY)),
    "latency of channels": (with_latency(EIGHT, 99), Binding(ENGINE, 1, Reason.CHANNELS)),
    "the link of the DRAM at a sixteenth of its rate": (
        independent_tasks(Made(dram_rate=2, channels=1), cycles=10, read=4096),
        Binding(LINK, 0, Reason.TAKEN),
    ),
    "a small scratchpad": (
        independent_tasks(Made(spm=3200, reserved=(0, 3192)), cycles=700, read=3072),
        Binding(MEMORY, 1, Reason.ROOM),
    ),
    "buffers pinned badly": (buffers_pinned_badly(), Binding(CORE, 1, Reason.BUSY)),
    "an order": (one_after_another(), Binding(CORE, 0, Reason.ORDER)),
    "a chain of operands": (handed_on(), Binding(CORE, 0, Reason.WRITER)),
}


@pytest.mark.parametrize("name", SLOWED)
def test_what_slows_a_plan_is_named(name: str) -> None:
    problem, expected = SLOWED[name]
    assert most_binding(problem) == expected
