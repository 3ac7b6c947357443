"""The problem and the machine as flat tables, for compiled code.

Lists of lists become one array of items and one of where each list begins (``..._from``, with one
entry more than there are lists). Rates are scaled to integers by one common factor, so that
durations and link loads stay exact.
"""

from collections.abc import Iterable
from math import lcm
from typing import NamedTuple

import numpy as np

from spmilp.machine.machine import Machine, MemoryKind
from spmilp.machine.routes import Routes, transfer_rate
from spmilp.problem.problem import Problem
from spmilp.problem.strides import layout_at_place, layout_in_slice, packed_layout, strided_copy
from spmilp.solvers.list_scheduler.records import (
    NO_LIMIT,
    NONE,
    Ints,
    Table,
    flatten,
    numbers,
    table,
)
from spmilp.units import MemoryIdx, SliceIdx, align_up


class ProblemArrays(NamedTuple):
    """Tasks, slices and buffers; see :class:`~spmilp.problem.problem.Problem` for their meaning.

    ``overwrites`` has a list for each entry of ``writes``: the positions, among the task's reads,
    of the slices whose bytes it may take over. ``slices`` has ``buffer``, ``bytes``, and the nested
    strides of its copy out of its parent's residency (``from_parent``) and to or from its place in
    DRAM (``at_place``). ``buffers`` has the memory where it ``begins`` and the one that must hold
    it when all ``ends``, or -1. ``parts`` lists the slices of each buffer.
    """

    cycles: Ints
    scratch: Ints
    reads_from: Ints
    reads: Ints
    writes_from: Ints
    writes: Ints
    overwrites_from: Ints
    overwrites: Ints
    before_from: Ints
    before: Ints
    readers_from: Ints
    readers: Ints
    parts_from: Ints
    parts: Ints
    slices: Table
    buffers: Table


class MachineArrays(NamedTuple):
    """Cores, memories, and the ways between memories.

    ``memories`` has ``alignment``, ``is_dram`` and ``parent``, the next memory towards DRAM or -1.
    ``pair[source, destination]`` is the position of a pair of memories, or -1; its ways are
    ``ways[ways_from[p]:ways_from[p + 1]]``: an ``engine`` with ``fixed`` cycles and a scaled
    ``rate``. All go over the links ``links[links_from[p]:links_from[p + 1]]``. ``engines`` has
    ``longest`` and ``dimensions``. Resources are the engines, then the links, with ``capacity``
    channels or scaled bytes per cycle.
    """

    core_kind: Ints
    core_memory: Ints
    memories: Table
    pair: Ints
    ways_from: Ints
    ways: Table
    links_from: Ints
    links: Ints
    engines: Table
    capacity: Ints
    scale: int


def problem_arrays(problem: Problem) -> ProblemArrays:
    """Flatten a problem."""
    readers: list[list[int]] = [[] for _ in problem.slices]
    for task in problem.tasks:
        for read in task.reads:
            readers[read].append(task.index)
    parts: list[list[int]] = [[] for _ in problem.buffers]
    for slice_ in problem.slices:
        parts[slice_.buffer].append(slice_.index)
    overwrites = [
        [task.reads.index(read) for read, written in task.in_place if written == write]
        for task in problem.tasks
        for write in task.writes
    ]
    cycles = [[NONE if c is None else c for c in task.cycles] for task in problem.tasks]
    return ProblemArrays(
        np.array(cycles, np.int64).reshape(len(problem.tasks), len(problem.machine.kinds)),
        numbers(task.scratch for task in problem.tasks),
        *flatten(task.reads for task in problem.tasks),
        *flatten(task.writes for task in problem.tasks),
        *flatten(overwrites),
        *flatten(problem.predecessors()),
        *flatten(readers),
        *flatten(parts),
        _slice_table(problem),
        _buffer_table(problem),
    )


def machine_arrays(
    machine: Machine, routes: Routes, pairs: Iterable[tuple[MemoryIdx, MemoryIdx]]
) -> MachineArrays:
    """Flatten a machine with the ways of the memory ``pairs`` that transfers may use."""
    rates = [link.rate for link in machine.links] + [engine.rate for engine in machine.engines]
    scale = lcm(*(rate.denominator for rate in rates)) if rates else 1
    pair = np.full((len(machine.memories), len(machine.memories)), NONE, np.int64)
    ways: list[list[tuple[int, int, int]]] = []
    links: list[tuple[int, ...]] = []
    for source, destination in sorted(set(pairs)):
        route = routes.between(source, destination)
        served = routes.engines_for(source, destination)
        if route is None or not served:
            continue
        pair[source, destination] = len(ways)
        links.append(route.links)
        ways.append([])
        for index in served:
            engine = machine.engines[index]
            rate = int(transfer_rate(engine, route) * scale)
            ways[-1].append((index, engine.setup + route.latency, rate))
    rows = table(sum(map(len, ways)), "engine", "fixed", "rate")
    rows[:] = [way for some in ways for way in some]
    return MachineArrays(
        numbers(core.kind for core in machine.cores),
        numbers(core.memory for core in machine.cores),
        _memory_table(machine, routes),
        pair,
        flatten([0] * len(some) for some in ways)[0],
        rows,
        *flatten(links),
        _engine_table(machine),
        numbers(
            [engine.channels for engine in machine.engines]
            + [int(link.rate * scale) for link in machine.links]
        ),
        scale,
    )


def _slice_table(problem: Problem) -> Table:
    rows = table(len(problem.slices), "buffer", "bytes", "from_parent", "at_place")
    for slice_ in problem.slices:
        rows[slice_.index] = (
            slice_.buffer,
            slice_.bytes,
            _dimensions_from_parent(problem, slice_.index),
            _dimensions_at_place(problem, slice_.index),
        )
    return rows


def _dimensions_from_parent(problem: Problem, index: SliceIdx) -> int:
    box = problem.slices[index]
    source = layout_in_slice(problem, index, box.buffer)
    item = problem.buffers[box.buffer].item
    return strided_copy(box.extent, item, source, packed_layout(problem, index)).dimensions


def _dimensions_at_place(problem: Problem, index: SliceIdx) -> int:
    box = problem.slices[index]
    parent = problem.buffers[box.buffer]
    if parent.place is None:
        return _dimensions_from_parent(problem, index)
    source = layout_at_place(problem, index)
    return strided_copy(box.extent, parent.item, source, packed_layout(problem, index)).dimensions


def _buffer_table(problem: Problem) -> Table:
    rows = table(len(problem.buffers), "begins", "ends")
    for buffer in problem.buffers:
        begins = NONE if buffer.starts_in is None else buffer.starts_in
        rows[buffer.index] = (begins, NONE if buffer.ends_in is None else buffer.ends_in)
    return rows


def _memory_table(machine: Machine, routes: Routes) -> Table:
    rows = table(len(machine.memories), "alignment", "is_dram", "parent")
    for memory in machine.memories:
        rows[memory.index] = (
            _alignment(machine, memory.index),
            memory.kind is MemoryKind.DRAM,
            next_towards_dram(machine, routes, memory.index),
        )
    return rows


def next_towards_dram(machine: Machine, routes: Routes, memory: MemoryIdx) -> MemoryIdx:
    """Return the next memory on the shortest path to a DRAM; -1 in a DRAM or without path."""
    if machine.memories[memory].kind is MemoryKind.DRAM:
        return NONE
    paths = (routes.staging_path(memory, dram.index) for dram in machine.drams)
    found = [path for path in paths if path is not None]
    return min(found, key=len)[1] if found else NONE


def _alignment(machine: Machine, memory: MemoryIdx) -> int:
    """Return what offsets are multiples of: the memory's alignment and its engines' congruence."""
    alignment = machine.memories[memory].alignment
    for engine in machine.engines:
        if engine.congruence > 1 and engine.owner in (None, memory):
            alignment = align_up(alignment, engine.congruence)
    return alignment


def _engine_table(machine: Machine) -> Table:
    rows = table(len(machine.engines), "longest", "dimensions")
    for engine in machine.engines:
        rows[engine.index] = (
            NO_LIMIT if engine.longest is None else engine.longest,
            NO_LIMIT if engine.dimensions is None else engine.dimensions,
        )
    return rows
