"""The problem's part of the board."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from spmilp.problem.problem import Problem
from spmilp.problem.strides import layout_at_place, layout_in_slice, packed_layout, strided_copy
from spmilp.solvers.list_scheduler.orders import remaining_cycles
from spmilp.solvers.list_scheduler.records import NONE, Ints, Table, flatten, numbers, table
from spmilp.units import Bytes, SliceIdx


@dataclass(frozen=True, slots=True)
class ProblemTables:
    """Tables of :class:`~spmilp.solvers.list_scheduler.board.Board`, before any decision."""

    tasks: Table
    cycles: Ints
    reads: Table
    writes: Table
    slices: Table
    readers: Ints
    buffers: Table
    lists: Ints


class _Lists:
    """Collects lists of integers in one array."""

    def __init__(self) -> None:
        self._items: list[int] = []

    def add(self, lists: Iterable[Sequence[int]]) -> tuple[Ints, Ints]:
        """Return where each of the lists begins and ends."""
        begins, items = flatten(lists)
        begins += len(self._items)
        self._items.extend(items.tolist())
        return begins[:-1], begins[1:]

    @property
    def items(self) -> Ints:
        """All lists in a row."""
        return numbers(self._items)


def problem_tables(problem: Problem) -> ProblemTables:
    """Flatten a problem."""
    lists = _Lists()
    cycles = [[NONE if c is None else c for c in task.cycles] for task in problem.tasks]
    tasks, reads, writes = _task_tables(problem, lists)
    slices, readers = _slice_tables(problem)
    return ProblemTables(
        tasks,
        np.array(cycles, np.int64).reshape(len(problem.tasks), len(problem.machine.kinds)),
        reads,
        writes,
        slices,
        readers,
        _buffer_table(problem, lists),
        lists.items,
    )


def _task_tables(problem: Problem, lists: _Lists) -> tuple[Table, Table, Table]:
    ranges = [f"{what}_{end}" for what in ("reads", "writes", "before") for end in ("from", "to")]
    tasks = table(
        len(problem.tasks),
        *ranges,
        "scratch_bytes",
        "behind",
        *("position", "core", "start", "end", "placed", "scratch"),
    )
    reads_from, read = flatten(task.reads for task in problem.tasks)
    writes_from, written = flatten(task.writes for task in problem.tasks)
    tasks["reads_from"], tasks["reads_to"] = reads_from[:-1], reads_from[1:]
    tasks["writes_from"], tasks["writes_to"] = writes_from[:-1], writes_from[1:]
    tasks["before_from"], tasks["before_to"] = lists.add(problem.predecessors())
    tasks["scratch_bytes"] = [task.scratch for task in problem.tasks]
    tasks["scratch"] = NONE
    tasks["behind"] = _cycles_behind(problem)
    reads = table(read.size, "slice", "served_by", "reader", "set_aside")
    reads["reader"] = np.repeat(np.arange(len(problem.tasks)), np.diff(reads_from))
    reads["set_aside"] = NONE
    reads["slice"] = read
    reads["served_by"] = NONE
    writes = table(written.size, "buffer", "overwrites_from", "overwrites_to", "held_by")
    writes["buffer"] = written
    writes["held_by"] = NONE
    writes["overwrites_from"], writes["overwrites_to"] = lists.add(
        [task.reads.index(r) for r, taking in task.in_place if taking == w]
        for task in problem.tasks
        for w in task.writes
    )
    return tasks, reads, writes


def _cycles_behind(problem: Problem) -> Ints:
    """For each task, the cycles of the longest chain of tasks behind it."""
    least = [min(c for c in task.cycles if c is not None) for task in problem.tasks]
    return numbers(remaining_cycles(problem)) - numbers(least)


def _slice_tables(problem: Problem) -> tuple[Table, Ints]:
    readers: list[list[int]] = [[] for _ in problem.slices]
    for task in problem.tasks:
        for read in task.reads:
            readers[read].append(task.index)
    readers_from, everybody = flatten(readers)
    slices = table(
        len(problem.slices),
        *("buffer", "bytes", "from_parent", "offset_in_parent", "at_place", "offset_at_place"),
        *("readers_from", "readers_to"),
        *("first", "next_reader"),
    )
    slices["buffer"] = [slice_.buffer for slice_ in problem.slices]
    slices["bytes"] = [slice_.bytes for slice_ in problem.slices]
    for slice_ in problem.slices:
        row = slices[slice_.index]
        row["from_parent"], row["offset_in_parent"] = _from_parent(problem, slice_.index)
        row["at_place"], row["offset_at_place"] = _at_place(problem, slice_.index)
    slices["readers_from"], slices["readers_to"] = readers_from[:-1], readers_from[1:]
    slices["first"] = NONE
    slices["next_reader"] = readers_from[:-1]
    return slices, everybody


def _from_parent(problem: Problem, index: SliceIdx) -> tuple[int, Bytes]:
    """Return the dimensions of a copy out of the whole buffer, and where in it the copy begins."""
    box = problem.slices[index]
    source = layout_in_slice(problem, index, box.buffer)
    item = problem.buffers[box.buffer].item
    copy = strided_copy(box.extent, item, source, packed_layout(problem, index))
    return copy.dimensions, source.offset


def _at_place(problem: Problem, index: SliceIdx) -> tuple[int, Bytes]:
    """Return the same for a copy to or from DRAM: of its tensor, where it has one."""
    box = problem.slices[index]
    parent = problem.buffers[box.buffer]
    if parent.place is None:
        return _from_parent(problem, index)
    source = layout_at_place(problem, index)
    copy = strided_copy(box.extent, parent.item, source, packed_layout(problem, index))
    return copy.dimensions, source.offset


def _buffer_table(problem: Problem, lists: _Lists) -> Table:
    parts: list[list[int]] = [[] for _ in problem.buffers]
    for slice_ in problem.slices:
        parts[slice_.buffer].append(slice_.index)
    buffers = table(
        len(problem.buffers), "begins", "ends", "parts_from", "parts_to", "home", "in_dram"
    )
    buffers["begins"] = [NONE if b.starts_in is None else b.starts_in for b in problem.buffers]
    buffers["ends"] = [NONE if b.ends_in is None else b.ends_in for b in problem.buffers]
    buffers["parts_from"], buffers["parts_to"] = lists.add(parts)
    buffers["home"] = NONE
    buffers["in_dram"] = NONE
    return buffers
