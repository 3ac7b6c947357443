"""Stages between milestones, and what tasks and buffers demand of them.

Milestones cut the time of every plan into stages; each task has a window of them. The demands are
work, loads, stores, and bytes that outlive a stage.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from spmilp.bounds.critical_path import Paths
from spmilp.bounds.distances import Distances
from spmilp.bounds.movement import Movement
from spmilp.machine.machine import MemoryKind
from spmilp.problem.loads import Share, least_loads
from spmilp.problem.problem import Problem
from spmilp.units import BufferIdx, Bytes, Cycles, KindIdx, MemoryIdx, TaskIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The stages between tasks of which each follows the one before.

    Stage ``s`` lasts from the end of milestone ``s - 1`` (cycle 0 for the first) to the end of
    milestone ``s`` (the makespan for the last).

    Parameters
    ----------
    shortest
        Cycles below which no plan has each stage: heads, chains and tails.
    soonest, rest
        For each milestone, cycles before its end and after it.
    first, last
        For each task the first stage in which it can start, and the last in which it can end: it
        starts after the milestones that it follows, and ends before those that follow it.
    """

    milestones: tuple[TaskIdx, ...]
    shortest: tuple[Cycles, ...]
    soonest: tuple[Cycles, ...]
    rest: tuple[Cycles, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of stages, one more than milestones."""
        return len(self.shortest)


def stages_along(problem: Problem, paths: Paths, most: int) -> Stages:
    """Cut along the tasks of a longest path, with ``most`` milestones at the most."""
    before = problem.predecessors()
    order = tuple(problem.topological_order())
    path = _longest_path(paths, before)
    every = -(-len(path) // most)
    milestones = tuple(path[every - 1 :: every])
    return Stages(
        milestones=milestones,
        shortest=_shortest(path, every, paths),
        soonest=tuple(paths.head[task] + paths.cycles[task] for task in milestones),
        rest=tuple(paths.tail[task] - paths.cycles[task] for task in milestones),
        first=_first_stages(milestones, before, order),
        last=_last_stages(milestones, before, order),
    )


def _longest_path(paths: Paths, before: tuple[tuple[TaskIdx, ...], ...]) -> list[TaskIdx]:
    """Return tasks of which each precedes the next: back from the one that ends last at best."""
    task = max(range(len(before)), key=lambda t: (paths.head[t] + paths.cycles[t], -t))
    found = [task]
    while before[task]:
        task = max(before[task], key=lambda t: (paths.head[t] + paths.cycles[t], -t))
        found.append(task)
    found.reverse()
    return found


def _shortest(path: list[TaskIdx], every: int, paths: Paths) -> tuple[Cycles, ...]:
    """Return for each stage the cycles of its part of the path, with the head and the tail."""
    found = []
    for begin in range(0, len(path), every):
        part = path[begin : begin + every]
        cycles = sum(paths.cycles[task] for task in part)
        if begin == 0:
            cycles += paths.head[part[0]]
        if len(part) < every:
            cycles += paths.tail[part[-1]] - paths.cycles[part[-1]]
        found.append(cycles)
    if len(path) % every == 0:
        found.append(paths.tail[path[-1]] - paths.cycles[path[-1]])
    return tuple(found)


def _first_stages(
    milestones: tuple[TaskIdx, ...],
    before: tuple[tuple[TaskIdx, ...], ...],
    order: tuple[TaskIdx, ...],
) -> tuple[int, ...]:
    opens = {task: stage + 1 for stage, task in enumerate(milestones)}
    first = [0] * len(before)
    for task in order:
        for earlier in before[task]:
            first[task] = max(first[task], first[earlier], opens.get(earlier, 0))
    return tuple(first)


def _last_stages(
    milestones: tuple[TaskIdx, ...],
    before: tuple[tuple[TaskIdx, ...], ...],
    order: tuple[TaskIdx, ...],
) -> tuple[int, ...]:
    last = [len(milestones)] * len(before)
    for stage, task in enumerate(milestones):
        last[task] = stage
    for task in reversed(order):
        for earlier in before[task]:
            last[earlier] = min(last[earlier], last[task])
    return tuple(last)


Key = TypeVar("Key")


@dataclass(frozen=True, slots=True, order=True)
class Load:
    """Buffers that come from a DRAM, alike but for their bytes.

    Parameters
    ----------
    last
        The stage by whose end all of it has been loaded.
    read_from
        The first stage in which any of it is read: what is loaded before lies on the chip until
        then.
    """

    dram: MemoryIdx
    last: int
    read_from: int


@dataclass(frozen=True, slots=True, order=True)
class Store:
    """Buffers that end in a DRAM.

    Parameters
    ----------
    first
        The stage in which they are written, or later.
    last
        The first stage at whose end they lie on the chip for nothing else than to be stored: they
        have been written, and all tasks that read them may have begun (:class:`Kept`).
    """

    dram: MemoryIdx
    first: int
    last: int


@dataclass(frozen=True, slots=True, order=True)
class Kept:
    """Buffers that tasks write in stage ``first`` at the soonest and ``written`` at the latest,
    and that are read in ``read`` or later, ``last`` at the latest: between, their bytes are on the
    chip, or they are stored to a DRAM, as those that end there are anyway, and loaded again."""

    first: int
    written: int
    read: int
    last: int
    ends_in_dram: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Sums over all that is alike.

    Parameters
    ----------
    work
        Least cycles by the kinds of core that are able, and by window.
    loads, stores
        Bytes, and the rate times cycles that moving them holds at least.
    kept
        Bytes.
    on_chip
        Bytes of all memories that are no DRAM; ``None`` without limit.
    """

    work: dict[tuple[frozenset[KindIdx], int, int], Cycles]
    loads: dict[Load, tuple[Bytes, Fraction]]
    stores: dict[Store, tuple[Bytes, Fraction]]
    kept: dict[Kept, Bytes]
    on_chip: Bytes | None


def demands_of(problem: Problem, stages: Stages, movement: Movement) -> Demands:
    """Sum up what a problem's tasks and buffers ask of the stages."""
    work: dict[tuple[frozenset[KindIdx], int, int], Cycles] = defaultdict(int)
    for task in problem.tasks:
        able = frozenset(kind for kind, cycles in enumerate(task.cycles) if cycles is not None)
        window = stages.first[task.index], stages.last[task.index]
        work[able, *window] += min(cycles for cycles in task.cycles if cycles is not None)
    buffers = _Buffers(problem, stages, movement)
    return Demands(
        work=dict(work),
        loads=_summed(buffers.loads()),
        stores=_summed(buffers.stores()),
        kept=buffers.kept(),
        on_chip=_bytes_on_chip(problem),
    )


class _Buffers:
    """The demands of a problem's buffers."""

    def __init__(self, problem: Problem, stages: Stages, movement: Movement) -> None:
        self._problem = problem
        self._stages = stages
        self._movement = movement
        self._distances = Distances(problem)
        self._writers = problem.writers()
        self._readers: dict[BufferIdx, list[tuple[TaskIdx, Bytes]]] = defaultdict(list)
        for task in problem.tasks:
            for read in task.reads:
                slice_ = problem.slices[read]
                self._readers[slice_.buffer].append((task.index, slice_.bytes))

    def loads(self) -> Iterable[tuple[Load, Bytes, Fraction]]:
        """Yield what must come from a DRAM before its readers end.

        What is for each of its readers has come before the first of them ends; where the parts may
        come one by one, all have come by the end of the last one.
        """
        for load in least_loads(self._problem):
            dram = load.buffer.starts_in
            if dram is None or not self._distances.starts_in_dram(load.buffer.index):
                continue
            ends = [self._stages.last[task] for task in load.readers]
            begins = min(self._stages.first[task] for task in load.readers)
            key = Load(dram, max(ends) if load.share is Share.REST else min(ends), begins)
            use = self._movement.least_load_use(dram, load)
            yield key, load.bytes, use

    def stores(self) -> Iterable[tuple[Store, Bytes, Fraction]]:
        """Yield what must get to a DRAM after its writer has ended."""
        for buffer in self._problem.buffers:
            writer, dram = self._writers[buffer.index], buffer.ends_in
            if writer is None or dram is None or not self._distances.ends_in_dram(buffer.index):
                continue
            reads = (self._stages.first[task] for task, _ in self._readers.get(buffer.index, ()))
            last = max(self._stages.last[writer], *reads, 0)
            store = Store(dram, self._stages.first[writer], last)
            yield store, buffer.bytes, self._movement.least_store_use(dram, buffer.bytes)

    def kept(self) -> dict[Kept, Bytes]:
        """Return the bytes that outlive a stage: those that the last reader of a buffer reads."""
        found: dict[Kept, Bytes] = defaultdict(int)
        memories = self._problem.machine.memories
        for buffer, readers in sorted(self._readers.items()):
            writer = self._writers[buffer]
            if writer is None:
                continue
            read, size, last = max(
                (self._stages.first[task], size, self._stages.last[task]) for task, size in readers
            )
            if self._stages.last[writer] < read:
                first, written = self._stages.first[writer], self._stages.last[writer]
                ends_in = self._problem.buffers[buffer].ends_in
                is_stored = ends_in is not None and memories[ends_in].kind is MemoryKind.DRAM
                found[Kept(first, written, read, last, is_stored)] += size
        return dict(found)


def _summed(rows: Iterable[tuple[Key, Bytes, Fraction]]) -> dict[Key, tuple[Bytes, Fraction]]:
    found: dict[Key, tuple[Bytes, Fraction]] = {}
    for key, size, use in rows:
        before = found.get(key, (0, Fraction(0)))
        found[key] = before[0] + size, before[1] + use
    return found


def _bytes_on_chip(problem: Problem) -> Bytes | None:
    """Return the bytes of all memories but the DRAMs in which no core works."""
    worked_in = {core.memory for core in problem.machine.cores}
    total = 0
    for memory in problem.machine.memories:
        if memory.kind is MemoryKind.DRAM and memory.index not in worked_in:
            continue
        if memory.usable is None:
            return None
        total += memory.usable
    return total
