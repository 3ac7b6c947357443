"""From a timed schedule back to a plan."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Placement, Plan, Residency, Transfer
from spmilp.problem.problem import Problem
from spmilp.solvers.common.intervals import least_free_numbers
from spmilp.solvers.kernels.dram import dram_addresses
from spmilp.solvers.kernels.records import NONE
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.from_plan import pools_of
from spmilp.solvers.partial_order.schedule import TimedSchedule, is_alive
from spmilp.units import CoreIdx, EngineIdx, LinkIdx, TransferIdx


def plan_of(context: ScheduleContext, timed: TimedSchedule) -> Plan:
    """Return the plan of a schedule; addresses in DRAMs without limit are given out anew.

    Raises
    ------
    DoesNotFitError
        If a DRAM with a limit is too small.
    """
    problem, plan = context.problem, context.plan
    builder = _Builder(problem, plan, timed)
    residencies, tensors = builder.residencies(), plan.tensors
    if context.dram_is_free:
        tensors, residencies = dram_addresses(problem, residencies)
    placements, transfers = builder.placements(), builder.transfers()
    measures = measure(problem, placements, residencies, transfers)
    return replace(
        plan,
        placements=placements,
        residencies=tuple(residencies),
        transfers=transfers,
        tensors=tensors,
        claim=claim_of(measures, plan.claim.bound, plan.claim.bound_source),
    )


class _Builder:
    def __init__(self, problem: Problem, plan: Plan, timed: TimedSchedule) -> None:
        schedule = timed.schedule
        self._problem = problem
        self._plan = plan
        self._schedule = schedule
        self._start: list[int] = timed.start.tolist()
        self._end: list[int] = (timed.start + schedule.cycles).tolist()
        self._lifetimes = timed.lifetimes()
        self._tasks = len(plan.placements)
        self._engines = len(pools_of(problem.machine))
        self._links = self._engines + len(problem.machine.engines)
        self._alive = np.flatnonzero(is_alive(schedule)).tolist()
        self._kept_moves = (np.flatnonzero(schedule.cycles[self._tasks :] > 0)).tolist()
        self._residency_at = {old: new for new, old in enumerate(self._alive)}
        self._transfer_at = {old: new for new, old in enumerate(self._kept_moves)}
        self._slices: list[int] = schedule.moved_slice.tolist()
        self._reads, self._fills = (
            [rows.items[a:b].tolist() for a, b in pairwise(rows.begin)]
            for rows in (schedule.reads, schedule.fills)
        )

    def residencies(self) -> list[Residency]:
        """Return those that are left, with their times and offsets."""
        schedule = self._schedule
        columns = (
            schedule.slice,
            schedule.memory,
            schedule.offset,
            schedule.bytes,
            schedule.filler,
            *self._lifetimes,
        )
        return [
            self._residency(new, *values)
            for new, values in enumerate(
                zip(*(column[self._alive].tolist() for column in columns), strict=True)
            )
        ]

    def _residency(
        self, new: int, slice_: int, memory: int, offset: int, size: int, filler: int, *life: int
    ) -> Residency:
        by_task = slice_ != NONE and 0 <= filler < self._tasks
        return Residency(
            index=new,
            slice=None if slice_ == NONE else slice_,
            memory=memory,
            offset=offset,
            bytes=size,
            start=life[0],
            end=life[1],
            filled_by_task=filler if by_task else None,
            filled_by_transfer=self._transfer_at.get(filler - self._tasks),
        )

    def placements(self) -> tuple[Placement, ...]:
        """Return the tasks; those of a pool get its cores in turn."""
        cores = self._cores()
        return tuple(
            replace(
                placement,
                core=cores[placement.task],
                start=self._start[placement.task],
                end=self._end[placement.task],
                reads=self._renumbered(self._reads[placement.task]),
                writes=self._renumbered(placement.writes),
                scratch=None
                if placement.scratch is None
                else self._residency_at[placement.scratch],
            )
            for placement in self._plan.placements
        )

    def transfers(self) -> tuple[Transfer, ...]:
        """Return those that are left."""
        routes = [self._route(index) for index in self._kept_moves]
        start = [self._start[self._tasks + index] for index in self._kept_moves]
        end = [self._end[self._tasks + index] for index in self._kept_moves]
        channels = least_free_numbers(
            (engine, begin, over)
            for (engine, _), begin, over in zip(routes, start, end, strict=True)
        )
        return tuple(
            Transfer(
                index=new,
                slice=self._slices[self._tasks + old],
                source=self._residency_at[self._reads[self._tasks + old][0]],
                destinations=self._renumbered(self._fills[self._tasks + old]),
                engine=routes[new][0],
                channel=channels[new],
                start=start[new],
                end=end[new],
                route=routes[new][1],
            )
            for new, old in enumerate(self._kept_moves)
        )

    def _route(self, move: TransferIdx) -> tuple[EngineIdx, tuple[LinkIdx, ...]]:
        """Return the engine and the route of a transfer."""
        begin, items = self._schedule.demands
        activity = self._tasks + move
        engine, *links = items[begin[activity] : begin[activity + 1]].tolist()
        return engine - self._engines, tuple(link - self._links for link in links)

    def _cores(self) -> list[CoreIdx]:
        pools = pools_of(self._problem.machine)
        of_task = self._schedule.demands.items[self._schedule.demands.begin[: self._tasks]].tolist()
        numbers = least_free_numbers(
            (pool, self._start[task], self._end[task]) for task, pool in enumerate(of_task)
        )
        return [pools[pool][number] for pool, number in zip(of_task, numbers, strict=True)]

    def _renumbered(self, residencies: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._residency_at[one] for one in residencies)
