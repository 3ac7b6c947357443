"""Blocks of a reduction: what adds up the results of others piece by piece, as they are made."""

from collections import defaultdict
from collections.abc import Collection

from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import Ints
from spmilp.units import BufferIdx, Bytes, TaskIdx

Block = tuple[int, int]
"""An operator, and where in its reduction a block begins."""


def blocks_of_reductions(problem: Problem, operators: Ints, least: float) -> dict[TaskIdx, Block]:
    """Return the block of each task of operators that add up others' results block by block.

    Such an operator keeps its sums and reads each piece of another one's result in one part of its
    reduction: with that part of all of its tiles the piece has been read, and may go. Its sums have
    fewer bytes than what it reads: it would else be better to keep that.

    Parameters
    ----------
    operators
        Of each task, as a number.
    least
        Results that are added up so have more bytes than this.
    """
    maker = {written: task.index for task in problem.tasks for written in task.writes}
    read_in: dict[tuple[int, int], dict[BufferIdx, set[int]]] = defaultdict(dict)
    sums: dict[int, dict[BufferIdx, Bytes]] = defaultdict(dict)
    for task in problem.tasks:
        if task.tile is None or task.tile.reduction is None:
            continue
        reader, (start, _) = int(operators[task.index]), task.tile.reduction
        if start == 0:
            sums[reader] |= {one: problem.buffers[one].bytes for one in task.writes}
        for read in task.reads:
            buffer = problem.slices[read].buffer
            made = int(operators[maker[buffer]]) if buffer in maker else reader
            if made != reader:
                read_in[reader, made].setdefault(buffer, set()).add(start)
    readers = {
        reader
        for (reader, _), pieces in read_in.items()
        if _is_block_by_block(pieces)
        and sum(problem.buffers[one].bytes for one in pieces)
        > max(least, sum(sums[reader].values()))
    }
    return {
        task.index: (int(operators[task.index]), task.tile.reduction[0])
        for task in problem.tasks
        if operators[task.index] in readers and task.tile and task.tile.reduction
    }


def _is_block_by_block(pieces: dict[BufferIdx, set[int]]) -> bool:
    """Say whether each piece is read in one block, and not all in the same."""
    is_read_once = all(len(blocks) == 1 for blocks in pieces.values())
    return is_read_once and len(set.union(*pieces.values())) > 1


def chained_operators(
    problem: Problem, operators: Ints, ends: Collection[int], least: float
) -> frozenset[int]:
    """Return operators that add up others' results block by block, and those that compute them.

    Each task of those before is needed for one block alone.

    Parameters
    ----------
    ends
        Operators that may be those that add up.
    least
        Bytes of what is added up, as in :func:`blocks_of_reductions`.
    """
    known = blocks_of_reductions(problem, operators, least)
    block_of = {task: block for task, block in known.items() if block[0] in ends}
    if not block_of:
        return frozenset()
    needed_for: dict[TaskIdx, set[Block | None]] = defaultdict(set)
    outside: set[int] = set()
    before = problem.predecessors()
    for task in reversed([*problem.topological_order()]):
        if task not in block_of:
            blocks = needed_for[task]
            only = next(iter(blocks)) if len(blocks) == 1 else None
            if only is None:
                outside.add(int(operators[task]))
            else:
                block_of[task] = only
        for earlier in before[task]:
            if operators[earlier] != operators[task] or task not in known:
                needed_for[earlier].add(block_of.get(task))
    return frozenset(int(operators[task]) for task in block_of) - outside
