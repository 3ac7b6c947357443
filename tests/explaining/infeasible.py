"""Problems and networks that are made infeasible in known ways, and what is to be said of each."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import spmilp
from explaining.slowed import Made, independent_tasks
from spmilp.explaining.infeasible import Obstacle
from spmilp.machine.machine import CoreKind, Machine, Memory
from spmilp.problem.pins import BufferPin, Pins, TaskPin
from spmilp.problem.problem import Problem, whole_slice


def changed(problem: Problem, change: Callable[[Machine], Machine]) -> Problem:
    return replace(problem, machine=change(problem.machine))


def memories_with(name: str, **fields: Any) -> Callable[[Machine], Machine]:
    def change(memory: Memory) -> Memory:
        return replace(memory, **fields) if memory.name.startswith(name) else memory

    return lambda machine: replace(machine, memories=tuple(map(change, machine.memories)))


def tasks(**made: Any) -> Problem:
    return independent_tasks(Made(**made), cycles=100, read=2500, tasks=3)


def engines_with(**fields: Any) -> Callable[[], Problem]:
    def change(machine: Machine) -> Machine:
        return replace(machine, engines=tuple(replace(e, **fields) for e in machine.engines))

    return lambda: changed(tasks(), change)


def scratch_too_large() -> Problem:
    problem = tasks()
    first, *others = problem.tasks
    return replace(problem, tasks=(replace(first, scratch=20_000), *others))


def no_core_of_the_kind() -> Problem:
    problem = tasks()
    kinds = (*problem.machine.kinds, CoreKind(index=1, name="special"))
    special = [replace(task, cycles=(100, None)) for task in problem.tasks]
    special[1] = replace(special[1], cycles=(None, 50))
    machine = replace(problem.machine, kinds=kinds)
    return replace(problem, machine=machine, tasks=tuple(special))


def weights_too_large_for_where_they_stay() -> Problem:
    builder = spmilp.ProblemBuilder(Made(spm=4096).machine(), name="resident")
    parts = [builder.weight(f"w{part}", (3000,), memory="spm0") for part in range(2)]
    for number, part in enumerate(parts):
        y = builder.task(f"t{number}", reads=part, writes=(f"y{number}", 16, "int8"), cycles=5)
        builder.output(y)
    return builder.build()


def results_that_stay_leave_no_room() -> Problem:
    """Three results that have to lie in the first scratchpad at the end."""
    problem = independent_tasks(Made(spm=4096), cycles=100, read=1000, tasks=3)
    names = {f"y{number}" for number in range(3)}
    buffers = tuple(
        replace(each, shape=(1200,), ends_in=1) if each.name in names else each
        for each in problem.buffers
    )
    whole = {each.index: whole_slice(each) for each in buffers}
    slices = tuple(whole.get(each.index, each) for each in problem.slices)
    only_first = CoreKind(index=1, name="second")
    machine = problem.machine
    cores = (machine.cores[0], replace(machine.cores[1], kind=1))
    every = tuple(replace(task, cycles=(100, None)) for task in problem.tasks)
    machine = replace(machine, kinds=(*machine.kinds, only_first), cores=cores)
    last = replace(every[-1], reads=every[-1].reads[:1])
    return replace(
        problem, buffers=buffers, slices=slices, machine=machine, tasks=(*every[:-1], last)
    )


def nothing_can_be_spilled_to_the_dram() -> Problem:
    """Four results wait for each other, and each scratchpad holds one of them."""
    builder = spmilp.ProblemBuilder(Made(spm=6100).machine(), name="spilled")
    made = []
    for number in range(4):
        x = builder.input(f"x{number}", (16,))
        writes = ((f"y{number}", (3500,), "int8"), (f"done{number}", 8, "int8"))
        made.append(builder.task(f"t{number}", reads=x, writes=writes, cycles=50))
    done = [each for _, each in made]
    gate = builder.task("gate", reads=done, writes=("gate", 8, "int8"), cycles=5)
    for number, (y, _) in enumerate(made):
        z = (f"z{number}", 8, "int8")
        builder.output(builder.task(f"u{number}", reads=(y, gate), writes=z, cycles=5))
    return changed(builder.build(), memories_with("dram", size=200))


def one_task_has_to_start_after_another_has_ended_that_follows_it() -> Problem:
    last = len(tasks().tasks) - 1
    pins = TaskPin(task=0, not_before=5000), TaskPin(task=last, not_after=4000)
    return replace(tasks(), pins=Pins(tasks=pins))


def a_task_is_pinned_to_the_small_memory() -> Problem:
    small = changed(tasks(), memories_with("spm1", size=2000))
    return replace(small, pins=Pins(tasks=(TaskPin(task=1, cores=(1,)),)))


BEYOND = BufferPin(buffer=0, memories=(1,), address=15000)

PINNED: dict[str, tuple[Callable[[], Problem], str, str]] = {
    # what is said, what helps
    "all cores are forbidden": (
        lambda: replace(tasks(), pins=Pins(forbidden=(0, 1))),
        "it must not run on core0, core1",
        "core core0, which is forbidden",
    ),
    "a task after one that follows it": (
        one_task_has_to_start_after_another_has_ended_that_follows_it,
        "task sum is pinned to have ended by cycle 4000, but with what has to run before it",
        "task t0",
    ),
    "a buffer beyond its memory": (
        lambda: replace(tasks(), pins=Pins(buffers=(BEYOND,))),
        "x0 is pinned to spm0 at [15000, 17500)",
        "buffer x0",
    ),
    "a task in the small memory": (a_task_is_pinned_to_the_small_memory, "t1", "task t1"),
}


CASES: dict[str, tuple[Callable[[], Problem], Obstacle, str, int, int]] = {
    # cause, memory, bytes required, bytes usable
    "operands": (lambda: tasks(spm=1024), Obstacle.TASK, "spm0", 2516, 1024),
    "reserved": (lambda: tasks(reserved=(14384, 14384)), Obstacle.TASK, "spm0", 2516, 2000),
    "scratch": (scratch_too_large, Obstacle.TASK, "spm0", 22516, 16384),
    "DRAM": (
        lambda: changed(tasks(), memories_with("dram", size=7000)),
        *(Obstacle.DRAM, "dram", 7516, 7000),
    ),
    "no core of the kind": (no_core_of_the_kind, Obstacle.CORE, "", 0, 0),
    "no loads": (engines_with(loads=False), Obstacle.ROUTE, "", 0, 0),
    "no way to the DRAM": (engines_with(reaches=(1, 2)), Obstacle.ROUTE, "", 0, 0),
    "short transfers": (engines_with(longest=1000), Obstacle.ROUTE, "", 0, 0),
    "weights that stay": (
        weights_too_large_for_where_they_stay,
        *(Obstacle.START, "spm0", 6000, 4096),
    ),
}

UNPROVEN: dict[str, tuple[Callable[[], Problem], Obstacle, str, str, int, int]] = {
    # cause, what is named, memory, bytes required, bytes usable
    "results that stay": (
        results_that_stay_leave_no_room,
        *(Obstacle.ROOM, "task t2, cycle", "spm0", 4600, 4096),
    ),
    "nothing can be spilled": (
        nothing_can_be_spilled_to_the_dram,
        *(Obstacle.ROOM, "what is spilled", "dram", 3604, 200),
    ),
}

MODELS: dict[str, tuple[Callable[[Machine], Machine], Obstacle, str, int, int, str]] = {
    # cause, memory, bytes required, bytes usable, what helps
    "the smallest tiles": (
        memories_with("spm", size=512, alignment=256),
        *(Obstacle.TILE, "spm_0", 768, 512, "768 B more"),
    ),
    "DRAM": (
        memories_with("dram", size=5000),
        *(Obstacle.DRAM, "dram", 5120, 5000, "1,200 B more in dram"),
    ),
}
