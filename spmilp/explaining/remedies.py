"""Changes that make a problem fit, each tried by solving: of memories, or of pins."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from time import perf_counter

from spmilp import quantities
from spmilp.errors import SpmilpError
from spmilp.explaining.infeasible import Infeasibility, Obstacle, memory_named
from spmilp.machine.machine import Machine, Memory
from spmilp.problem.pins import NO_PINS, Pins
from spmilp.problem.problem import Problem
from spmilp.report.search_log import LogEntry
from spmilp.units import Bytes, Cycles, align_up

MOST_DOUBLINGS = 12
"""Amounts of bytes that are tried, each twice the one before, until one suffices."""

FINE = 16
"""A search for the fewest bytes that suffice ends when they are known to one part in so many."""

MOST_PINS = 16
"""Pins that are left out one by one; if none of these helps, all pins are left out at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A change, in words, with which a checked plan was found.

    ``bytes`` more, where the change is in bytes; ``least``: fewer are proven not to suffice.
    """

    change: str
    makespan: Cycles
    bytes: Bytes | None = None
    least: bool = False


class Trials:
    """Tries changes, as long as there is time: none begins after so many ``seconds``.

    An interrupt ends the last one. ``on_log`` hears of each that has ended.
    """

    def __init__(self, seconds: float, on_log: Callable[[LogEntry], None]) -> None:
        self._began = perf_counter()
        self._seconds = seconds
        self._on_log = on_log
        self._longest = 0.0
        self.count = 0

    @property
    def seconds_left(self) -> float:
        """Seconds until the time is over."""
        return self._began + self._seconds - perf_counter()

    def tried(self, change: str, solved: Callable[[], Cycles | None]) -> Cycles | None:
        """Return the makespan of a plan; ``None`` where there is none, or no time.

        There is no time where the longest trial took longer than what is left.
        """
        if self.seconds_left < self._longest:
            return None
        began, makespan = perf_counter(), None
        self.count += 1
        try:
            makespan = solved()
        except (SpmilpError, ValueError):
            pass
        except KeyboardInterrupt:
            self._seconds = -math.inf
        self._longest = max(self._longest, perf_counter() - began)
        gone = perf_counter() - self._began
        self._on_log(LogEntry(seconds=gone, source=change, incumbent=makespan, bound=None))
        return makespan

    def least_bytes(
        self, solved: Callable[[Bytes], Cycles | None], least: Bytes, step: Bytes
    ) -> tuple[Bytes, Cycles] | None:
        """Return about the fewest bytes with which there is a plan, and its makespan.

        They are doubled until there is one, then cut down between what does and what does not do.
        They are multiples of ``step``; fewer than ``least`` are known not to suffice.
        """

        def plan_with(more: Bytes) -> Cycles | None:
            return self.tried(f"{more:,} B more", partial(solved, more))

        low, size = 0, align_up(max(least, 1), step)
        makespan = plan_with(size)
        for _ in range(MOST_DOUBLINGS - 1):
            if makespan is None:
                low, size = size, 2 * size
                makespan = plan_with(size)
        if makespan is None:
            return None
        while low and size - low > max(step, size // FINE):
            middle = align_up((low + size) // 2, step)
            found = plan_with(middle)
            if found is None:
                low = middle
            else:
                size, makespan = middle, found
        return size, makespan


def remedies_for(
    machine: Machine, why: Infeasibility, trials: Trials, solved: Callable[[Machine], Cycles | None]
) -> Iterator[Remedy]:
    """Yield more bytes, if they make it fit, of all memories like one, and of that one alone."""
    if why.cause in (Obstacle.CORE, Obstacle.ROUTE):
        return
    if why.short is not None:
        memory = memory_named(machine, why.short.memory)
        short = max(0, why.short.needed - why.short.usable)
    else:
        memory, short = max(machine.spms, key=lambda each: each.usable or 0), 0
    size, usable = memory.size or 0, memory.usable or 0
    is_proven = short > 0 and why.is_proven and why.cause is not Obstacle.TILE
    least = short if why.is_proven or short else max(memory.alignment, usable // 8)
    kind = memory.kind, memory.size, memory.reserved
    alike = [each for each in machine.memories if kind == (each.kind, each.size, each.reserved)]

    def grown(memories: Sequence[Memory], more: Bytes) -> Cycles | None:
        every = (
            replace(each, size=(each.size or 0) + more) if each in memories else each
            for each in machine.memories
        )
        return solved(replace(machine, memories=tuple(every)))

    found = trials.least_bytes(partial(grown, alike), least, memory.alignment)
    if found is None:
        return
    more, makespan = found
    whose, alone = memory.name, None
    if len(alike) > 1:
        whose = f"each of {len(alike)} memories like {memory.name}"
        alone = trials.tried(f"the same in {memory.name}", partial(grown, [memory], more))
    for where, cycles in ((whose, makespan), (f"{memory.name} alone", alone)):
        if cycles is not None:
            yield Remedy(
                change=f"{more:,} B more in {where} ({quantities.shown_bytes(size + more)})",
                makespan=cycles,
                bytes=more,
                least=is_proven and more <= short,
            )


def without_pins(
    problem: Problem, trials: Trials, solved: Callable[[Problem], Cycles | None]
) -> Iterator[Remedy]:
    """Yield each pin without which a checked plan was found; if there is none, that of no pins."""
    found = not problem.pins
    for name, pins in islice(_without_one(problem), MOST_PINS):
        makespan = trials.tried(f"without {name}", partial(solved, replace(problem, pins=pins)))
        if makespan is not None:
            found = True
            yield Remedy(change=f"without the pin of {name}", makespan=makespan)
    if not found:
        free = replace(problem, pins=NO_PINS)
        makespan = trials.tried("without any pins", partial(solved, free))
        if makespan is not None:
            yield Remedy(change="without any pins", makespan=makespan)


def _without_one(problem: Problem) -> Iterator[tuple[str, Pins]]:
    pins = problem.pins
    for core in pins.forbidden:
        forbidden = tuple(each for each in pins.forbidden if each != core)
        name = problem.machine.cores[core].name
        yield f"core {name}, which is forbidden", replace(pins, forbidden=forbidden)
    for task in pins.tasks:
        tasks = tuple(each for each in pins.tasks if each != task)
        yield f"task {problem.tasks[task.task].name}", replace(pins, tasks=tasks)
    for buffer in pins.buffers:
        buffers = tuple(each for each in pins.buffers if each != buffer)
        yield f"buffer {problem.buffers[buffer.buffer].name}", replace(pins, buffers=buffers)
