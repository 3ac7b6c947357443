"""The solver ``search``: the list scheduler, begun anew with its best order and cores perturbed.

What is searched is not a plan but what the list scheduler makes one from, an order of tasks and
their cores; so every step is a complete valid schedule. A step changes either at random and goes on
from what comes out unless it is more than a little worse than the best so far (record-to-record
travel: Dueck, Journal of Computational Physics 104, 1993).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import PinKind
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.schedule.kernels.records import (
    NEVER,
    NONE,
    Ints,
    Rows,
    numbered,
    rows_from_pairs,
)
from spmilp.solvers.schedule.kernels.schedule_state import Weights
from spmilp.solvers.schedule.kernels.tables import precedence, problem_tables
from spmilp.solvers.schedule.orders import by_priority, operators_of
from spmilp.solvers.schedule.portfolio import FIRST_WEIGHTS, Found, Schedules, Trial
from spmilp.solvers.schedule.solver import ScheduleSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartSettings:
    """How far restarts go, and for how long.

    The changes are those that gained most in a search that learned what each of 17 was worth, with
    loads prefetched besides. In 500 steps on eight instances of 22 to 72 tasks plans were 0.6 %
    longer than by that one, in the mean of three seeds; then the shares were chosen on two of them.

    Parameters
    ----------
    portfolio
        Share of a time limit for the list scheduler's portfolio: its first rules are almost as good
        as all of them.
    starts
        Schedules of the portfolio that restarts may take parts from.
    slack
        Part of the first quantity by which a step may be worse than the best so far.
    patience
        Steps without a better schedule after which the search goes back to the best.
    shares
        How often each of ``CHANGES`` is made.
    alone
        How often a unit changes rather than its operator.
    near_and_far
        Shares of the order by which tasks are shifted, about.
    noises
        Shares of the makespan by which starts are changed before tasks are placed in their order.
    tasks_placed, fewest, most
        Without a time limit there are so many steps that about so many tasks are placed in all.
    """

    portfolio: float = 0.3
    starts: int = 4
    slack: float = 0.01
    patience: int = 100
    shares: tuple[float, ...] = (0.3, 0.1, 0.45, 0.15)
    alone: float = 0.7
    near_and_far: tuple[float, ...] = (0.003, 0.03, 0.2)
    noises: tuple[float, ...] = (0.0, 0.002, 0.01)
    tasks_placed: int = 1_000_000
    fewest: int = 30
    most: int = 4_000


CHANGES = ("shift", "time", "cores", "another")
"""A shift in the order; the order of starts; other cores; operators as in another schedule."""

SETTINGS = RestartSettings()


class Perturbation:
    """Changes orders and cores of one problem at random.

    What belongs on one core, a unit, changes together: the partial sums of a tile, or one task.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        self._problem = problem
        self._rng = rng
        self._before, self._after = precedence(problem)
        self._operator_of = operators_of(problem)
        self._operators = _members(self._operator_of)
        self._unit_of = numbered(
            (task.tile.of, task.tile.box) if task.tile else task.index for task in problem.tasks
        )
        self._units = _members(self._unit_of)
        kinds = [core.kind for core in problem.machine.cores]
        self._able = problem_tables(problem).cycles[:, kinds] != NONE

    def of(self, now: Found, others: Sequence[Found]) -> tuple[Ints, Ints, str]:
        """Return another order and other cores, and in a word what was changed.

        A part of one of the ``others`` may be taken over.
        """
        keys, cores = _positions(now.order).astype(np.float64), now.columns.core.copy()
        # As Generator.choice draws it, which loses an interrupt that comes while it looks at p.
        shares = np.cumsum(SETTINGS.shares)
        drawn = np.searchsorted(shares / shares[-1], self._rng.random(), side="right")
        change = CHANGES[int(drawn)]
        if change == "cores":
            self._move(cores)
            can_run = self._able[np.arange(cores.size), cores]
            return now.order, np.where(can_run, cores, now.columns.core), change
        if change == "shift":
            self._shift(keys)
        elif change == "time":
            keys = now.columns.start[: now.order.size].astype(np.float64)
            noise = self._rng.choice(SETTINGS.noises) * keys.max(initial=0.0)
            keys += self._rng.normal(size=keys.size) * noise
        else:
            other = others[int(self._rng.integers(len(others)))]
            tasks = self._neighbouring_operators()
            cores[tasks] = other.columns.core[tasks]
            keys[tasks[np.argsort(_positions(other.order)[tasks])]] = np.sort(keys[tasks])
        return by_priority(self._problem, keys), cores, change

    def _shift(self, keys: NDArray[np.float64]) -> None:
        """Place a unit or an operator earlier or later, perhaps with all that it waits for."""
        rng, task = self._rng, self._task()
        tasks = self._unit(task) if rng.random() < SETTINGS.alone else self._operator(task)
        share = rng.choice(SETTINGS.near_and_far)
        keys[tasks] += rng.normal() * max(2.0, share * keys.size)
        waiting = tasks.tolist() if rng.random() < 0.5 else []
        while waiting:
            task = waiting.pop()
            for earlier in self._before.values(task):
                if keys[earlier] > keys[task]:
                    keys[earlier] = keys[task]
                    waiting.append(earlier)

    def _move(self, cores: Ints) -> None:
        """Run a unit on another core, perhaps near its data; or let cores of an operator change."""
        rng, task = self._rng, self._task()
        tasks = self._operator(task)
        if rng.random() < SETTINGS.alone:
            near = np.concatenate([self._before.row(task), self._after.row(task)])
            to_data = near.size > 0 and rng.random() < 0.4
            able = cores[near] if to_data else np.flatnonzero(self._able[task])
            cores[self._unit(task)] = rng.choice(able)
        elif rng.random() < 0.5:
            used = np.unique(cores[tasks])
            cores[tasks] = rng.permutation(used)[np.searchsorted(used, cores[tasks])]
        else:
            other = int(rng.choice(tasks))
            there, here = cores[other], cores[task]
            cores[self._unit(task)], cores[self._unit(other)] = there, here

    def _task(self) -> int:
        return int(self._rng.integers(self._unit_of.size))

    def _unit(self, task: int) -> Ints:
        return self._units.row(int(self._unit_of[task]))

    def _operator(self, task: int) -> Ints:
        return self._operators.row(int(self._operator_of[task]))

    def _neighbouring_operators(self) -> Ints:
        first = int(self._operator_of[self._task()])
        begin = self._operators.begin
        last = min(begin.size - 1, first + int(self._rng.integers(1, 4)))
        return self._operators.items[begin[first] : begin[last]]


def _members(group_of: Ints) -> Rows:
    """Return the tasks of each group."""
    return rows_from_pairs(group_of, np.arange(group_of.size), int(group_of.max(initial=-1)) + 1)


def _positions(order: Ints) -> Ints:
    position = np.empty_like(order)
    position[order] = np.arange(order.size)
    return position


class PerturbedRestarts(Solver):
    """Begins the list scheduler anew with perturbed orders and cores, from the best of before.

    It begins with all that the ``list`` solver tries, so it is never worse; but where that takes
    most of a time limit, it leaves the last trials out. A hint gives one more order to begin with.
    Without a time limit it makes so many ``steps``; ``None`` for as many as the number of tasks
    allows.
    """

    name = "search"
    keeps = frozenset(PinKind)
    settles = True

    def __init__(self, steps: int | None = None) -> None:
        self._steps = steps

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found."""
        if context.misfit:
            return context.infeasible(context.misfit)
        usual = max(SETTINGS.fewest, SETTINGS.tasks_placed // len(context.problem.tasks))
        steps = min(SETTINGS.most, usual) if self._steps is None else self._steps
        return _Search(context, steps).result(("seed", str(context.options.seed)))


class _Search(ScheduleSearch):
    def __init__(self, context: SearchContext, steps: int) -> None:
        name, schedules = PerturbedRestarts.name, Schedules.of(context)
        super().__init__(context, schedules, name, context.fast_bound)
        self._steps = steps
        self._by_makespan = context.problem.objective.first is Quantity.MAKESPAN

    def _run(self) -> None:
        starts = self._starts()
        if not starts or self._is_over():
            return
        rng = np.random.default_rng(self._context.options.seed)
        perturbation = Perturbation(self._context.problem, rng)
        now = record = starts[0]
        since = step = 0
        while not self._is_over() and (self._context.clock.is_limited or step < self._steps):
            step += 1
            since += 1
            order, cores, what = perturbation.of(now, starts)
            most = record.score[0] + int(record.score[0] * SETTINGS.slack)
            found = self._offered(order, cores, now.trial.weights, what, most)
            if found is not None and found.score[0] <= most:
                now = found
                if found.score < record.score:
                    record, since = found, 0
            if since >= SETTINGS.patience:
                now, since = record, 0
                self._report(record)

    def _starts(self) -> list[Found]:
        """Return schedules to begin with, the best first: of the portfolio, and of the hint."""
        context = self._context
        hinted = None if context.hint is None else self._from_hint(context.hint)
        for number, found in enumerate(self._schedules):
            self._take(found)
            if number == 0:
                self._bound = context.bound
            has_schedule = self._schedules.kept and context.clock.is_over(SETTINGS.portfolio)
            if self._is_over() or has_schedule:
                break
        starts = self._schedules.kept[: SETTINGS.starts]
        if hinted is not None:
            starts = [*starts, hinted]
        return sorted(starts, key=lambda one: one.score)

    def _from_hint(self, plan: Plan) -> Found | None:
        """Schedule with the cores of a plan, in the order in which its tasks start."""
        problem = self._context.problem
        starts, cores = np.zeros((2, len(problem.tasks)), np.int64)
        for placement in plan.placements:
            starts[placement.task], cores[placement.task] = placement.start, placement.core
        weights = FIRST_WEIGHTS[problem.objective.first]
        return self._offered(by_priority(problem, starts), cores, weights, "hint")

    def _offered(
        self, order: Ints, cores: Ints, weights: Weights, what: str, most: int = NEVER
    ) -> Found | None:
        """Return a schedule; ``None`` without one, or if its makespan is to be less and is more."""
        trial = Trial("search", what, weights)
        latest = most if self._by_makespan else NEVER
        found = self._schedules.schedule(trial, order, cores, latest)
        self._take(found)
        return found
