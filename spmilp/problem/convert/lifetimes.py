"""Offset allocation as a problem: everything is fixed but the addresses.

One core works in one scratchpad, without any DMA engine, so nothing can leave or come back. The
tasks are a chain; each one lasts from one instant at which some lifetime starts or ends to the
next. A buffer is written by the task with which its lifetime starts, and read by the one with which
it ends, unless they are the same. So in a plan without idle cycles each buffer has a residency for
exactly its lifetime (counted from the first instant), and the plans differ in offsets alone. Idle
cycles only make lifetimes longer; they leave what overlaps what as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from spmilp.errors import PinError, SpmilpError
from spmilp.machine.machine import Core, CoreKind, Machine, Memory, MemoryKind
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Buffer, BufferKind, Problem, Task, whole_slice
from spmilp.units import BufferIdx, Bytes, Cycles, TaskIdx, align_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """A run of bytes that lives during ``[start, end)``."""

    name: str
    start: Cycles
    end: Cycles
    bytes: Bytes


def problem_of_lifetimes(
    name: str, lifetimes: Sequence[Lifetime], capacity: Bytes | None = None, alignment: Bytes = 1
) -> Problem:
    """Return the problem of placing buffers whose lifetimes are given.

    Parameters
    ----------
    capacity
        Bytes of the memory; ``None`` for enough to place all of them side by side. The objective
        is the peak in any case.

    Raises
    ------
    SpmilpError
        If there is nothing to place.
    """
    if not lifetimes:
        raise SpmilpError(f"{name}: has no buffers, so there is nothing to place")
    instants = sorted({time for one in lifetimes for time in (one.start, one.end)})
    step = {time: number for number, time in enumerate(instants)}
    writes: list[list[BufferIdx]] = [[] for _ in instants[1:]]
    reads: list[list[BufferIdx]] = [[] for _ in instants[1:]]
    for index, one in enumerate(lifetimes):
        first, last = step[one.start], step[one.end] - 1
        writes[first].append(index)
        if last > first:
            reads[last].append(index)
    buffers = tuple(
        Buffer(index=i, name=one.name, kind=BufferKind.INTERMEDIATE, shape=(one.bytes,))
        for i, one in enumerate(lifetimes)
    )
    enough = sum(align_up(one.bytes, alignment) for one in lifetimes)
    return Problem(
        name=name,
        machine=_machine(enough if capacity is None else capacity, alignment),
        buffers=buffers,
        slices=tuple(map(whole_slice, buffers)),
        tasks=tuple(
            Task(
                index=number,
                name=f"from {start}",
                cycles=(end - start,),
                reads=tuple(reads[number]),
                writes=tuple(writes[number]),
                after=(number - 1,) if number else (),
            )
            for number, (start, end) in enumerate(pairwise(instants))
        ),
        objective=Objective.of(Quantity.PEAK_SPM),
    )


def lifetimes_of_problem(problem: Problem) -> tuple[Lifetime, ...]:
    """Return the lifetimes of a problem that leaves nothing but addresses to decide.

    Scratch counts as a buffer that lives while its task runs.

    Raises
    ------
    SpmilpError
        If something else is to decide: there are several cores or an engine, or two tasks whose
        order is open; if anything is pinned; or if a buffer is not the whole of what is read,
        starts or ends somewhere, or may lie in place of another.
    """
    if problem.pins:
        raise PinError(f"{problem.name}: has pins, which lifetimes cannot say")
    if len(problem.machine.cores) > 1 or problem.machine.engines:
        raise SpmilpError(
            f"{problem.name}: has {len(problem.machine.cores)} cores and "
            f"{len(problem.machine.engines)} DMA engines, so lifetimes are not fixed; expected 1 "
            "core and no engine (spmilp export writes the lifetimes of a plan)"
        )
    starts, ends = _times(problem)
    writers = problem.writers()
    found = []
    for buffer in problem.buffers:
        writer = writers[buffer.index]
        if writer is None or buffer.ends_in is not None:
            raise SpmilpError(
                f"buffer {buffer.name}: starts or ends in a memory, so its lifetime "
                "is that of the plan; expected one that a task writes"
            )
        found.append(_Span(buffer.name, writer, writer, buffer.bytes))
    for task in problem.tasks:
        if task.in_place:
            raise SpmilpError(f"task {task.name}: has pairs in place, which the format cannot say")
        for read in task.reads:
            if read >= len(problem.buffers):
                raise SpmilpError(f"task {task.name}: reads a part of a buffer, expected the whole")
            found[read].last = max(found[read].last, task.index, key=lambda t: starts[t])
        if task.scratch:
            found.append(_Span(f"{task.name} scratch", task.index, task.index, task.scratch))
    return tuple(
        Lifetime(name=one.name, start=starts[one.first], end=ends[one.last], bytes=one.bytes)
        for one in found
    )


@dataclass(slots=True)
class _Span:
    name: str
    first: TaskIdx
    last: TaskIdx
    bytes: Bytes


def _times(problem: Problem) -> tuple[dict[TaskIdx, Cycles], dict[TaskIdx, Cycles]]:
    """Return start and end of each task, one after the other."""
    core = problem.machine.cores[0]
    before = problem.predecessors()
    starts: dict[TaskIdx, Cycles] = {}
    ends: dict[TaskIdx, Cycles] = {}
    now, last = 0, None
    for index in problem.topological_order():
        task = problem.tasks[index]
        cycles = task.cycles[core.kind]
        if cycles is None:
            raise SpmilpError(f"task {task.name}: core {core.name} cannot run it")
        if last is not None and last not in before[index]:
            raise SpmilpError(
                f"tasks {problem.tasks[last].name} and {task.name}: their order is open; expected "
                "each task after the one before it"
            )
        starts[index], ends[index] = now, now + cycles
        now, last = now + cycles, index
    return starts, ends


def _machine(capacity: Bytes, alignment: Bytes) -> Machine:
    return Machine(
        name="one scratchpad",
        memories=(
            Memory(index=0, name="spm", kind=MemoryKind.SPM, size=capacity, alignment=alignment),
        ),
        kinds=(CoreKind(index=0, name="core"),),
        cores=(Core(index=0, name="core", kind=0, memory=0),),
    )
