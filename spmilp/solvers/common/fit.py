"""Whether the working set of each task fits a scratchpad; and some pins expressed without pins.

Some kinds of pins can be expressed by the problem itself. :func:`narrowed` does so, and thereby
every solver keeps to them without knowing of pins:

*Cores.* A pin that names cores, a forbidden core, and a buffer that may lie in some scratchpads
only restrict which cores can run a task. A task states that by the kinds of cores that can run it.
Cores that pins treat differently therefore become kinds of their own.

*Not before.* A core is added that runs waiting tasks alone, one after another. Each ends at a cycle
before which pinned tasks must not start, and these tasks follow it (``Task.after``). The waiting
tasks are left out of the plan that is returned, and added to a plan that is given as a hint. No
quantity of a plan changes, for a waiting task ends before a task that follows it.

So the two problems have the same plans, as far as these pins are concerned, and a bound for one
holds for the other. Other pins stay as they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from spmilp.bounds.resources import least_reads
from spmilp.errors import Shortage
from spmilp.machine.machine import Core, CoreKind, Machine, Memory, MemoryKind
from spmilp.plan.plan import Placement, Plan
from spmilp.problem.contradictions import cores_left
from spmilp.problem.problem import Problem, Task
from spmilp.units import Bytes, Cycles, TaskIdx, align_up


def why_it_cannot_fit(problem: Problem) -> str:
    """Return why some task fits no core's memory; empty when every task fits one.

    Of several tasks it is the one with the most bytes too many.
    """
    able: set[tuple[bool, ...]] = set()
    for task in problem.tasks:
        kinds = tuple(cycles is not None for cycles in task.cycles)
        if kinds not in able and not memories_that_can_run(problem.machine, task):
            return f"task {task.name}: no core of the machine is of a kind that can run it"
        able.add(kinds)
    short = worst_shortage(problem)
    return "" if short is None else _explain(problem.machine, short)


def worst_shortage(problem: Problem) -> Shortage | None:
    """Return the task with the most bytes more than any memory of its cores holds, if there is one.

    The bytes counted are a lower bound: what a task reads (of each buffer at most the whole, which
    serves all of its slices; where cores read remote memories, reads do not count), what it writes
    less what may overwrite an operand, and its scratch. When they exceed the usable bytes of every
    memory whose cores can run the task, no plan exists.
    """
    worst: tuple[Bytes, Task, Memory] | None = None
    known: dict[tuple[bool, ...], Memory | None] = {}
    for task in problem.tasks:
        able = tuple(cycles is not None for cycles in task.cycles)
        if able not in known:
            memories = memories_that_can_run(problem.machine, task)
            known[able] = max(memories, key=lambda memory: memory.usable or 0, default=None)
        roomiest = known[able]
        if roomiest is None or roomiest.usable is None:
            continue
        over = _least_bytes_in(problem, task, roomiest) - roomiest.usable
        if over > 0 and (worst is None or over > worst[0]):
            worst = over, task, roomiest
    if worst is None:
        return None
    over, task, memory = worst
    usable = memory.usable or 0
    return Shortage(
        what=f"task {task.name}",
        memory=memory.name,
        needed=usable + over,
        usable=usable,
        parts=tuple(parts_of(problem, task)),
        task=task.name,
    )


def memories_that_can_run(machine: Machine, task: Task) -> list[Memory]:
    """Return the memories of the cores that can run a task, by index."""
    able = {core.memory for core in machine.cores if task.cycles[core.kind] is not None}
    return [machine.memories[index] for index in sorted(able)]


def parts_of(problem: Problem, task: Task) -> Iterator[tuple[str, Bytes]]:
    """Yield ``(name, bytes)`` of what a task reads and writes, and of its scratch."""
    for read in task.reads:
        part = problem.slices[read]
        yield problem.buffers[part.buffer].name, part.bytes
    for written in task.writes:
        yield problem.buffers[written].name, problem.buffers[written].bytes
    if task.scratch:
        yield "scratch", task.scratch


def least_bytes(problem: Problem, task: Task, alignment: Bytes = 1, unpadded: int = 0) -> Bytes:
    """Return bytes that must lie in a task's memory at one time, each part at an aligned address.

    What may overwrite an operand counts with it once. So many parts are ``unpadded``, those with
    the most padding: they need none behind them.
    """
    sizes = [*(problem.buffers[buffer].bytes for buffer in task.writes), task.scratch]
    saved: list[Bytes] = []
    if problem.machine.remote is None:
        sizes += least_reads(problem, task).values()
        pairs = [
            [
                min(problem.slices[s].bytes, problem.buffers[b].bytes)
                for s, other in task.in_place
                if other == b
            ]
            for b in task.writes
        ]
        saved = [align_up(max(some), alignment) for some in pairs if some]
    padding = sorted((align_up(size, alignment) - size for size in sizes), reverse=True)
    return sum(sizes) + sum(padding[unpadded:]) - sum(saved)


def _least_bytes_in(problem: Problem, task: Task, memory: Memory) -> Bytes:
    """Return a lower bound on a task's bytes in a memory.

    Every part is followed by padding, but for those right before the memory's end or a reserved
    range that is itself not aligned: at most one each.
    """
    ends = [*(taken.start for taken in memory.reserved), memory.size or 0]
    unaligned = sum(end % memory.alignment != 0 for end in ends)
    return least_bytes(problem, task, memory.alignment, unaligned)


def _explain(machine: Machine, short: Shortage) -> str:
    size = next(memory.size for memory in machine.memories if memory.name == short.memory) or 0
    reserved = f" ({size - short.usable} B of it are reserved)" if size > short.usable else ""
    largest = sorted(short.parts, key=lambda part: (-part[1], part[0]))[:4]
    parts = ", ".join(f"{name} {taken} B" for name, taken in largest)
    return (
        f"{short.what} needs {short.needed} B > {short.usable} B usable in {short.memory}"
        f"{reserved}, {short.needed - short.usable} B over (largest: {parts}); use smaller tiles "
        "or a larger scratchpad"
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Narrowed:
    """A problem that expresses some pins itself, and how its plans are translated.

    Its first ``tasks`` and ``cores`` are those of the problem with pins; added ones come behind
    them. ``waits`` are the cycles at which the added tasks end, in their order.
    """

    problem: Problem
    tasks: int
    cores: int
    waits: tuple[Cycles, ...] = ()

    def plan(self, plan: Plan) -> Plan:
        """Return a plan of the narrower problem as one of the problem with pins."""
        if not self.waits:
            return plan
        return replace(plan, placements=plan.placements[: self.tasks])

    def hint(self, plan: Plan | None) -> Plan | None:
        """Return a plan of the problem with pins as one of the narrower problem."""
        if plan is None or not self.waits or len(plan.placements) != self.tasks:
            return plan
        waiting = tuple(
            Placement(task=self.tasks + number, core=self.cores, start=start, end=end)
            for number, (start, end) in enumerate(pairwise((0, *self.waits)))
        )
        return replace(plan, placements=(*plan.placements, *waiting))


def narrowed(problem: Problem) -> Narrowed:
    """Return a problem whose cores and tasks say what its pins say; without pins it is the same."""
    tasks, cores = len(problem.tasks), len(problem.machine.cores)
    pins = problem.pins
    if not pins:
        return Narrowed(problem=problem, tasks=tasks, cores=cores)
    problem = _with_kinds_of_their_own(problem)
    waits = tuple(sorted({pin.not_before for pin in pins.tasks if pin.not_before}))
    if waits:
        problem = _with_tasks_that_wait(problem, waits)
    left = tuple(
        replace(pin, cores=(), not_before=0) for pin in pins.tasks if pin.not_after is not None
    )
    problem = replace(problem, pins=replace(pins, forbidden=(), tasks=left))
    return Narrowed(problem=problem, tasks=tasks, cores=cores, waits=waits)


def _with_kinds_of_their_own(problem: Problem) -> Problem:
    """Return a problem in which cores that pins treat differently are of different kinds."""
    machine, left = problem.machine, cores_left(problem)
    everything = frozenset(range(len(problem.tasks)))
    kinds = {(kind.index, frozenset[TaskIdx]()): kind.index for kind in machine.kinds}
    cores: list[Core] = []
    for core in machine.cores:
        lost = frozenset(
            task
            for task, able in left.items()
            if core.index not in able and problem.tasks[task].cycles[core.kind] is not None
        )
        if core.index in problem.pins.forbidden:
            lost = everything
        cores.append(replace(core, kind=kinds.setdefault((core.kind, lost), len(kinds))))
    added = list(kinds)[len(machine.kinds) :]
    if not added:
        return problem
    names = {kind.name for kind in machine.kinds}
    copies = list(machine.kinds)
    for index, (of, _) in enumerate(added, len(machine.kinds)):
        kind = machine.kinds[of]
        copies.append(replace(kind, index=index, name=_new(f"{kind.name}.{index}", names)))

    def with_copies(task: Task, values: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return (*values, *(None if task.index in lost else values[of] for of, lost in added))

    tasks = tuple(
        replace(
            task,
            cycles=with_copies(task, task.cycles),
            energy=with_copies(task, task.energy) if task.energy else (),
        )
        for task in problem.tasks
    )
    machine = replace(machine, cores=tuple(cores), kinds=tuple(copies))
    return replace(problem, machine=machine, tasks=tasks)


def _with_tasks_that_wait(problem: Problem, waits: tuple[Cycles, ...]) -> Problem:
    """Return a problem with a core that waits, and tasks that follow it."""
    count = len(problem.tasks)
    number = {cycle: count + index for index, cycle in enumerate(waits)}
    follows = {pin.task: number[pin.not_before] for pin in problem.pins.tasks if pin.not_before}
    tasks = [
        replace(
            task,
            cycles=(*task.cycles, None),
            energy=(*task.energy, None) if task.energy else (),
            after=(*task.after, follows[task.index]) if task.index in follows else task.after,
        )
        for task in problem.tasks
    ]
    nowhere = (None,) * len(problem.machine.kinds)
    tasks += [
        Task(
            index=number[end],
            name=f"until cycle {end}",
            cycles=(*nowhere, end - start),
            after=(number[start],) if start else (),
        )
        for start, end in pairwise((0, *waits))
    ]
    return replace(problem, machine=_with_a_core_that_waits(problem.machine), tasks=tuple(tasks))


def _with_a_core_that_waits(machine: Machine) -> Machine:
    """Return a machine with one core more, in a memory to which nothing leads."""
    kind, memory = len(machine.kinds), len(machine.memories)
    names = {
        one.name for table in (machine.memories, machine.kinds, machine.cores) for one in table
    }
    name = _new("waits", names)
    return replace(
        machine,
        memories=(*machine.memories, Memory(index=memory, name=name, kind=MemoryKind.SPM, size=1)),
        kinds=(*machine.kinds, CoreKind(index=kind, name=name)),
        cores=(*machine.cores, Core(index=len(machine.cores), name=name, kind=kind, memory=memory)),
    )


def _new(name: str, names: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    while name in names:
        name += "_"
    names.add(name)
    return name
