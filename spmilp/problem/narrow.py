"""Pins on cores as a narrower problem: what every solver and every bound understands.

A pin that names cores, a forbidden core, and a buffer that may lie in some scratchpads only say
which cores can run a task. A problem says that by kinds of cores: cores between which pins tell a
difference become kinds of their own. Its plans are the plans of the problem with pins, as far as
these are concerned, and its bounds are theirs.
"""

from collections.abc import Iterator
from dataclasses import replace

from spmilp.machine.machine import Core, CoreKind, Machine
from spmilp.problem.pins import BufferPin, TaskPin
from spmilp.problem.problem import Problem, Task
from spmilp.units import BufferIdx, CoreIdx, KindIdx, MemoryIdx, TaskIdx


def may_lie(machine: Machine, pin: BufferPin | None, memory: MemoryIdx) -> bool:
    """Say whether a buffer or a slice of it may lie in a memory."""
    if pin is None or memory in pin.memories:
        return True
    return machine.memories[memory].kind not in {machine.memories[m].kind for m in pin.memories}


def pinned_operands(problem: Problem) -> dict[TaskIdx, list[BufferIdx]]:
    """Return the pinned buffers that must lie in a task's own memory, for tasks that have any.

    What it writes; and, unless cores read remotely, what it reads.
    """
    pinned = {pin.buffer for pin in problem.pins.buffers}
    found: dict[TaskIdx, list[BufferIdx]] = {}
    for task in problem.tasks if pinned else ():
        local = list(task.writes)
        if problem.machine.remote is None:
            local += [problem.slices[read].buffer for read in task.reads]
        some = [buffer for buffer in dict.fromkeys(local) if buffer in pinned]
        if some:
            found[task.index] = some
    return found


def cores_left(problem: Problem) -> dict[TaskIdx, tuple[CoreIdx, ...]]:
    """Return the cores on which pins let a task run, for each task that has a pin of its own.

    That is one that names cores, or of a buffer that has to lie where the task runs.
    """
    pins, machine = problem.pins, problem.machine
    of_task = {pin.task: pin for pin in pins.tasks if pin.cores}
    of_buffer = {pin.buffer: pin for pin in pins.buffers}
    operands = pinned_operands(problem)

    def left(task: Task, pin: TaskPin | None) -> Iterator[CoreIdx]:
        for core in machine.cores:
            able = task.cycles[core.kind] is not None and core.index not in pins.forbidden
            wanted = pin is None or core.index in pin.cores
            if (
                able
                and wanted
                and all(
                    may_lie(machine, of_buffer[buffer], core.memory)
                    for buffer in operands.get(task.index, ())
                )
            ):
                yield core.index

    return {
        task: tuple(left(problem.tasks[task], of_task.get(task)))
        for task in sorted({*of_task, *operands})
    }


def narrowed(problem: Problem) -> Problem:
    """Return the problem with its pins on cores as kinds of cores, and with its other pins.

    Without pins it is the problem itself.
    """
    pins = problem.pins
    if not pins:
        return problem
    machine = problem.machine
    left = {task: frozenset(cores) for task, cores in cores_left(problem).items()}
    lost = [
        frozenset(
            task
            for task, cores in left.items()
            if core.index not in cores and problem.tasks[task].cycles[core.kind] is not None
        )
        for core in machine.cores
    ]
    forbidden = frozenset(pins.forbidden)
    kinds: dict[tuple[KindIdx, frozenset[TaskIdx], bool], KindIdx] = {
        (kind.index, frozenset(), False): kind.index for kind in machine.kinds
    }
    cores: list[Core] = []
    for core in machine.cores:
        key = (
            core.kind,
            frozenset() if core.index in forbidden else lost[core.index],
            (core.index in forbidden),
        )
        cores.append(replace(core, kind=kinds.setdefault(key, len(kinds))))
    added = list(kinds)[len(machine.kinds) :]
    tasks = problem.tasks
    if added:
        tasks = tuple(_on_more_kinds(task, added) for task in tasks)
    return replace(
        problem,
        machine=replace(
            machine, cores=tuple(cores), kinds=(*machine.kinds, *_copies(machine, added))
        ),
        tasks=tasks,
        pins=replace(
            pins,
            forbidden=(),
            tasks=tuple(replace(pin, cores=()) for pin in pins.tasks if pin.has_times),
        ),
    )


def _copies(
    machine: Machine, added: list[tuple[KindIdx, frozenset[TaskIdx], bool]]
) -> Iterator[CoreKind]:
    """Yield copies of kinds, under names that no other kind has."""
    taken = {kind.name for kind in machine.kinds}
    for index, (kind, _, _) in enumerate(added, len(machine.kinds)):
        name = f"{machine.kinds[kind].name}.{index}"
        while name in taken:
            name += "_"
        taken.add(name)
        yield replace(machine.kinds[kind], index=index, name=name)


def _on_more_kinds(task: Task, added: list[tuple[KindIdx, frozenset[TaskIdx], bool]]) -> Task:
    """Return a task with its cycles on kinds that are copies of others, where it may run."""
    runs = [not forbidden and task.index not in lost for _, lost, forbidden in added]
    kinds = [kind for kind, _, _ in added]
    cycles = [task.cycles[k] if able else None for k, able in zip(kinds, runs, strict=True)]
    energy: list[int | None] = []
    if task.energy:
        energy = [task.energy[k] if able else None for k, able in zip(kinds, runs, strict=True)]
    return replace(task, cycles=(*task.cycles, *cycles), energy=(*task.energy, *energy))
