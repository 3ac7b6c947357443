"""A problem as arrays that the search asks again and again."""

from dataclasses import dataclass

import numpy as np

from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.problem_tables import precedence, writers_of_buffers
from spmilp.solvers.kernels.records import (
    Ints,
    Rows,
    numbered,
    numbers,
    owners_of,
    rows_from_pairs,
    rows_of,
)
from spmilp.solvers.list_scheduler.orders import operators_of


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
    from_outside
        For each read, the bytes if they are there at cycle 0 (weights, inputs), else 0.
    memory_bytes
        Bytes of each memory; 0 without limit.
    """

    before: Rows
    followers: Rows
    reads: Rows
    buffer_of: Ints
    readers: Rows
    writers: Ints
    operators: Rows
    operator_of: Ints
    units: Rows
    unit_of: Ints
    able: Rows
    memory_of_core: Ints
    from_outside: Ints
    memory_bytes: Ints


def problem_index(problem: Problem) -> ProblemIndex:
    """Look everything up once."""
    before, followers = precedence(problem)
    reads = rows_of(task.reads for task in problem.tasks)
    buffer_of = numbers(slice_.buffer for slice_ in problem.slices)
    buffers_read = buffer_of[reads.items]
    starts_there = np.array([buffer.starts_in is not None for buffer in problem.buffers], bool)
    sizes = numbers(slice_.bytes for slice_ in problem.slices)
    operator_of = operators_of(problem)
    unit_of = numbered(
        (task.tile.of, task.tile.box) if task.tile else task.index for task in problem.tasks
    )
    kind_of = [core.kind for core in problem.machine.cores]
    return ProblemIndex(
        before=before,
        followers=followers,
        reads=reads,
        buffer_of=buffer_of,
        readers=rows_from_pairs(buffers_read, owners_of(reads), len(problem.buffers)),
        writers=writers_of_buffers(problem),
        operators=_members(operator_of),
        operator_of=operator_of,
        units=_members(unit_of),
        unit_of=unit_of,
        able=rows_of(
            [core for core, kind in enumerate(kind_of) if task.cycles[kind] is not None]
            for task in problem.tasks
        ),
        memory_of_core=numbers(core.memory for core in problem.machine.cores),
        from_outside=starts_there[buffers_read] * sizes[reads.items],
        memory_bytes=numbers(memory.size or 0 for memory in problem.machine.memories),
    )


def _members(group_of: Ints) -> Rows:
    """Return the tasks of each group."""
    return rows_from_pairs(group_of, np.arange(group_of.size), int(group_of.max(initial=-1)) + 1)
