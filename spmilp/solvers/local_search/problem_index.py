"""What the search asks of a problem again and again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import Ints, flatten, numbers


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Lists of integers: list ``i`` is ``items[begins[i]:begins[i + 1]]``."""

    begins: Ints
    items: Ints

    def __getitem__(self, index: int) -> Ints:
        return self.items[self.begins[index] : self.begins[index + 1]]

    def __len__(self) -> int:
        return int(self.begins.size) - 1

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]]) -> "Lists":
        """Collect lists."""
        return cls(*flatten(lists))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProblemIndex:
    """A problem as arrays.

    Parameters
    ----------
    before, followers
        The tasks that each task follows, and those that follow it.
    reads
        The slices that each task reads; leads are counted along its ``items``.
    buffer_of
        The buffer of each slice.
    readers, writers
        The tasks that read each buffer or part of it, and the one that writes it, or -1.
    operators
        The tasks of each operator; ``operator_of`` each task.
    units
        Tasks that belong on one core: the partial sums of a tile, or a single task; ``unit_of``
        each task.
    able
        The cores that can run each task.
    memory_of_core
        The scratchpad of each core.
    slice_bytes
        Bytes of each slice.
    from_outside
        For each read, the bytes if they are there at cycle 0 (weights, inputs), else 0.
    memory_bytes
        Bytes of each memory; 0 without limit.
    """

    before: Lists
    followers: Lists
    reads: Lists
    buffer_of: Ints
    readers: Lists
    writers: Ints
    operators: Lists
    operator_of: Ints
    units: Lists
    unit_of: Ints
    able: Lists
    memory_of_core: Ints
    slice_bytes: Ints
    from_outside: Ints
    memory_bytes: Ints


def problem_index(problem: Problem) -> ProblemIndex:
    """Collect them."""
    before = problem.predecessors()
    followers: list[list[int]] = [[] for _ in before]
    for task, some in enumerate(before):
        for earlier in some:
            followers[earlier].append(task)
    operators, operator_of = _groups(task.tile.of if task.tile else None for task in problem.tasks)
    units, unit_of = _groups(
        (task.tile.of, task.tile.box) if task.tile else None for task in problem.tasks
    )
    reads = Lists.of([task.reads for task in problem.tasks])
    sizes = numbers(slice_.bytes for slice_ in problem.slices)
    there = np.array([buffer.starts_in is not None for buffer in problem.buffers], bool)
    buffer_of = numbers(slice_.buffer for slice_ in problem.slices)
    outside = there[buffer_of[reads.items]] * sizes[reads.items]
    kind_of = [core.kind for core in problem.machine.cores]
    return ProblemIndex(
        before=Lists.of(before),
        followers=Lists.of(followers),
        reads=reads,
        buffer_of=buffer_of,
        readers=Lists.of(_readers(problem)),
        writers=_writers(problem),
        operators=operators,
        operator_of=operator_of,
        units=units,
        unit_of=unit_of,
        able=Lists.of(
            [core for core, kind in enumerate(kind_of) if task.cycles[kind] is not None]
            for task in problem.tasks
        ),
        memory_of_core=numbers(core.memory for core in problem.machine.cores),
        slice_bytes=sizes,
        from_outside=outside,
        memory_bytes=numbers(memory.size or 0 for memory in problem.machine.memories),
    )


def _groups(names: Iterable[object]) -> tuple[Lists, Ints]:
    """Number names as they come; those without are alone."""
    members: list[list[int]] = []
    known: dict[object, int] = {}
    group_of = []
    for task, name in enumerate(names):
        key = task if name is None else ("named", name)
        if key not in known:
            known[key] = len(members)
            members.append([])
        members[known[key]].append(task)
        group_of.append(known[key])
    return Lists.of(members), numbers(group_of)


def _readers(problem: Problem) -> list[list[int]]:
    of_buffer: list[list[int]] = [[] for _ in problem.buffers]
    for task in problem.tasks:
        for read in task.reads:
            of_buffer[problem.slices[read].buffer].append(task.index)
    return of_buffer


def _writers(problem: Problem) -> Ints:
    return numbers(-1 if writer is None else writer for writer in problem.writers())
