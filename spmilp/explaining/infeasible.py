"""Why no plan exists, proven without solving; or what the list scheduler has found no room for."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

import networkx as nx

from spmilp.bounds.best import Bound
from spmilp.errors import DoesNotFitError, PinError, Shortage
from spmilp.machine.machine import Machine, Memory, MemoryKind
from spmilp.machine.routes import routes_of
from spmilp.problem.contradictions import refuse_contradictions
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.common.fit import memories_that_can_run, narrowed, worst_shortage
from spmilp.solvers.schedule.portfolio import Schedules, plan_from
from spmilp.units import BufferIdx, EngineIdx, MemoryIdx


class Obstacle(StrEnum):
    """Why there is no plan; ``docs/explain.md`` says what each is."""

    CORE = "core"
    DRAM = "dram"
    START = "start"
    TASK = "task"
    ROUTE = "route"
    TILE = "tile"
    PINS = "pins"
    ROOM = "room"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasibility:
    """Why there is no plan, ``said`` in a sentence.

    ``what`` is the task, cycle, tensor or group that is in the way. If it is not proven that no
    plan exists, none was found.
    """

    cause: Obstacle
    what: str
    said: str
    short: Shortage | None = None
    is_proven: bool = True


def infeasibility_of(problem: Problem) -> Infeasibility | None:
    """Return the first proof that no plan exists, among a few without search; else ``None``.

    Of several tasks that are too large, it names the one with the most bytes too many.
    """
    arguments = (_no_core, _too_much_in_a_memory, _too_large_a_task, _no_way)
    return next((found for each in arguments for found in each(problem)), None)


def infeasibility_of_pins(problem: Problem) -> Infeasibility | None:
    """Return a proof that no plan keeps to the pins, if there is no proof without the pins."""
    if not problem.pins or infeasibility_of(replace(problem, pins=NO_PINS)) is not None:
        return None
    try:
        refuse_contradictions(problem)
        left = infeasibility_of(narrowed(problem).problem)
    except PinError as error:
        said = f"they contradict each other: {str(error).removeprefix('pins: ')}"
        return Infeasibility(cause=Obstacle.PINS, what="pins", said=said)
    if left is None:
        return None
    return replace(left, cause=Obstacle.PINS, said=f"with the pins that there are, {left.said}")


def infeasibility_of_tiles(machine: Machine, error: DoesNotFitError) -> Infeasibility | None:
    """Return why a network cannot be cut into tiles that fit, where the error tells."""
    short = error.shortage
    if short is None:
        return None
    cause = Obstacle.TILE
    if memory_named(machine, short.memory).kind is MemoryKind.DRAM:
        cause = Obstacle.DRAM
        said = f"inputs, weights and outputs up to it are more than {short.memory} holds"
    elif error.is_proven:
        said = _of_largest(short)
    else:
        said = (
            f"however it and what it reads were cut, some task needs more than {short.memory} "
            "holds; its smallest tile alone would fit"
        )
    return _of_shortage(cause, short, said, is_proven=error.is_proven)


def infeasibility_in_schedule(problem: Problem) -> Infeasibility | None:
    """Return what the list scheduler finds no room for in its first schedule; this is no proof."""
    schedules = Schedules(problem)
    found = next(iter(schedules), None)
    short = schedules.shortage
    if found is not None:
        try:
            plan_from(problem, found, Bound("zero", problem.objective.first, 0), "list")
        except DoesNotFitError as error:
            short = error.shortage
    if short is None:
        return None
    if memory_named(problem.machine, short.memory).kind is MemoryKind.DRAM:
        said = f"it does not fit {short.memory} beside inputs, weights and outputs"
    elif short.needed > short.usable:
        said = f"it needs more than {short.memory} holds, beside what must stay there"
    else:
        said = f"it fits {short.memory} by size, but not between the gaps that are left"
    return _of_shortage(Obstacle.ROOM, short, said, is_proven=False)


def memory_named(machine: Machine, name: str) -> Memory:
    """Return a memory of a machine."""
    return next(memory for memory in machine.memories if memory.name == name)


def _of_largest(short: Shortage) -> str:
    largest = f"{short.memory} holds, the largest memory of a core that can run it"
    return f"it needs more at one time than {largest}"


def _of_shortage(
    cause: Obstacle, short: Shortage, said: str, *, is_proven: bool = True
) -> Infeasibility:
    return Infeasibility(cause=cause, what=short.what, said=said, short=short, is_proven=is_proven)


def _no_core(problem: Problem) -> Iterator[Infeasibility]:
    present = {core.kind for core in problem.machine.cores}
    for task in problem.tasks:
        able = [kind for kind, cycles in enumerate(task.cycles) if cycles is not None]
        if not present.intersection(able):
            names = " or ".join(problem.machine.kinds[kind].name for kind in able)
            said = f"only cores of kind {names} can run it, and the machine has none"
            yield Infeasibility(cause=Obstacle.CORE, what=f"task {task.name}", said=said)


def _too_much_in_a_memory(problem: Problem) -> Iterator[Infeasibility]:
    """Yield DRAMs that do not hold their tensors, then memories too small at the start or end."""
    for memory in problem.machine.memories:
        if memory.usable is None:
            continue
        if memory.kind is MemoryKind.DRAM:
            here = [(t.name, t.bytes) for t in problem.tensors if t.memory == memory.index]
            there = [(Obstacle.DRAM, f"memory {memory.name}", here)]
            said = "inputs, weights and outputs lie in it, and are more than it holds"
        else:
            first = [(b.name, b.bytes) for b in problem.buffers if b.starts_in == memory.index]
            last = [(b.name, b.bytes) for b in problem.buffers if b.ends_in == memory.index]
            there = [(Obstacle.START, "cycle 0", first), (Obstacle.START, "the last cycle", last)]
            said = f"what has to lie in {memory.name} then is more than it holds"
        for cause, what, parts in there:
            needed = sum(size for _, size in parts)
            if needed > memory.usable:
                short = Shortage(
                    what=what,
                    memory=memory.name,
                    needed=needed,
                    usable=memory.usable,
                    parts=tuple(parts),
                )
                yield _of_shortage(cause, short, said)


def _too_large_a_task(problem: Problem) -> Iterator[Infeasibility]:
    short = worst_shortage(problem)
    if short is not None:
        yield _of_shortage(Obstacle.TASK, short, _of_largest(short))


def _no_way(problem: Problem) -> Iterator[Infeasibility]:
    """Yield operands that no chain of engines brings to their task, and results that cannot end."""
    machine, writer = problem.machine, problem.writers()

    def homes(buffer: BufferIdx) -> tuple[MemoryIdx, ...]:
        starts, by = problem.buffers[buffer].starts_in, writer[buffer]
        if starts is not None:
            return (starts,)
        return () if by is None else memories_of(problem.tasks[by])

    def memories_of(task: Task) -> tuple[MemoryIdx, ...]:
        return tuple(memory.index for memory in memories_that_can_run(machine, task))

    @cache
    def leads(
        sources: tuple[MemoryIdx, ...], targets: tuple[MemoryIdx, ...], able: tuple[EngineIdx, ...]
    ) -> bool:
        every, routes = range(len(machine.memories)), routes_of(machine)
        pairs = ((a, b) for a in every for b in every)
        graph = nx.DiGraph(pair for pair in pairs if set(able) & {*routes.engines_for(*pair)})
        graph.add_nodes_from(every)
        reached = set(sources).union(*(nx.descendants(graph, source) for source in sources))
        return bool(reached.intersection(targets))

    moved = [
        (f"task {task.name}", problem.slices[read].buffer, problem.slices[read].bytes, task)
        for task in problem.tasks
        for read in task.reads
    ]
    ends = [(f"buffer {b.name}", b.index, b.bytes, b.ends_in) for b in problem.buffers]
    for what, buffer, size, target in (*moved, *ends) if machine.remote is None else ():
        if target is None:
            continue
        targets = memories_of(target) if isinstance(target, Task) else (target,)
        able = tuple(e.index for e in machine.engines if e.longest is None or size <= e.longest)
        if not leads(homes(buffer), targets, able):
            name = problem.buffers[buffer].name
            of, to = (
                " or ".join(machine.memories[memory].name for memory in some[:2])
                + " or another" * (len(some) > 2)
                for some in (homes(buffer), targets)
            )
            yield Infeasibility(
                cause=Obstacle.ROUTE,
                what=what,
                said=f"no engine brings {name} ({size:,} B) from {of} to {to}, directly or by "
                "other memories",
            )
