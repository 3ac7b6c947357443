"""From a schedule with times back to a plan."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Placement, Plan, Residency, Transfer
from spmilp.problem.problem import Problem
from spmilp.solvers.intervals import least_free_numbers
from spmilp.solvers.kernels.dram import dram_addresses
from spmilp.solvers.kernels.records import NONE, Ints
from spmilp.solvers.partial_order.from_plan import pools_of
from spmilp.solvers.partial_order.schedule import (
    PartialOrderSchedule,
    is_alive,
    lifetimes,
    makespan_of,
)
from spmilp.units import CoreIdx, EngineIdx, LinkIdx, TransferIdx


def plan_of(
    problem: Problem, plan: Plan, schedule: PartialOrderSchedule, start: Ints, *, dram_is_free: bool
) -> Plan:
    """Return a plan with the decisions of a schedule that was read from another plan.

    Parameters
    ----------
    dram_is_free
        Whether addresses in DRAM are given out anew.

    Raises
    ------
    DoesNotFitError
        If they are, and a DRAM with a limit is too small.
    """
    builder = _Builder(problem, plan, schedule, start)
    residencies, tensors = builder.residencies(), plan.tensors
    if dram_is_free:
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
    def __init__(
        self, problem: Problem, plan: Plan, schedule: PartialOrderSchedule, start: Ints
    ) -> None:
        self._problem = problem
        self._plan = plan
        self._draft = schedule
        self._start: list[int] = start.tolist()
        self._end: list[int] = (start + schedule.cycles).tolist()
        self._lives = lifetimes(schedule, start, makespan_of(schedule, start))
        self._tasks = len(plan.placements)
        self._engines = len(pools_of(problem.machine))
        self._links = self._engines + len(problem.machine.engines)
        self._stays = np.flatnonzero(is_alive(schedule)).tolist()
        self._moves = (np.flatnonzero(schedule.cycles[self._tasks :] > 0)).tolist()
        self._stay_at = {old: new for new, old in enumerate(self._stays)}
        self._move_at = {old: new for new, old in enumerate(self._moves)}
        self._parts: list[int] = schedule.moved_slice.tolist()
        self._reads, self._fills = (
            [rows.items[a:b].tolist() for a, b in pairwise(rows.begin)]
            for rows in (schedule.reads, schedule.fills)
        )

    def residencies(self) -> list[Residency]:
        """Return those that are left, with their times and offsets."""
        schedule = self._draft
        columns = (
            schedule.slice,
            schedule.memory,
            schedule.offset,
            schedule.bytes,
            schedule.filler,
            *self._lives,
        )
        return [
            self._residency(new, *values)
            for new, values in enumerate(
                zip(*(column[self._stays].tolist() for column in columns), strict=True)
            )
        ]

    def _residency(
        self, new: int, part: int, memory: int, offset: int, size: int, filler: int, *life: int
    ) -> Residency:
        by_task = part != NONE and 0 <= filler < self._tasks
        return Residency(
            index=new,
            slice=None if part == NONE else part,
            memory=memory,
            offset=offset,
            bytes=size,
            start=life[0],
            end=life[1],
            filled_by_task=filler if by_task else None,
            filled_by_transfer=self._move_at.get(filler - self._tasks),
        )

    def placements(self) -> tuple[Placement, ...]:
        """Return the tasks; those of a pool take turns on its cores."""
        cores = self._cores()
        return tuple(
            replace(
                placement,
                core=cores[placement.task],
                start=self._start[placement.task],
                end=self._end[placement.task],
                reads=self._renumbered(self._reads[placement.task]),
                writes=self._renumbered(placement.writes),
                scratch=None if placement.scratch is None else self._stay_at[placement.scratch],
            )
            for placement in self._plan.placements
        )

    def transfers(self) -> tuple[Transfer, ...]:
        """Return those that are left."""
        ways = [self._way(index) for index in self._moves]
        start = [self._start[self._tasks + index] for index in self._moves]
        end = [self._end[self._tasks + index] for index in self._moves]
        channels = least_free_numbers(
            (engine, begin, over) for (engine, _), begin, over in zip(ways, start, end, strict=True)
        )
        return tuple(
            Transfer(
                index=new,
                slice=self._parts[self._tasks + old],
                source=self._stay_at[self._reads[self._tasks + old][0]],
                destinations=self._renumbered(self._fills[self._tasks + old]),
                engine=ways[new][0],
                channel=channels[new],
                start=start[new],
                end=end[new],
                route=ways[new][1],
            )
            for new, old in enumerate(self._moves)
        )

    def _way(self, move: TransferIdx) -> tuple[EngineIdx, tuple[LinkIdx, ...]]:
        """Return the engine and the route of a transfer."""
        begin, items = self._draft.demands
        activity = self._tasks + move
        engine, *links = items[begin[activity] : begin[activity + 1]].tolist()
        return engine - self._engines, tuple(link - self._links for link in links)

    def _cores(self) -> list[CoreIdx]:
        pools = pools_of(self._problem.machine)
        of_task = self._draft.demands.items[self._draft.demands.begin[: self._tasks]].tolist()
        numbers = least_free_numbers(
            (pool, self._start[task], self._end[task]) for task, pool in enumerate(of_task)
        )
        return [pools[pool][number] for pool, number in zip(of_task, numbers, strict=True)]

    def _renumbered(self, residencies: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._stay_at[one] for one in residencies)
