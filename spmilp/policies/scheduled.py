"""Policies that choose cores and an order of tasks; serial schedule generation does the rest.

Such policies do not take machines that stage through more than one memory, and tasks that find no
room beside what must stay (the reason names the task).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from spmilp.errors import SpmilpError
from spmilp.policies.one_after_another import NotTakenError
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.fit import least_bytes
from spmilp.solvers.schedule.assignments import Unit, in_shares, units_of_operators
from spmilp.solvers.schedule.kernels.extract import Scorer, columns_of, plan_of
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns
from spmilp.solvers.schedule.kernels.records import NEVER, NONE, Ints, numbers
from spmilp.solvers.schedule.kernels.run import Runner, why_it_stopped
from spmilp.solvers.schedule.kernels.schedule_state import Stop, Weights
from spmilp.solvers.schedule.orders import by_priority, operators_of
from spmilp.units import Bytes, CoreIdx, Cycles, TaskIdx

C = TypeVar("C")


class OnCore(NamedTuple):
    """A task on a core; -1 leaves the core open."""

    task: TaskIdx
    core: CoreIdx


class Layers:
    """The operators of a problem, as layers whose tiles may be spread over sets of cores.

    ``work`` has the cycles of each operator's tasks, each on the kind of core quickest for it.
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
            layer = int(operators[task.index])
            self._needs[layer] = max(self._needs[layer], least_bytes(problem, task))
            self.work[layer] += min(cycles for cycles in task.cycles if cycles is not None)
        for units in units_of_operators(problem):
            for unit in units:
                if unit.tasks:
                    self._units[int(operators[unit.tasks[0].index])].append(unit)

    def spread(
        self, layer: int, cores: Sequence[CoreIdx], begin: float = 0.0, end: float = 1.0
    ) -> list[OnCore]:
        """Return tasks with cores for the part ``[begin, end)`` of a layer's units.

        Each core gets a run of neighbouring units. In the order returned the cores take turns. If
        none of ``cores`` has room for the layer's tasks, all cores that have it are used.
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
        """Return all tasks in this order, as far as precedences allow it, and the core of each."""
        count = len(self._problem.tasks)
        rank, cores = [float(count)] * count, [NONE] * count
        for place, (task, core) in enumerate(tasks):
            rank[task], cores[task] = place, core
        return by_priority(self._problem, rank), numbers(cores)


class Schedules(Generic[C]):
    """Makes schedules of choices, and keeps the best one.

    ``policy`` is named by reports and by the plan; ``decided`` returns the order of the tasks and
    the core of each that a choice means. ``best`` are the quantities of the best schedule in the
    objective's order, less is better, ``None`` before the first; ``choice`` is what it was made
    from. ``tried`` counts those that were to be made; ``reason`` says why the last that failed did.
    """

    def __init__(
        self, context: SearchContext, policy: str, decided: Callable[[C], tuple[Ints, Ints]]
    ) -> None:
        self._context = context
        self._policy = policy
        self._decided = decided
        self._runner = Runner(context.problem, multicasts=False)
        self._score = Scorer(context.problem)
        self._by_makespan = context.problem.objective.first is Quantity.MAKESPAN
        self._found: PlanColumns | None = None
        self.reason = ""
        self.best: tuple[int, ...] | None = None
        self.choice: C | None = None
        self.tried = 0

    def make(self, choice: C, most: float | None = None) -> tuple[int, ...] | None:
        """Return the quantities of a choice's schedule; ``None`` where there is none.

        A schedule that is sure to have more than ``most`` of the first quantity is given up.

        Raises a ``NotTakenError`` if more than one memory lies between a core's memory and DRAM.
        """
        self.tried += 1
        order, cores = self._decided(choice)
        latest = int(most) if most is not None and self._by_makespan else NEVER
        try:
            stop, state = self._runner.run(order, cores, Weights(), latest)
        except SpmilpError as error:
            raise NotTakenError(str(error)) from error
        if stop is Stop.TOO_LATE:
            return None
        if stop is not Stop.DONE:
            self.reason = why_it_stopped(self._context.problem, stop, state)
            return None
        columns = columns_of(self._context.problem, state)
        score = self._score(columns, has_addresses=True)
        if self.best is None or score < self.best:
            self.best, self.choice, self._found = score, choice, columns
        return score

    @property
    def is_over(self) -> bool:
        """Whether there is a schedule, and it is good enough or the time is over."""
        context = self._context
        return self.best is not None and (
            context.clock.is_over() or context.is_enough(self.best[0], context.fast_bound.value)
        )

    def result(self, options: tuple[tuple[str, str], ...] = ()) -> SolverResult:
        """Return the best schedule as a plan, with what it says of how it was made."""
        context = self._context
        if self._found is None:
            return context.unknown(self.reason)
        bound = context.bound
        try:
            plan = plan_of(context.problem, self._found, bound, self._policy, options)
        except SpmilpError as error:
            raise NotTakenError(str(error)) from error
        context.report(context.values(plan)[0], bound.value, self._policy)
        return context.found(plan)
