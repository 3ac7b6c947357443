"""The problem's part of the schedule state."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import add, mul

import numpy as np

from spmilp.problem.problem import Problem, Slice
from spmilp.problem.strides import Layout, row_major_strides, strided_copy
from spmilp.solvers.kernels.records import NONE, Ints, Table, flatten, numbers, table
from spmilp.units import Bytes, Extents


@dataclass(frozen=True, slots=True)
class ProblemTables:
    """The problem in a ``ScheduleState``, before any decision."""

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


def remaining_cycles(problem: Problem) -> list[int]:
    """For each task, the cycles of the longest chain of tasks that starts with it."""
    path = [min(c for c in task.cycles if c is not None) for task in problem.tasks]
    before = problem.predecessors()
    longest = [0] * len(path)
    for task in reversed(list(problem.topological_order())):
        path[task] += longest[task]
        for earlier in before[task]:
            longest[earlier] = max(longest[earlier], path[task])
    return path


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
    copies = _Copies()
    rows = [(*copies.from_parent(problem, s), *copies.at_place(problem, s)) for s in problem.slices]
    by_column = zip(*rows, strict=True) if rows else [()] * 4
    names = ("from_parent", "offset_in_parent", "at_place", "offset_at_place")
    for name, column in zip(names, by_column, strict=True):
        slices[name] = column
    slices["readers_from"], slices["readers_to"] = readers_from[:-1], readers_from[1:]
    slices["first"] = NONE
    slices["next_reader"] = readers_from[:-1]
    return slices, everybody


class _Copies:
    """The dimensions of copies and where they begin; boxes of one shape are looked at once."""

    def __init__(self) -> None:
        self._known: dict[tuple[Extents, Extents, Bytes], tuple[int, Extents]] = {}

    def from_parent(self, problem: Problem, box: Slice) -> tuple[int, Bytes]:
        """Return dimensions of a copy out of the whole buffer, and where in it the copy begins."""
        parent = problem.buffers[box.buffer]
        dimensions, strides = self._copy(box.extent, parent.shape, parent.item)
        return dimensions, sum(map(mul, box.start, strides))

    def at_place(self, problem: Problem, box: Slice) -> tuple[int, Bytes]:
        """Return the same for a copy to or from DRAM: of its tensor, where it has one."""
        parent = problem.buffers[box.buffer]
        if parent.place is None:
            return self.from_parent(problem, box)
        shape = problem.tensors[parent.place.tensor].shape
        dimensions, strides = self._copy(box.extent, shape, parent.item)
        start = map(add, parent.place.start, box.start)
        return dimensions, sum(map(mul, start, strides))

    def _copy(self, extent: Extents, whole: Extents, item: Bytes) -> tuple[int, Extents]:
        """Return the dimensions of a copy out of a larger box, and that one's strides."""
        key = (extent, whole, item)
        if key not in self._known:
            strides = row_major_strides(whole, item)
            packed = Layout(0, row_major_strides(extent, item))
            copy = strided_copy(extent, item, Layout(0, strides), packed)
            self._known[key] = (copy.dimensions, strides)
        return self._known[key]


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
