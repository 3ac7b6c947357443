"""What of a problem cannot be, on its machine: found without solving, and proven."""

from collections.abc import Iterator, Sequence

from spmilp.explanation.cause import Cause, Misfit, largest, of_shortage
from spmilp.machine.machine import Machine, Memory, MemoryKind
from spmilp.machine.routes import routes_of
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.common.fit import (
    least_sizes,
    memories_that_can_run,
    parts_of,
    worst_shortage,
)
from spmilp.units import BufferIdx, Bytes, MemoryIdx, align_up

MOST_STEPS = 20_000
"""Of the search that puts a task's operands between reserved ranges; beyond it they count as put.
"""


def misfit_of(problem: Problem) -> Misfit | None:
    """Return the first proof that no plan exists, of few that take no search; else ``None``.

    Of tasks that are too large, the one with the most bytes too many.
    """
    arguments = (_no_core, _too_much_in_a_memory, _too_large_a_task, _no_pieces, _no_way)
    return next((found for each in arguments for found in each(problem)), None)


def _no_core(problem: Problem) -> Iterator[Misfit]:
    present = {core.kind for core in problem.machine.cores}
    for task in problem.tasks:
        able = [kind for kind, cycles in enumerate(task.cycles) if cycles is not None]
        if not present.intersection(able):
            names = " or ".join(problem.machine.kinds[kind].name for kind in able)
            yield Misfit(
                cause=Cause.CORE,
                what=f"task {task.name}",
                said=f"only cores of kind {names} can run it, and the machine has none",
            )


def _too_much_in_a_memory(problem: Problem) -> Iterator[Misfit]:
    """Yield DRAMs that do not hold their tensors, then memories too small at the start or end."""
    for memory in problem.machine.memories:
        if memory.kind is MemoryKind.DRAM:
            tensors = [(t.name, t.bytes) for t in problem.tensors if t.memory == memory.index]
            yield from _too_much(memory, tensors, Cause.DRAM, f"memory {memory.name}")
            continue
        for when in ("starts_in", "ends_in"):
            there = [(b.name, b.bytes) for b in problem.buffers if getattr(b, when) == memory.index]
            cycle = "cycle 0" if when == "starts_in" else "the last cycle"
            yield from _too_much(memory, there, Cause.START, cycle)


def _too_much(
    memory: Memory, parts: Sequence[tuple[str, Bytes]], cause: Cause, what: str
) -> Iterator[Misfit]:
    needed = sum(size for _, size in parts)
    if memory.usable is not None and needed > memory.usable:
        said = f"what has to lie in {memory.name} then is more than it holds"
        if cause is Cause.DRAM:
            said = "inputs, weights and outputs lie in it, and are more than it holds"
        yield Misfit(
            cause=cause,
            what=what,
            said=said,
            memory=memory.index,
            needed=needed,
            usable=memory.usable,
            parts=largest(parts),
        )


def _too_large_a_task(problem: Problem) -> Iterator[Misfit]:
    short = worst_shortage(problem)
    if short is not None:
        yield of_shortage(problem.machine, short, Cause.TASK)


def _no_pieces(problem: Problem) -> Iterator[Misfit]:
    """Yield tasks whose operands fit by size, but not between the reserved ranges."""
    for task in problem.tasks:
        memories = memories_that_can_run(problem.machine, task)
        if any(not memory.reserved or _fits_pieces(problem, task, memory) for memory in memories):
            continue
        roomiest = max(memories, key=lambda memory: max(gaps_of(memory), default=0))
        gaps = " B, ".join(f"{gap:,}" for gap in gaps_of(roomiest))
        yield Misfit(
            cause=Cause.PIECES,
            what=f"task {task.name}",
            said=f"its operands and results fit {roomiest.name} by size, but reserved ranges leave "
            f"pieces of {gaps} B, into which they do not go",
            memory=roomiest.index,
            needed=sum(_items(problem, task)),
            usable=roomiest.usable,
            parts=largest(tuple(parts_of(problem, task))),
            task=task.name,
        )


def _fits_pieces(problem: Problem, task: Task, memory: Memory) -> bool:
    step = memory.alignment
    left = [align_up(gap, step) for gap in gaps_of(memory)]
    items = sorted((align_up(size, step) for size in _items(problem, task)), reverse=True)
    return _go_in(items, 0, left, [MOST_STEPS])


def _items(problem: Problem, task: Task) -> list[Bytes]:
    """Return the sizes of what must lie in a task's memory, each at an address of its own."""
    sizes, saved = least_sizes(problem, task)
    items = sorted(size for size in sizes if size)
    for size in saved:
        items.remove(min((item for item in items if item >= size), default=items[-1]))
    return items


def _go_in(items: Sequence[Bytes], at: int, left: list[Bytes], steps: list[int]) -> bool:
    """Put the items from ``at`` on into what is left of the pieces, trying each piece."""
    if at == len(items) or steps[0] == 0:
        return True
    steps[0] -= 1
    for piece in {room: number for number, room in enumerate(left)}.values():
        if items[at] <= left[piece]:
            left[piece] -= items[at]
            if _go_in(items, at + 1, left, steps):
                return True
            left[piece] += items[at]
    return False


def gaps_of(memory: Memory) -> list[Bytes]:
    """Return the bytes between reserved ranges, each from an aligned address on."""
    if memory.size is None:
        return []
    found, at = [], 0
    for start, end in (*((r.start, r.end) for r in memory.reserved), (memory.size, memory.size)):
        if align_up(at, memory.alignment) < start:
            found.append(start - align_up(at, memory.alignment))
        at = end
    return found


def _no_way(problem: Problem) -> Iterator[Misfit]:
    """Yield operands that no chain of engines brings to their task, and results that cannot end."""
    if problem.machine.remote is not None:
        return
    ways, writer = _Ways(problem.machine), problem.writers()

    def homes(buffer: BufferIdx) -> tuple[MemoryIdx, ...]:
        starts, by = problem.buffers[buffer].starts_in, writer[buffer]
        if starts is not None:
            return (starts,)
        return () if by is None else _memories_of(problem, problem.tasks[by])

    for task in problem.tasks:
        to = _memories_of(problem, task)
        for read in task.reads:
            slice_ = problem.slices[read]
            if not ways.lead(homes(slice_.buffer), to, slice_.bytes):
                name = problem.buffers[slice_.buffer].name
                yield _without_way(
                    problem.machine,
                    f"task {task.name}",
                    name,
                    (slice_.bytes, homes(slice_.buffer), to),
                )
    for buffer in problem.buffers:
        if buffer.ends_in is not None:
            ends = buffer.bytes, homes(buffer.index), (buffer.ends_in,)
            if not ways.lead(ends[1], ends[2], ends[0]):
                yield _without_way(problem.machine, f"buffer {buffer.name}", buffer.name, ends)


def _memories_of(problem: Problem, task: Task) -> tuple[MemoryIdx, ...]:
    return tuple(memory.index for memory in memories_that_can_run(problem.machine, task))


def _without_way(
    machine: Machine,
    what: str,
    name: str,
    ends: tuple[Bytes, tuple[MemoryIdx, ...], tuple[MemoryIdx, ...]],
) -> Misfit:
    size, sources, targets = ends
    of, to = (
        " or ".join(machine.memories[memory].name for memory in some[:2])
        + (" or another" if len(some) > 2 else "")
        for some in (sources, targets)
    )
    said = f"no engine brings {name} ({size:,} B) from {of} to {to}, directly or by other memories"
    return Misfit(cause=Cause.ROUTE, what=what, said=said, parts=((name, size),), ends=ends)


class _Ways:
    """Between which memories a chain of transfers leads."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._routes = routes_of(machine)
        self._known: dict[tuple[object, ...], bool] = {}

    def lead(
        self, sources: tuple[MemoryIdx, ...], targets: tuple[MemoryIdx, ...], size: Bytes
    ) -> bool:
        """Say whether something of that size can come from a source to a target."""
        able = tuple(e.longest is None or size <= e.longest for e in self._machine.engines)
        key = sources, targets, able
        if key not in self._known:
            self._known[key] = self._search(sources, targets, able)
        return self._known[key]

    def _search(
        self,
        sources: tuple[MemoryIdx, ...],
        targets: tuple[MemoryIdx, ...],
        able: tuple[bool, ...],
    ) -> bool:
        reached, waiting = set(sources), list(sources)
        while waiting and not reached.intersection(targets):
            here = waiting.pop()
            for there in (*targets, *range(len(self._machine.memories))):
                if there in reached:
                    continue
                if any(able[engine] for engine in self._routes.engines_for(here, there)):
                    reached.add(there)
                    waiting.append(there)
                    if there in targets:
                        return True
        return bool(reached.intersection(targets))
