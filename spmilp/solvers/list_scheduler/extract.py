"""From the scheduler's tables to the parts of a plan."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from spmilp.machine.routes import Routes
from spmilp.plan.plan import Placement, Residency, Transfer
from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.board import COUNT_RESIDENCIES, COUNT_TRANSFERS, Board
from spmilp.solvers.list_scheduler.dram import dram_addresses
from spmilp.solvers.list_scheduler.records import NONE, Ints, plain
from spmilp.units import Bytes, Cycles, EngineIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The decisions of a plan, without what is claimed of them."""

    placements: tuple[Placement, ...]
    residencies: tuple[Residency, ...]
    transfers: tuple[Transfer, ...]
    tensors: tuple[Bytes, ...]


def makespan_of(board: Board) -> Cycles:
    """Return the end of the last task or transfer."""
    moves = board.transfers[: board.counts[COUNT_TRANSFERS]]
    last_task = board.tasks["end"].max(initial=0)
    return int(max(last_task, moves["end"].max(initial=0)))


def extract(problem: Problem, routes: Routes, board: Board) -> Schedule:
    """Return a finished schedule in the project's own terms.

    Raises
    ------
    DoesNotFitError
        If a bounded DRAM is too small for the tensors and what is spilled to it.
    """
    rows = plain(board.residencies[: board.counts[COUNT_RESIDENCIES]])
    kept = np.flatnonzero(_was_filled(problem, rows))
    number = np.full(len(rows) + 1, NONE, np.int64)
    number[kept] = np.arange(len(kept))
    makespan = makespan_of(board)
    residencies = [
        _residency(problem, rows[old], index, makespan) for index, old in enumerate(kept)
    ]
    tensors, residencies = dram_addresses(problem, residencies)
    return Schedule(
        placements=tuple(_placements(problem, board, number)),
        residencies=tuple(residencies),
        transfers=tuple(_transfers(problem, routes, board, number)),
        tensors=tensors,
    )


def _was_filled(problem: Problem, rows: Any) -> Any:
    """Say which residencies count: a task that began again left some that held nothing."""
    starts = np.array([buffer.starts_in is not None for buffer in problem.buffers] + [False])
    whole = np.where(
        (rows["slice"] >= 0) & (rows["slice"] < len(problem.buffers)), rows["slice"], -1
    )
    initial = starts[whole] & (rows["start"] == 0) & (rows["valid"] == 0)
    filled = (rows["filled_by_task"] != NONE) | (rows["filled_by_transfer"] != NONE)
    return filled | initial | (rows["slice"] == NONE)


def _residency(problem: Problem, row: Any, index: int, makespan: Cycles) -> Residency:
    slice_ = _optional(row["slice"])
    stays = False
    if slice_ is not None and slice_ < len(problem.buffers):
        buffer = problem.buffers[slice_]
        in_dram_from_the_start = buffer.starts_in == row["memory"] and buffer.place is not None
        stays = buffer.ends_in == row["memory"] or in_dram_from_the_start
    start = int(row["start"])
    return Residency(
        index=index,
        slice=slice_,
        memory=int(row["memory"]),
        offset=int(row["offset"]),
        bytes=int(row["bytes"]),
        start=start,
        end=max(makespan if stays else int(row["end"]), start + 1),
        filled_by_task=_optional(row["filled_by_task"]),
        filled_by_transfer=_optional(row["filled_by_transfer"]),
    )


def _placements(problem: Problem, board: Board, number: Ints) -> Iterator[Placement]:
    served_by, held_by = board.reads["served_by"], board.writes["held_by"]
    for row, task in zip(plain(board.tasks), problem.tasks, strict=True):
        served = served_by[row["reads_from"] : row["reads_to"]]
        held = held_by[row["writes_from"] : row["writes_to"]]
        yield Placement(
            task=task.index,
            core=int(row["core"]),
            start=int(row["start"]),
            end=int(row["end"]),
            reads=tuple(number[served].tolist()),
            writes=tuple(number[held].tolist()),
            scratch=_optional(number[row["scratch"]]),
        )


def _transfers(problem: Problem, routes: Routes, board: Board, number: Ints) -> Iterator[Transfer]:
    rows = plain(board.transfers[: board.counts[COUNT_TRANSFERS]])
    channels = _channels(rows)
    memory = board.residencies["memory"]
    for index, row in enumerate(rows):
        route = routes.between(int(memory[row["source"]]), int(memory[row["destination"]]))
        yield Transfer(
            index=index,
            slice=int(row["slice"]),
            source=int(number[row["source"]]),
            destinations=(int(number[row["destination"]]),),
            engine=int(row["engine"]),
            channel=channels[index],
            start=int(row["start"]),
            end=int(row["end"]),
            route=route.links if route else (),
        )


def _channels(rows: Any) -> list[int]:
    """Give each transfer a channel of its engine that is free (the engine never has too many).

    The transfers of an engine are intervals; taking them by start and giving each the least free
    channel needs no more channels than there are transfers at one time.
    """
    channels = [0] * len(rows)
    free: dict[EngineIdx, list[int]] = {}
    busy: dict[EngineIdx, list[tuple[Cycles, int]]] = {}
    for index in np.lexsort((np.arange(len(rows)), rows["start"])):
        engine, start, end = (int(rows[index][name]) for name in ("engine", "start", "end"))
        running = busy.setdefault(engine, [])
        idle = free.setdefault(engine, [])
        while running and running[0][0] <= start:
            heappush(idle, heappop(running)[1])
        channel = heappop(idle) if idle else len(running)
        heappush(running, (end, channel))
        channels[index] = channel
    return channels


def _optional(value: Any) -> int | None:
    return None if value == NONE else int(value)
