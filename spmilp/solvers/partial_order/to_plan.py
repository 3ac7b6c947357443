"""From a timed schedule back to a plan."""

from dataclasses import replace

import numpy as np

from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.common.intervals import least_free_numbers
from spmilp.solvers.kernels.extract import dram_addresses
from spmilp.solvers.kernels.plan_columns import (
    PlanColumns,
    placements_of,
    residencies_of,
    transfers_of,
)
from spmilp.solvers.kernels.records import NONE, Ints, Rows, numbers, ranges_of
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.from_plan import pools_of
from spmilp.solvers.partial_order.schedule import TimedSchedule, is_alive


def plan_of(context: ScheduleContext, timed: TimedSchedule) -> Plan:
    """Return the plan of a schedule; addresses in DRAMs without limit are given out anew.

    It says of how it was made what the plan says that it was made from.

    Raises
    ------
    DoesNotFitError
        If a DRAM with a limit is too small.
    """
    problem, plan = context.problem, context.plan
    columns = columns_at(problem, timed)
    tensors, residencies = plan.tensors, residencies_of(columns)
    if context.dram_is_free:
        tensors, residencies = dram_addresses(problem, residencies)
    placements, transfers = placements_of(columns), transfers_of(columns)
    measures = measure(problem, placements, residencies, transfers)
    return replace(
        plan,
        placements=placements,
        residencies=tuple(residencies),
        transfers=transfers,
        tensors=tensors,
        claim=claim_of(measures, plan.claim.bound, plan.claim.bound_source),
    )


def columns_at(problem: Problem, timed: TimedSchedule) -> PlanColumns:
    """Return what is left of a schedule: without what was dropped, and numbered anew."""
    schedule, tasks = timed.schedule, len(problem.tasks)
    moves = tasks + np.flatnonzero(schedule.cycles[tasks:] > 0)
    activities = np.concatenate((np.arange(tasks), moves))
    alive = np.flatnonzero(is_alive(schedule))
    number = np.full(schedule.filler.size, NONE, np.int64)
    number[alive] = np.arange(alive.size)
    is_scratch = alive[schedule.slice[alive] == NONE]
    scratch = np.full(tasks, NONE, np.int64)
    scratch[schedule.filler[is_scratch]] = number[is_scratch]
    begin, length = schedule.demands.begin[moves], np.diff(schedule.demands.begin)[moves]
    engines = len(pools_of(problem.machine))
    links = engines + len(problem.machine.engines)
    first, last = timed.lifetimes()
    return PlanColumns(
        core=_cores(problem, timed),
        scratch=scratch,
        start=timed.start[activities],
        end=(timed.start + schedule.cycles)[activities],
        reads=_numbered(schedule.reads, activities, number),
        fills=_numbered(schedule.fills, activities, number),
        moved=schedule.moved_slice[moves],
        engine=schedule.demands.items[begin] - engines,
        routes=ranges_of(schedule.demands.items - links, begin + 1, length - 1),
        slice=schedule.slice[alive],
        memory=schedule.memory[alive],
        offset=schedule.offset[alive],
        bytes=schedule.bytes[alive],
        first=first[alive],
        last=last[alive],
    )


def _numbered(rows: Rows, chosen: Ints, number: Ints) -> Rows:
    """Return some of the rows with other numbers."""
    return ranges_of(number[rows.items], rows.begin[chosen], np.diff(rows.begin)[chosen])


def _cores(problem: Problem, timed: TimedSchedule) -> Ints:
    """Return the core of each task; those of a pool get its cores in turn."""
    pools, tasks = pools_of(problem.machine), len(problem.tasks)
    demands = timed.schedule.demands
    of_task = demands.items[demands.begin[:tasks]].tolist()
    start, end = timed.start[:tasks], (timed.start + timed.schedule.cycles)[:tasks]
    turns = least_free_numbers(zip(of_task, start.tolist(), end.tolist(), strict=True))
    return numbers(pools[pool][turn] for pool, turn in zip(of_task, turns, strict=True))
