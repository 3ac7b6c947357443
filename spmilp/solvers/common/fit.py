"""Whether each task's working set fits a scratchpad, and if not, why, in words."""

from collections.abc import Iterator, Sequence

from spmilp.errors import Shortage
from spmilp.machine.machine import Machine, Memory
from spmilp.problem.problem import Problem, Task
from spmilp.units import Bytes, align_up


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

    The bytes counted are a lower bound: what a task reads (a slice inside a whole buffer that it
    reads too counts once; where cores read remote memories, reads do not count), what it writes
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
        over = _least_bytes(problem, task, roomiest) - roomiest.usable
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


def _least_bytes(problem: Problem, task: Task, memory: Memory) -> Bytes:
    sizes, saved = least_sizes(problem, task)
    return _least_padded(sizes, memory) - sum(align_up(size, memory.alignment) for size in saved)


def least_sizes(problem: Problem, task: Task) -> tuple[list[Bytes], list[Bytes]]:
    """Return the bytes of what must lie in a task's memory, and of what others may overwrite."""
    written = [problem.buffers[buffer].bytes for buffer in task.writes]
    sizes = [*written, task.scratch]
    saved: list[Bytes] = []
    if problem.machine.remote is None:
        whole = {s for s in task.reads if s < len(problem.buffers)}
        sizes += [
            problem.slices[s].bytes
            for s in task.reads
            if s in whole or problem.slices[s].buffer not in whole
        ]
        pairs = [
            [
                min(problem.slices[s].bytes, problem.buffers[b].bytes)
                for s, other in task.in_place
                if other == b
            ]
            for b in task.writes
        ]
        saved = [max(some) for some in pairs if some]
    return sizes, saved


def _least_padded(sizes: Sequence[Bytes], memory: Memory) -> Bytes:
    """Return bytes that these need at least, each at an aligned address.

    Every one is followed by padding, but for those right before the memory's end or a reserved
    range that is itself not aligned: at most one each, here those with most padding.
    """
    ends = [*(taken.start for taken in memory.reserved), memory.size or 0]
    unaligned = sum(end % memory.alignment != 0 for end in ends)
    padding = sorted((align_up(size, memory.alignment) - size for size in sizes), reverse=True)
    return sum(sizes) + sum(padding[unaligned:])


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
