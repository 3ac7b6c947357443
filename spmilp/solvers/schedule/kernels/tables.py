"""A problem and a machine as flat tables, made once: the fixed part of the schedule state.

Rates are scaled to integers by one common factor, so that durations and loads stay exact. What an
engine can copy, and in how many cycles, kernels read from these tables (``transfers``).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import lcm
from operator import add

import numpy as np

from spmilp.cached import cached
from spmilp.machine.controllers import (
    MOST_DIMENSIONS,
    StridedCopy,
    shape_mask,
    shape_number,
    unit_of,
)
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.machine.routes import routes_of, transfer_cycles
from spmilp.problem.problem import Buffer, Problem, Slice
from spmilp.problem.strides import Layout, row_major_strides, strided_copy
from spmilp.solvers.schedule.kernels.records import (
    NO_LIMIT,
    NONE,
    Ints,
    Rows,
    Table,
    inverted,
    numbers,
    owners_of,
    rows_from_pairs,
    rows_of,
    set_ranges,
    table,
)
from spmilp.units import Bytes, Extents, MemoryIdx

MOST_MEMORIES_WITH_ALL_PAIRS = 96
"""On larger machines only the pairs of memories that a run may use are looked up."""

USUAL: Bytes = 1024
"""Of a transfer, where memories are compared."""


@dataclass(frozen=True, slots=True)
class MachineTables:
    """The machine in a ``ScheduleState``, before any decision."""

    cores: Table
    memories: Table
    pair_at: Ints
    pairs: Table
    options: Table
    links: Ints
    resources: Table
    scale: int


def machine_tables(machine: Machine, pairs: Iterable[tuple[MemoryIdx, MemoryIdx]]) -> MachineTables:
    """Flatten a machine with the transfer options between the memory ``pairs`` in use."""
    rates = [link.rate for link in machine.links] + [engine.rate for engine in machine.engines]
    scale = lcm(*(rate.denominator for rate in rates)) if rates else 1
    pair_at, row_of_pairs, options, links = _pair_tables(machine, pairs, scale)
    cores = table(len(machine.cores), "kind", "memory", "free")
    cores["kind"] = [core.kind for core in machine.cores]
    cores["memory"] = [core.memory for core in machine.cores]
    return MachineTables(
        cores,
        _memory_table(machine),
        pair_at,
        row_of_pairs,
        options,
        links,
        _resource_table(machine, scale),
        scale,
    )


@cached
def tables_with_all_pairs(machine: Machine) -> MachineTables:
    """Flatten a machine with the transfer options between all of its memories."""
    pairs = ((a.index, b.index) for a in machine.memories for b in machine.memories if a is not b)
    return machine_tables(machine, pairs)


def _pair_tables(
    machine: Machine, pairs: Iterable[tuple[MemoryIdx, MemoryIdx]], scale: int
) -> tuple[Ints, Table, Table, Ints]:
    routes = routes_of(machine)
    pair_at = np.full((len(machine.memories), len(machine.memories)), NONE, np.int64)
    rate_of_engines = [int(engine.rate * scale) for engine in machine.engines]
    rate_of_links = [int(link.rate * scale) for link in machine.links]
    options: list[tuple[int, int, int, int]] = []
    options_from = [0]
    links: list[list[int]] = []
    for source, destination in sorted(set(pairs)):
        route = routes.between(source, destination)
        engines = routes.engines_for(source, destination)
        if route is None or not engines:
            continue
        pair_at[source, destination] = len(links)
        links.append([len(machine.engines) + link for link in route.links])
        slowest = min((rate_of_links[link] for link in route.links), default=NO_LIMIT)
        for engine in engines:
            rate = min(rate_of_engines[engine], slowest)
            options.append((engine, machine.engines[engine].setup, route.latency, rate))
        options_from.append(len(options))
    rows = table(len(links), "options_from", "options_to", "links_from", "links_to")
    links_from, every_link = rows_of(links)
    set_ranges(rows, "options", numbers(options_from))
    set_ranges(rows, "links", links_from)
    every_option = table(len(options), "engine", "setup", "latency", "rate")
    every_option[:] = options
    return pair_at, rows, every_option, every_link


def _memory_table(machine: Machine) -> Table:
    memories = table(
        len(machine.memories),
        *("alignment", "is_dram", "parent", "aside", "settled", "loads_saved", "counted_for"),
    )
    for memory in machine.memories:
        memories[memory.index] = (
            alignment_of(machine, memory.index),
            memory.kind is MemoryKind.DRAM,
            next_towards_dram(machine, memory.index),
            shared_memory_beside(machine, memory.index),
            0,
            0,
            0,
        )
    return memories


def next_towards_dram(machine: Machine, memory: MemoryIdx) -> MemoryIdx:
    """Return the next memory on the shortest path to a DRAM; -1 in a DRAM or without path."""
    if machine.memories[memory].kind is MemoryKind.DRAM:
        return NONE
    paths = (routes_of(machine).staging_path(memory, dram.index) for dram in machine.drams)
    found = [path for path in paths if path is not None]
    return min(found, key=len)[1] if found else NONE


def shared_memory_beside(machine: Machine, memory: MemoryIdx) -> MemoryIdx:
    """Return the shared memory to which a scratchpad next to a DRAM rather spills; -1 for none.

    All cores can be filled from it, and it is the quickest there and back, quicker than the DRAM.
    """
    routes, nearest = routes_of(machine), next_towards_dram(machine, memory)
    is_spm = machine.memories[memory].kind is MemoryKind.SPM
    if not is_spm or nearest not in {dram.index for dram in machine.drams}:
        return NONE

    def there_and_back(other: MemoryIdx) -> int:
        cycles = 0
        for ends in ((memory, other), (other, memory)):
            route, able = routes.between(*ends), routes.engines_for(*ends)
            every = [transfer_cycles(machine.engines[e], route, USUAL) for e in able if route]
            cycles += min((one.arrived for one in every), default=NO_LIMIT)
        return cycles

    shared = (
        one.index
        for one in machine.memories
        if one.kind is MemoryKind.SHARED
        and all(routes.engines_for(one.index, core.memory) for core in machine.cores)
    )
    found = min((nearest, *shared), key=there_and_back)
    return NONE if found == nearest else found


def alignment_of(machine: Machine, memory: MemoryIdx) -> int:
    """Return what offsets are multiples of: the memory's alignment and what every engine asks.

    So both ends of any transfer of a whole residency are congruent, and at a controller's unit.
    """
    units = (lcm(engine.congruence, unit_of(engine.controller)) for engine in machine.engines)
    return lcm(machine.memories[memory].alignment, *units)


def _resource_table(machine: Machine, scale: int) -> Table:
    resources = table(
        len(machine.engines) + len(machine.links),
        *("capacity", "longest", "dimensions", "shapes", "congruence", "multicast", "pipelined"),
    )
    for engine in machine.engines:
        resources[engine.index] = (
            engine.channels,
            NO_LIMIT if engine.longest is None else engine.longest,
            MOST_DIMENSIONS if engine.dimensions is None else engine.dimensions,
            shape_mask(engine.controller),
            lcm(engine.congruence, unit_of(engine.controller)),
            engine.multicast,
            engine.pipelined,
        )
    for link in machine.links:
        resources[len(machine.engines) + link.index] = (int(link.rate * scale), 0, 0, 0, 1, 0, 0)
    return resources


@dataclass(frozen=True, slots=True)
class ProblemTables:
    """The problem in a ``ScheduleState``, before any decision."""

    tasks: Table
    cycles: Ints
    reads: Table
    writes: Table
    slices: Table
    readers: Rows
    buffers: Table
    lists: Ints


@cached
def problem_tables(problem: Problem) -> ProblemTables:
    """Flatten a problem."""
    lists = _Lists()
    cycles = [[NONE if c is None else c for c in task.cycles] for task in problem.tasks]
    reads = rows_of(task.reads for task in problem.tasks)
    readers = inverted(reads, len(problem.slices))
    return ProblemTables(
        tasks=_task_table(problem, reads, lists),
        cycles=np.array(cycles, np.int64).reshape(len(problem.tasks), len(problem.machine.kinds)),
        reads=_read_table(reads),
        writes=_write_table(problem, lists),
        slices=_slice_table(problem, readers),
        readers=readers,
        buffers=_buffer_table(problem, lists),
        lists=lists.items,
    )


@cached
def precedence(problem: Problem) -> tuple[Rows, Rows]:
    """Return what each task follows, and what follows it."""
    before = rows_of(problem.predecessors())
    return before, inverted(before, len(problem.tasks))


@cached
def writers_of_buffers(problem: Problem) -> Ints:
    """Return the task that writes each buffer; -1 for what is there at the start."""
    return numbers(NONE if writer is None else writer for writer in problem.writers())


class _Lists:
    """Collects lists of integers in one array."""

    def __init__(self) -> None:
        self._items: list[int] = []

    def add(self, rows: Rows) -> Ints:
        """Return where each of the lists begins, and where the last one ends."""
        begin = rows.begin + len(self._items)
        self._items.extend(rows.items.tolist())
        return begin

    @property
    def items(self) -> Ints:
        """All lists in a row."""
        return numbers(self._items)


def _task_table(problem: Problem, reads: Rows, lists: _Lists) -> Table:
    tasks = table(
        len(problem.tasks),
        *("reads_from", "reads_to", "writes_from", "writes_to", "before_from", "before_to"),
        *("scratch_bytes", "tail", "position", "core", "start", "end", "placed", "scratch"),
    )
    set_ranges(tasks, "reads", reads.begin)
    set_ranges(tasks, "writes", rows_of(task.writes for task in problem.tasks).begin)
    set_ranges(tasks, "before", lists.add(precedence(problem)[0]))
    tasks["scratch_bytes"] = [task.scratch for task in problem.tasks]
    tasks["scratch"] = NONE
    least = [min(c for c in task.cycles if c is not None) for task in problem.tasks]
    tasks["tail"] = numbers(remaining_cycles(problem)) - numbers(least)
    return tasks


@cached
def remaining_cycles(problem: Problem) -> tuple[int, ...]:
    """For each task, the cycles of the longest chain of tasks that starts with it."""
    path = [min(c for c in task.cycles if c is not None) for task in problem.tasks]
    before = problem.predecessors()
    longest = [0] * len(path)
    for task in reversed(list(problem.topological_order())):
        path[task] += longest[task]
        for earlier in before[task]:
            longest[earlier] = max(longest[earlier], path[task])
    return tuple(path)


def _read_table(reads: Rows) -> Table:
    rows = table(reads.items.size, "slice", "served_by", "reader")
    rows["slice"] = reads.items
    rows["reader"] = owners_of(reads)
    rows["served_by"] = NONE
    return rows


def _write_table(problem: Problem, lists: _Lists) -> Table:
    written = [(task, buffer) for task in problem.tasks for buffer in task.writes]
    rows = table(len(written), "buffer", "overwrites_from", "overwrites_to", "held_by")
    rows["buffer"] = [buffer for _, buffer in written]
    rows["held_by"] = NONE
    overwrites = rows_of(
        [task.reads.index(read) for read, taking in task.in_place if taking == buffer]
        for task, buffer in written
    )
    set_ranges(rows, "overwrites", lists.add(overwrites))
    return rows


def _slice_table(problem: Problem, readers: Rows) -> Table:
    slices = table(
        len(problem.slices),
        *("buffer", "bytes", "packed", "from_parent", "offset_in_parent", "at_place"),
        *("offset_at_place", "readers_from", "readers_to", "first", "next_reader"),
    )
    slices["buffer"] = [slice_.buffer for slice_ in problem.slices]
    slices["bytes"] = [slice_.bytes for slice_ in problem.slices]
    # Between residencies of the same slice copies are in one run.
    sizes = {slice_.bytes for slice_ in problem.slices}
    shapes = {size: shape_number(StridedCopy(run=size)) for size in sizes}
    slices["packed"] = [shapes[slice_.bytes] for slice_ in problem.slices]
    boxes = [(slice_, problem.buffers[slice_.buffer]) for slice_ in problem.slices]
    slices["from_parent"], slices["offset_in_parent"] = _shapes_and_offsets(
        (slice_.extent, parent.shape, parent.item, slice_.start) for slice_, parent in boxes
    )
    slices["at_place"], slices["offset_at_place"] = _shapes_and_offsets(
        (slice_.extent, *_place_of(problem, slice_, parent)) for slice_, parent in boxes
    )
    set_ranges(slices, "readers", readers.begin)
    slices["first"] = NONE
    slices["next_reader"] = readers.begin[:-1]
    return slices


def _place_of(problem: Problem, box: Slice, parent: Buffer) -> tuple[Extents, Bytes, Extents]:
    """Return what a slice is part of in DRAM, its tensor where it has one, and where it begins."""
    if parent.place is None:
        return parent.shape, parent.item, box.start
    whole = problem.tensors[parent.place.tensor].shape
    return whole, parent.item, tuple(map(add, parent.place.start, box.start))


def _shapes_and_offsets(
    copies: Iterable[tuple[Extents, Extents, Bytes, Extents]],
) -> tuple[Ints, Ints]:
    """Return the shapes of copies out of larger boxes, and the bytes before each copy in these.

    ``copies`` has of each the extents of the box that is copied, those of the larger one, the bytes
    of an element, and where it begins. Boxes of one shape are looked at once.
    """
    known: dict[tuple[Extents, Extents, Bytes], tuple[int, Extents]] = {}
    shapes, strides, starts = [], [], []
    for extent, whole, item, start in copies:
        key = extent, whole, item
        if key not in known:
            outer, packed = row_major_strides(whole, item), row_major_strides(extent, item)
            copy = strided_copy(extent, item, Layout(0, outer), Layout(0, packed))
            known[key] = shape_number(copy), outer
        shapes.append(known[key][0])
        strides.append(known[key][1])
        starts.append(start)
    begins = rows_of(starts)
    before = np.concatenate(([0], np.cumsum(begins.items * rows_of(strides).items)))
    return numbers(shapes), before[begins.begin[1:]] - before[begins.begin[:-1]]


def _buffer_table(problem: Problem, lists: _Lists) -> Table:
    buffers = table(
        len(problem.buffers), "begins", "ends", "parts_from", "parts_to", "home", "in_dram"
    )
    buffers["begins"] = [NONE if b.starts_in is None else b.starts_in for b in problem.buffers]
    buffers["ends"] = [NONE if b.ends_in is None else b.ends_in for b in problem.buffers]
    parent = numbers(slice_.buffer for slice_ in problem.slices)
    parts = rows_from_pairs(parent, np.arange(parent.size), len(problem.buffers))
    set_ranges(buffers, "parts", lists.add(parts))
    buffers["home"] = NONE
    buffers["in_dram"] = NONE
    return buffers
