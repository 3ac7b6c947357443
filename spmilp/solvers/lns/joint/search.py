"""Joint windows one after another: what is free in each, and how large it is."""

from collections.abc import Iterable
from enum import Enum

import numpy as np
from ortools.sat.python import cp_model

from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.operator_selection import ByBestRate
from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.lns.joint.model import JointModel
from spmilp.solvers.lns.joint.region import Region
from spmilp.solvers.lns.joint.result import JointResult
from spmilp.solvers.lns.reassignment.move import Reassigner
from spmilp.solvers.lns.window_model import solver_of_one_window
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.context import ScheduleContext
from spmilp.solvers.partial_order.forward import forward_pass
from spmilp.solvers.partial_order.repacking import justified_by_capacity
from spmilp.solvers.partial_order.schedule import KEEPS_TIME, Memories, TimedSchedule
from spmilp.units import TaskIdx

MOST_TASKS = 40
"""Free in one window."""

CANDIDATES = 3
"""Pools that a task may run on, where cores are free."""

FIRST_SIZE, LEAST_SIZE, MOST_SIZE = 60, 20, 400
"""Activities of a window."""

GROWTH = 1.2
"""A window that is solved to the end lets the next be larger; one that is not, smaller."""

DETERMINISTIC_TIME = 0.05
"""For one window; half a second to two at most."""


class Neighbourhood(Enum):
    """What is free besides order and times.

    ``STAYS``
        What stays where, what fills it, and from where; tasks keep their cores.
    ``CORES``
        The cores of some tasks with it.
    """

    STAYS = 0
    CORES = 1


FREE_CORES = 6
"""Tasks whose cores are free."""


class JointSearch:
    """Improves what is read from where, cores and times with open addresses, window by window."""

    def __init__(self, context: ScheduleContext, seed: int, *, has_clock: bool) -> None:
        self._context = context
        self._reassigner = Reassigner(context)
        self._random = np.random.default_rng(seed)
        self._selection = ByBestRate(tuple(Neighbourhood), self._random, has_clock=has_clock)
        self._size = dict.fromkeys(Neighbourhood, float(FIRST_SIZE))
        self._neighbours = _neighbours(context)

    def improve(self, current: TimedSchedule, memories: Memories, clock: Clock) -> TimedSchedule:
        """Solve one window; return a schedule that ends no later."""
        began, kind = clock.now(), self._selection.next()
        late = backward_pass(current, memories)
        early = forward_pass(late, memories)
        if early.makespan < current.makespan:
            return early
        region = self._region(kind, early, late)
        found = self._solved(region, kind, clock.seconds_left()) if region.tasks else None
        if found is None:
            found = early
        else:
            found = justified_by_capacity(self._context, found, memories, clock, rounds=1)
        self._selection.learn(kind, current.makespan - found.makespan, clock.now() - began)
        return found

    def _region(self, kind: Neighbourhood, early: TimedSchedule, late: TimedSchedule) -> Region:
        """Return a window around an activity without slack, with what is free in it."""
        schedule, count = late.schedule, len(self._context.problem.tasks)
        order = np.argsort(late.start, kind="stable")
        order = order[(schedule.cycles[order] > 0) & (schedule.fixed[order] != KEEPS_TIME)]
        is_critical = late.start[order] == early.start[order]
        positions = np.flatnonzero(is_critical) if is_critical.any() else np.arange(order.size)
        size = int(self._size[kind])
        anchor = int(self._random.choice(positions))
        begin = max(0, min(anchor - size // 2, order.size - size))
        inside = order[begin : begin + size]
        span = int(late.start[inside[0]]), int(late.start[inside[-1]]) + 1
        tasks = np.flatnonzero((late.start[:count] >= span[0]) & (late.start[:count] < span[1]))
        distance = np.abs(late.start[tasks] - late.start[order[anchor]])
        tasks = tasks[np.lexsort((late.start[tasks] > early.start[tasks], distance))][:MOST_TASKS]
        pools = self._pools(kind, late, tasks)
        return Region(self._reassigner, early, late, span, pools)

    def _pools(
        self, kind: Neighbourhood, late: TimedSchedule, tasks: Ints
    ) -> dict[TaskIdx, tuple[int, ...]]:
        demands = late.schedule.demands
        pool_of: list[int] = demands.items[demands.begin[: len(self._neighbours)]].tolist()
        found: dict[TaskIdx, tuple[int, ...]] = {task: (pool_of[task],) for task in tasks.tolist()}
        if kind is Neighbourhood.CORES:
            for task in self._connected(tasks.tolist()):
                near = [pool_of[other] for other in self._neighbours[task]]
                found[task] = self._candidates(pool_of[task], near)
        return found

    def _connected(self, tasks: list[TaskIdx]) -> list[TaskIdx]:
        """Return tasks that are linked to the first one by slices, as far as there are any."""
        within, found, waiting = set(tasks), list[TaskIdx](), tasks[:1]
        while waiting and len(found) < FREE_CORES:
            found.append(waiting.pop(int(self._random.integers(len(waiting)))))
            new = within.intersection(self._neighbours[found[-1]])
            waiting += sorted(new.difference(found, waiting))
        return found

    def _candidates(self, own: int, near: Iterable[int]) -> tuple[int, ...]:
        """Return pools of one kind: the own one, and first those of what is read and written."""
        pools = self._reassigner.pools
        alike = [one for one in range(len(pools)) if pools[one][0] == pools[own][0] and one != own]
        first = sorted(set(near).intersection(alike))
        order = [
            *self._random.permutation(first).tolist(),
            *self._random.permutation(alike).tolist(),
        ]
        return (own, *[*dict.fromkeys(order)][: CANDIDATES - 1])

    def _solved(
        self, region: Region, kind: Neighbourhood, seconds: float | None
    ) -> TimedSchedule | None:
        """Return what CP-SAT finds, if that saves anything."""
        model = JointModel(region)
        model.add_hint()
        seed = int(self._random.integers(2**31))
        solver = solver_of_one_window(seed, DETERMINISTIC_TIME, seconds)
        status = solver.solve(model.cp)
        factor = GROWTH if status == cp_model.OPTIMAL else 1 / GROWTH
        self._size[kind] = min(MOST_SIZE, max(LEAST_SIZE, self._size[kind] * factor))
        is_found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        if not is_found or solver.value(model.saved) == 0:
            return None
        return JointResult(model, solver).schedule()


def _neighbours(context: ScheduleContext) -> list[list[TaskIdx]]:
    """Return for each task those whose results it reads, and those that read its own."""
    problem = context.problem
    found: list[set[TaskIdx]] = [set() for _ in problem.tasks]
    writers = problem.writers()
    for task in problem.tasks:
        for what in task.reads:
            writer = writers[problem.slices[what].buffer]
            if writer is not None:
                found[task.index].add(writer)
                found[writer].add(task.index)
    return [sorted(some) for some in found]
