"""From the scheduler's tables to the parts of a plan."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from spmilp.bounds.bound import Bound
from spmilp.machine.routes import Routes
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Placement, Plan, Residency, Transfer
from spmilp.problem.problem import Problem
from spmilp.solvers.common.intervals import least_free_numbers
from spmilp.solvers.kernels.dram import dram_addresses
from spmilp.solvers.kernels.records import NONE, Ints, Table
from spmilp.solvers.kernels.schedule_state import ScheduleState
from spmilp.units import Cycles, MemoryIdx, SliceIdx


def plan_of(
    problem: Problem,
    routes: Routes,
    state: ScheduleState,
    bound: Bound,
    solver: str,
    options: tuple[tuple[str, str], ...],
) -> Plan:
    """Return a finished schedule as a plan.

    Raises
    ------
    DoesNotFitError
        If a bounded DRAM is too small for the tensors and what is spilled to it.
    """
    rows = state.made_residencies()
    kept = np.flatnonzero(_was_filled(problem, rows))
    number = np.full(len(rows) + 1, NONE, np.int64)
    number[kept] = np.arange(len(kept))
    tensors, residencies = dram_addresses(
        problem, list(_residencies(problem, rows[kept], state.makespan()))
    )
    placements = tuple(_placements(state, number))
    transfers = tuple(_transfers(routes, state, number))
    measures = measure(problem, placements, residencies, transfers)
    return Plan(
        placements=placements,
        residencies=tuple(residencies),
        transfers=transfers,
        tensors=tensors,
        claim=claim_of(measures, bound.value, bound.name),
        solver=solver,
        options=options,
    )


def _was_filled(problem: Problem, rows: Any) -> Any:
    """Say which residencies held something: a task that began again left some that did not."""
    starts = np.array([buffer.starts_in is not None for buffer in problem.buffers] + [False])
    whole = np.where(
        (rows["slice"] >= 0) & (rows["slice"] < len(problem.buffers)), rows["slice"], -1
    )
    initial = starts[whole] & (rows["start"] == 0) & (rows["valid"] == 0)
    filled = (rows["filled_by_task"] != NONE) | (rows["filled_by_transfer"] != NONE)
    return filled | initial | (rows["slice"] == NONE)


def _residencies(problem: Problem, rows: Table, makespan: Cycles) -> Iterator[Residency]:
    names = ("slice", "memory", "offset", "bytes", "start", "end")
    fillers = ("filled_by_task", "filled_by_transfer")
    for index, row in enumerate(_values(rows, *names, *fillers)):
        held, memory, offset, size, start, end, task, transfer = row
        slice_ = _optional(held)
        yield Residency(
            index=index,
            slice=slice_,
            memory=memory,
            offset=offset,
            bytes=size,
            start=start,
            end=max(makespan if _stays(problem, slice_, memory) else end, start + 1),
            filled_by_task=_optional(task),
            filled_by_transfer=_optional(transfer),
        )


def _stays(problem: Problem, slice_: SliceIdx | None, memory: MemoryIdx) -> bool:
    """Say whether a residency lasts until all ends, whatever uses it last."""
    if slice_ is None or slice_ >= len(problem.buffers):
        return False
    buffer = problem.buffers[slice_]
    in_dram_from_the_start = buffer.starts_in == memory and buffer.place is not None
    return buffer.ends_in == memory or in_dram_from_the_start


def _placements(state: ScheduleState, number: Ints) -> Iterator[Placement]:
    served = number[state.reads["served_by"]].tolist()
    held = number[state.writes["held_by"]].tolist()
    scratch = number[state.tasks["scratch"]].tolist()
    names = ("core", "start", "end", "reads_from", "reads_to", "writes_from", "writes_to")
    for index, row in enumerate(_values(state.tasks, *names)):
        core, start, end, reads_from, reads_to, writes_from, writes_to = row
        yield Placement(
            task=index,
            core=core,
            start=start,
            end=end,
            reads=tuple(served[reads_from:reads_to]),
            writes=tuple(held[writes_from:writes_to]),
            scratch=_optional(scratch[index]),
        )


def _transfers(routes: Routes, state: ScheduleState, number: Ints) -> Iterator[Transfer]:
    names = ("slice", "source", "destination", "engine", "start", "end")
    moves = list(_values(state.made_transfers(), *names))
    # The engine never has more transfers at a time than channels.
    channels = least_free_numbers((engine, start, end) for *_, engine, start, end in moves)
    memory = state.residencies["memory"].tolist()
    new_number = number.tolist()
    for index, (slice_, source, destination, engine, start, end) in enumerate(moves):
        route = routes.between(memory[source], memory[destination])
        yield Transfer(
            index=index,
            slice=slice_,
            source=new_number[source],
            destinations=(new_number[destination],),
            engine=engine,
            channel=channels[index],
            start=start,
            end=end,
            route=route.links if route else (),
        )


def _values(rows: Table, *fields: str) -> Iterator[tuple[int, ...]]:
    """Yield the fields of each row as plain numbers, which are quicker to read than records."""
    return zip(*(rows[field].tolist() for field in fields), strict=True)


def _optional(value: int) -> int | None:
    return None if value == NONE else value
