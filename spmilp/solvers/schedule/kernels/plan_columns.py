"""The decisions of a plan in columns, and the plan's rows made from them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from spmilp.cached import cached
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Placement, Plan, Residency, Transfer
from spmilp.problem.problem import Problem
from spmilp.solvers.schedule.kernels.records import NONE, Ints, Rows, numbers, rows_of
from spmilp.solvers.schedule.kernels.tables import problem_tables
from spmilp.units import Cycles, ResidencyIdx


def least_free_numbers(intervals: Iterable[tuple[int, Cycles, Cycles]]) -> list[int]:
    """Give each interval ``(owner, start, end)`` the least number free among its owner's.

    Taken by start, intervals of one owner of which at most ``c`` overlap get the numbers below
    ``c``, and no two that overlap get the same.
    """
    rows = list(intervals)
    numbers = [0] * len(rows)
    busy: dict[int, list[tuple[Cycles, int]]] = defaultdict(list)
    idle: dict[int, list[int]] = defaultdict(list)
    for index in sorted(range(len(rows)), key=lambda i: (rows[i][1], i)):
        owner, start, end = rows[index]
        running, free = busy[owner], idle[owner]
        while running and running[0][0] <= start:
            heappush(free, heappop(running)[1])
        # Without a free number those in use are all below their count.
        number = heappop(free) if free else len(running)
        heappush(running, (end, number))
        numbers[index] = number
    return numbers


class PlanColumns(NamedTuple):
    """What a plan decides. Activities are the tasks, then the transfers; -1 stands for none.

    Of each task there are its ``core`` and ``scratch``, the residency of its scratch bytes; of each
    activity ``start`` and ``end``, and the residencies that it ``reads`` and ``fills``, for a task
    its scratch last. Of each transfer there are ``sent``, when its last byte has left the source,
    its slice (``moved``), its ``engine``, and the links of its route (``routes``); of each
    residency ``slice`` (none in scratch), ``memory``, ``offset`` and ``bytes``, and its start and
    end, ``first`` and ``last``.
    """

    core: Ints
    scratch: Ints
    start: Ints
    end: Ints
    sent: Ints
    reads: Rows
    fills: Rows
    moved: Ints
    engine: Ints
    routes: Rows
    slice: Ints
    memory: Ints
    offset: Ints
    bytes: Ints
    first: Ints
    last: Ints

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.core.size

    def fillers(self) -> Ints:
        """Return the activity that fills each residency; scratch counts as filled by its task."""
        filler = np.full(self.slice.size, NONE, np.int64)
        filler[self.fills.items] = np.repeat(np.arange(self.start.size), np.diff(self.fills.begin))
        return filler


def columns_of_plan(plan: Plan) -> PlanColumns:
    """Return the decisions of a plan."""
    placements, transfers, residencies = plan.placements, plan.transfers, plan.residencies
    activities: list[Placement | Transfer] = [*placements, *transfers]
    return PlanColumns(
        core=numbers(one.core for one in placements),
        scratch=_or_none(one.scratch for one in placements),
        start=numbers(one.start for one in activities),
        end=numbers(one.end for one in activities),
        sent=numbers(one.sent for one in transfers),
        reads=rows_of([*(one.reads for one in placements), *((one.source,) for one in transfers)]),
        fills=rows_of([*map(_filled_by, placements), *(one.destinations for one in transfers)]),
        moved=numbers(one.slice for one in transfers),
        engine=numbers(one.engine for one in transfers),
        routes=rows_of(one.route for one in transfers),
        slice=_or_none(one.slice for one in residencies),
        memory=numbers(one.memory for one in residencies),
        offset=numbers(one.offset for one in residencies),
        bytes=numbers(one.bytes for one in residencies),
        first=numbers(one.start for one in residencies),
        last=numbers(one.end for one in residencies),
    )


def _filled_by(placement: Placement) -> tuple[ResidencyIdx, ...]:
    scratch = () if placement.scratch is None else (placement.scratch,)
    return (*placement.writes, *scratch)


def residencies_of(columns: PlanColumns) -> list[Residency]:
    """Return the residencies of a plan."""
    filler = columns.fillers()
    task = np.where((columns.slice == NONE) | (filler >= columns.tasks), NONE, filler)
    transfer = np.where(filler >= columns.tasks, filler - columns.tasks, NONE)
    places = columns.memory, columns.offset, columns.bytes, columns.first, columns.last
    rows = (column.tolist() for column in (columns.slice, *places, task, transfer))
    return [
        Residency(
            index=index,
            slice=_optional(what),
            memory=memory,
            offset=offset,
            bytes=size,
            start=start,
            end=end,
            filled_by_task=_optional(by_task),
            filled_by_transfer=_optional(by_transfer),
        )
        for index, (what, memory, offset, size, start, end, by_task, by_transfer) in enumerate(
            zip(*rows, strict=True)
        )
    ]


def placements_of(columns: PlanColumns) -> tuple[Placement, ...]:
    """Return the placements of a plan."""
    times = (column[: columns.tasks].tolist() for column in (columns.start, columns.end))
    rows = zip(
        columns.core.tolist(),
        *times,
        lists_in(columns.reads),
        lists_in(columns.fills),
        columns.scratch.tolist(),
        strict=False,
    )
    return tuple(
        Placement(
            task=index,
            core=core,
            start=start,
            end=end,
            reads=reads,
            writes=fills if scratch == NONE else fills[:-1],
            scratch=_optional(scratch),
        )
        for index, (core, start, end, reads, fills, scratch) in enumerate(rows)
    )


def transfers_of(machine: Machine, columns: PlanColumns) -> tuple[Transfer, ...]:
    """Return the transfers of a plan; an engine never has more at a time than channels."""
    tasks = columns.tasks
    engine = columns.engine.tolist()
    start, end = columns.start[tasks:].tolist(), columns.end[tasks:].tolist()
    sent = columns.sent.tolist()
    busy = (machine.engines[e].busy_until(s, a) for e, s, a in zip(engine, sent, end, strict=True))
    sources = columns.reads.items[columns.reads.begin[tasks:-1]].tolist()
    destinations = lists_in(Rows(columns.fills.begin[tasks:], columns.fills.items))
    channels = least_free_numbers(zip(engine, start, busy, strict=True))
    rows = zip(columns.moved.tolist(), sources, destinations, lists_in(columns.routes), strict=True)
    return tuple(
        Transfer(
            index=index,
            slice=what,
            source=source,
            destinations=filled,
            engine=engine[index],
            channel=channels[index],
            start=start[index],
            sent=sent[index],
            end=end[index],
            route=route,
        )
        for index, (what, source, filled, route) in enumerate(rows)
    )


def lists_in(rows: Rows) -> Iterator[tuple[int, ...]]:
    """Yield each of the lists."""
    items = rows.items.tolist()
    return (tuple(items[a:b]) for a, b in pairwise(rows.begin.tolist()))


class BufferColumns(NamedTuple):
    """What is fixed of buffers; -1 stands for none, and at the end of each column for no buffer.

    Of each buffer there are the memory that it ``starts_in`` and ``ends_in``, and the ``tensor`` of
    its place; ``of_slices`` has the buffer of each slice.
    """

    starts_in: Ints
    ends_in: Ints
    tensor: Ints
    of_slices: Ints


@cached
def buffer_columns(problem: Problem) -> BufferColumns:
    """Return what is fixed of the buffers of a problem."""
    tables = problem_tables(problem)
    places = (buffer.place for buffer in problem.buffers)
    tensors = _or_none(None if place is None else place.tensor for place in places)
    columns = (tables.buffers["begins"], tables.buffers["ends"], tensors, tables.slices["buffer"])
    return BufferColumns(*(np.append(column, NONE) for column in columns))


def _or_none(values: Iterable[int | None]) -> Ints:
    return numbers(NONE if value is None else value for value in values)


def _optional(value: int) -> int | None:
    return None if value == NONE else value
