"""Policies that decide cores and an order of tasks: the rest is serial schedule generation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spmilp.errors import SpmilpError
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.fit import least_sizes
from spmilp.solvers.schedule.assignments import Unit, in_shares, units_of_operators
from spmilp.solvers.schedule.kernels.extract import Scorer, columns_of, plan_of
from spmilp.solvers.schedule.kernels.records import NEVER, NONE, Ints, numbers
from spmilp.solvers.schedule.kernels.run import Runner
from spmilp.solvers.schedule.kernels.schedule_state import ScheduleState, Stop, Weights
from spmilp.solvers.schedule.orders import by_priority, operators_of
from spmilp.units import Bytes, CoreIdx, Cycles, TaskIdx


class OnCore(NamedTuple):
    """A task on a core; -1 leaves the core open."""

    task: TaskIdx
    core: CoreIdx


class Layers:
    """The operators of a problem, as layers whose tiles may be spread over sets of cores.

    Attributes
    ----------
    work
        Cycles of each operator's tasks, each on the kind of core that is quickest for it.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        machine, operators = problem.machine, operators_of(problem)
        self._kind_of = [core.kind for core in machine.cores]
        self._room = [machine.memories[core.memory].usable for core in machine.cores]
        self._units: list[list[Unit]] = [[] for _ in range(int(operators.max(initial=-1)) + 1)]
        self.work: list[Cycles] = [0] * len(self._units)
        self._needs: list[Bytes] = [0] * len(self._units)
        for task in problem.tasks:
            sizes, saved = least_sizes(problem, task)
            layer = int(operators[task.index])
            self._needs[layer] = max(self._needs[layer], sum(sizes) - sum(saved))
            quickest = min(cycles for cycles in task.cycles if cycles is not None)
            self.work[layer] += quickest
        for units in units_of_operators(problem):
            for unit in units:
                if unit.tasks:
                    self._units[int(operators[unit.tasks[0].index])].append(unit)

    def spread(
        self, layer: int, cores: Sequence[CoreIdx], begin: float = 0.0, end: float = 1.0
    ) -> list[OnCore]:
        """Return the tasks of a part of a layer, its neighbouring tiles in runs on the cores.

        The cores take turns. Where none of them can run it in its memory, all that can do.
        """
        units = self._units[layer]
        units = units[round(begin * len(units)) : round(end * len(units))]
        if not units:
            return []
        every = range(len(self._kind_of))
        able = self._able(layer, units[0], cores) or self._able(layer, units[0], every)
        chosen = in_shares(self._problem, units, able or every)
        turns = Counter[int]()
        rounds = []
        for unit, core in zip(units, chosen, strict=True):
            turns[core] += 1
            rounds += [(turns[core], core, task.index) for task in unit.tasks]
        return [OnCore(task, core) for _, core, task in sorted(rounds)]

    def _able(self, layer: int, unit: Unit, cores: Sequence[CoreIdx]) -> list[CoreIdx]:
        """Return the cores of a kind that can run a unit, and with room for what it needs."""
        can_run = (core for core in cores if unit.cycles[self._kind_of[core]] is not None)
        room, needed = self._room, self._needs[layer]
        return [core for core in can_run if (size := room[core]) is None or needed <= size]

    def in_order(self, tasks: Sequence[OnCore]) -> tuple[Ints, Ints]:
        """Return all tasks in this order, as far as they may stand so, and the core of each."""
        count = len(self._problem.tasks)
        rank, cores = [float(count)] * count, [NONE] * count
        for place, (task, core) in enumerate(tasks):
            rank[task], cores[task] = place, core
        return by_priority(self._problem, rank), numbers(cores)


@dataclass(frozen=True, slots=True, eq=False)
class Scheduled:
    """A schedule and its quantities in the problem's order; less is better."""

    score: tuple[int, ...]
    state: ScheduleState


class Schedules:
    """Makes the schedules of orders and cores."""

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        self._runner = Runner(context.problem, multicasts=False)
        self._score = Scorer(context.problem)
        self._by_makespan = context.problem.objective.first is Quantity.MAKESPAN
        self.reason = ""

    def make(self, order: Ints, cores: Ints, most: float | None = None) -> Scheduled | None:
        """Return a schedule; ``None`` where there is none, and ``reason`` says why.

        Parameters
        ----------
        most
            Of the first quantity; a schedule that is sure to exceed it is given up.

        Raises
        ------
        SpmilpError
            If more than one memory lies between a core's memory and DRAM.
        """
        latest = int(most) if most is not None and self._by_makespan else NEVER
        stop, state = self._runner.run(order, cores, Weights(), latest)
        if stop is Stop.TOO_LATE:
            return None
        if stop is not Stop.DONE:
            self.reason = self._runner.why_it_stopped(stop, state)
            return None
        return Scheduled(self._score(state), state)

    def result(
        self, made: Scheduled | None, policy: str, options: tuple[tuple[str, str], ...] = ()
    ) -> SolverResult:
        """Return a schedule as a plan, with what it says of how it was made."""
        context = self._context
        if made is None:
            return context.unknown(self.reason)
        try:
            bound = context.bound
            columns = columns_of(context.problem, made.state)
            plan = plan_of(context.problem, columns, bound, policy, options)
        except SpmilpError as error:
            return context.unknown(str(error))
        context.report(context.values(plan)[0], bound.value, policy)
        return context.found(plan)
