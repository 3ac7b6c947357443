"""Tiny random problems with random pins; each number gives one, always the same."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from spmilp.errors import PinError
from spmilp.machine.machine import MemoryKind
from spmilp.problem.contradictions import refuse_contradictions
from spmilp.problem.pins import BufferPin, PinKind, Pins, TaskPin
from spmilp.problem.problem import Problem
from tests.solvers.tiny_problems import tiny_problem

TRIES = 20


def pinned_problem(number: int, kinds: Iterable[PinKind] = PinKind, most_tasks: int = 3) -> Problem:
    """Return a tiny problem with pins of some kinds that do not contradict each other at once."""
    problem, random = tiny_problem(number, most_tasks), Random(f"pins {number}")
    for _ in range(TRIES):
        pinned = replace(problem, pins=_pins(problem, random, frozenset(kinds)))
        try:
            refuse_contradictions(pinned)
        except PinError:
            continue
        return pinned
    return problem


def _pins(problem: Problem, random: Random, kinds: frozenset[PinKind]) -> Pins:
    cores = [core.index for core in problem.machine.cores]
    tasks = []
    for task in problem.tasks:
        pin = TaskPin(
            task=task.index,
            cores=_some(cores, random) if _asks(PinKind.CORES, kinds, random) else (),
            not_before=random.randint(1, 60) if _asks(PinKind.NOT_BEFORE, kinds, random) else 0,
        )
        if _asks(PinKind.NOT_AFTER, kinds, random):
            pin = replace(pin, not_after=pin.not_before + random.randint(10, 120))
        if pin != TaskPin(task=task.index):
            tasks.append(pin)
    forbidden = ()
    if PinKind.CORES in kinds and random.random() < 0.1:
        forbidden = (random.choice(cores),)
    return Pins(
        forbidden=forbidden, tasks=tuple(tasks), buffers=tuple(_buffers(problem, random, kinds))
    )


def _buffers(problem: Problem, random: Random, kinds: frozenset[PinKind]) -> Iterable[BufferPin]:
    memories = [m.index for m in problem.machine.memories if m.kind is not MemoryKind.DRAM]
    for buffer in problem.buffers if PinKind.MEMORIES in kinds else ():
        if random.random() < 0.5:
            continue
        chosen = _some(memories, random)
        address = None
        if _asks(PinKind.ADDRESS, kinds, random):
            memory = problem.machine.memories[chosen[0]]
            address = memory.alignment * random.randrange((memory.size or 0) // memory.alignment)
        yield BufferPin(
            buffer=buffer.index,
            memories=chosen,
            address=address,
            resident=_asks(PinKind.RESIDENT, kinds, random),
        )


def _asks(kind: PinKind, kinds: frozenset[PinKind], random: Random) -> bool:
    return kind in kinds and random.random() < 0.3


def _some(numbers: list[int], random: Random) -> tuple[int, ...]:
    return tuple(sorted(random.sample(numbers, random.randint(1, min(2, len(numbers))))))
