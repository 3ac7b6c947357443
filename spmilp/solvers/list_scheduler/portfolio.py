"""All rules of the list scheduler, tried in turn."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from spmilp.errors import Shortage
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NEVER, Ints, Shares
from spmilp.solvers.kernels.schedule_state import ScheduleState, Stop, Weights
from spmilp.solvers.kernels.serial.extract import Scorer
from spmilp.solvers.kernels.serial.run import Runner
from spmilp.solvers.list_scheduler.assignments import ASSIGNMENTS, earliest_finish
from spmilp.solvers.list_scheduler.orders import by_priority, operators_of
from spmilp.solvers.list_scheduler.rules import (
    FIRST_RULES,
    MIXED_ORDERS,
    ORDERS,
    SPARING_ORDERS,
    RuleMixture,
)
from spmilp.units import Cycles

FIRST_WEIGHTS = {
    Quantity.MAKESPAN: Weights(dram=2.0),
    Quantity.DRAM_TRAFFIC: Weights(dram=1000.0, evict=4.0),
    Quantity.ENERGY: Weights(dram=1000.0, evict=4.0),
    Quantity.PEAK_SPM: Weights(dram=2.0),
}
SPARING_WEIGHTS = FIRST_WEIGHTS | {Quantity.MAKESPAN: Weights(dram=8.0, evict=4.0)}
OTHER_WEIGHTS = (
    Weights(dram=0.5),
    Weights(dram=8.0),
    Weights(dram=2.0, evict=2.0),
    Weights(dram=2.0, evict=0.1),
    Weights(dram=2.0, early=0.3),
    Weights(dram=2.0, idle=0.2),
    Weights(dram=6.0, horizon=16.0),
)
MOST_TASKS_TRIED = 400_000

MANY_MEMORIES = 512
"""Where cores stay open, the routes between all memories must be known, which takes long: on larger
machines those rules come last."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting of the scheduler."""

    assignment: str
    order: str
    weights: Weights
    multicasts: bool = True

    @property
    def rule(self) -> tuple[str, str]:
        """The assignment and the order."""
        return self.assignment, self.order

    def is_like(self, other: "Trial") -> bool:
        """Say whether only the weights may differ."""
        return self.rule == other.rule and self.multicasts == other.multicasts

    def __str__(self) -> str:
        return f"{self.assignment}/{self.order}"


class Found:
    """A schedule, and its quantities in the problem's order.

    Its tables are large. Once released, they are made again when they are asked for.

    Parameters
    ----------
    order
        In which the tasks were placed.
    again
        Makes the same tables once more; or with open addresses, when it is given the part of each
        memory that may be filled, and ``None`` where there is no schedule then.
    shares
        With which it was made; ``None`` where it has addresses.
    """

    def __init__(
        self,
        score: tuple[int, ...],
        trial: Trial,
        order: Ints,
        state: ScheduleState,
        again: Callable[[Shares | None], ScheduleState | None],
        shares: Shares | None = None,
    ) -> None:
        self.score = score
        self.trial = trial
        self.order = order
        self._state: ScheduleState | None = state
        self._again = again
        self.shares = shares

    @property
    def state(self) -> ScheduleState:
        """The schedule's tables."""
        state = self._state
        if state is None:
            state = self._state = self._again(self.shares)
        if state is None:
            raise RuntimeError(f"{self.trial}: no schedule, where there was one")
        return state

    def filled(self, problem: Problem, shares: Shares | None) -> "Found | None":
        """Return what the same trial finds for other shares, or with addresses; ``None`` without a
        schedule."""
        state = self._again(shares)
        if state is None:
            return None
        return Found(Scorer(problem)(state), self.trial, self.order, state, self._again, shares)

    def release(self) -> None:
        """Let the tables go."""
        self._state = None


class Portfolio:
    """Schedules a problem by the rules of a portfolio.

    First every assignment with every order, and mixtures of them, the first of them also without
    multicasts, where engines can: those plans are longer, but some become shorter in the end. Then
    other weights with the best three of all. A trial with the same order, cores and settings as
    another is left out. The number of trials depends on the number of tasks.

    Parameters
    ----------
    runner
        For ``problem``.
    only
        Assignments and orders to be tried instead, nothing else.
    latest
        A trial that is sure to take more cycles is given up.
    seconds
        A trial that takes longer to make is given up; ``None`` for no limit.
    shares
        Schedules with open addresses: the part of each memory that may be filled.
    """

    def __init__(
        self,
        problem: Problem,
        runner: Runner,
        only: Sequence[tuple[str, str]] = (),
        latest: Cycles = NEVER,
        seconds: float | None = None,
        shares: Shares | None = None,
    ) -> None:
        self._problem = problem
        self._shares = shares
        self._runner = runner
        self._seconds = seconds
        self._score = Scorer(problem)
        self._only = only
        self._latest = latest
        self._orders: dict[tuple[str, str], Ints] = {}
        self._assignments: dict[str, Ints] = {}
        self._mixtures: dict[tuple[str, ...], RuleMixture] = {}
        self._missing = {
            orders: set(product(ASSIGNMENTS, orders)) for orders in (() if only else MIXED_ORDERS)
        }
        self._tried: set[tuple[bytes, bytes, Weights, bool]] = set()
        self._scores: dict[Trial, tuple[int, ...]] = {}
        self.reason = "no trial was made"
        """Why the last trial that failed found no schedule."""
        self.shortage: Shortage | None = None
        """The same as data, where it was for want of room."""
        self.was_late = False
        """Whether it was given up because it took too many cycles, or too long."""

    def __iter__(self) -> Iterator[Found | None]:
        """Run the trials one by one, and yield what each finds."""
        budget = max(4, MOST_TASKS_TRIED // max(1, len(self._problem.tasks)))
        for trial in self._trials():
            if self._is_new(trial):
                yield self._run(trial)
                budget -= 1
            if budget == 0:
                return

    def _trials(self) -> Iterator[Trial]:
        usual = FIRST_WEIGHTS[self._problem.objective.first]
        sparing = SPARING_WEIGHTS[self._problem.objective.first]
        for assignment, order in self._only or self._rules():
            first = Trial(assignment, order, sparing if order in SPARING_ORDERS else usual)
            yield first
            is_first = not self._only and (assignment, order) in FIRST_RULES
            # Without cores there is nobody yet for whom a transfer could do more.
            is_open = ASSIGNMENTS[assignment] is earliest_finish
            if is_first and self._runner.can_multicast and not is_open:
                yield replace(first, multicasts=False)
            yield from self._mixed_after(assignment, order, usual)
        if self._only:
            return
        best = sorted(self._scores, key=self._scores.__getitem__)[:3]
        for trial in best:
            for weights in OTHER_WEIGHTS:
                yield replace(trial, weights=weights)

    def _rules(self) -> list[tuple[str, str]]:
        """Return every assignment with every order, in the order in which they are tried."""
        by_order = ((assignment, order) for order in ORDERS for assignment in ASSIGNMENTS)
        rules = list(dict.fromkeys([*FIRST_RULES, *by_order]))
        if len(self._problem.machine.memories) > MANY_MEMORIES:
            rules.sort(key=lambda rule: ASSIGNMENTS[rule[0]] is earliest_finish)
        return rules

    def _mixed_after(self, assignment: str, order: str, weights: Weights) -> Iterator[Trial]:
        """Yield the mixtures for which this rule was the last one missing."""
        for orders, missing in self._missing.items():
            if (assignment, order) not in missing:
                continue
            missing.remove((assignment, order))
            mixture = self._mixtures.get(orders)
            if not missing and mixture is not None:
                name = "+".join(orders)
                self._orders[name, f"mixed {name}"] = by_priority(self._problem, mixture.position)
                self._assignments[f"mixed {name}"] = mixture.cores
                yield Trial(f"mixed {name}", name, weights)

    @cached_property
    def _operators(self) -> Ints:
        return operators_of(self._problem)

    def _is_new(self, trial: Trial) -> bool:
        """Say whether no other trial had the same order, cores and settings."""
        order, cores = self._decided(trial)
        known = len(self._tried)
        self._tried.add((order.tobytes(), cores.tobytes(), trial.weights, trial.multicasts))
        return len(self._tried) > known

    def _decided(self, trial: Trial) -> tuple[Ints, Ints]:
        """Return the order and the cores of a trial."""
        if trial.assignment not in self._assignments:
            self._assignments[trial.assignment] = ASSIGNMENTS[trial.assignment](self._problem)
        cores = self._assignments[trial.assignment]
        name = trial.order, trial.assignment
        if name not in self._orders:
            rule = SPARING_ORDERS.get(trial.order, trial.order)
            self._orders[name] = ORDERS[rule](self._problem, cores)
        return self._orders[name], cores

    def _run(self, trial: Trial) -> Found | None:
        order, cores = self._decided(trial)
        weights, casts = trial.weights, trial.multicasts
        stop, state = self._runner.run(
            order,
            cores,
            weights,
            self._latest,
            multicasts=casts,
            seconds=self._seconds,
            shares=self._shares,
        )
        if stop is not Stop.DONE:
            self.reason = self._runner.why_it_stopped(stop, state)
            self.shortage = self._runner.shortage(stop, state)
            self.was_late = stop is Stop.TOO_LATE
            return None
        for orders, missing in self._missing.items():
            if casts and trial.order in orders and missing:
                if orders not in self._mixtures:
                    self._mixtures[orders] = RuleMixture(self._operators)
                self._mixtures[orders].add(order, cores, state)
        self._scores[trial] = self._score(state)

        def again(shares: Shares | None) -> ScheduleState | None:
            stop, state = self._runner.run(order, cores, weights, multicasts=casts, shares=shares)
            return state if stop is Stop.DONE else None

        return Found(self._scores[trial], trial, order, state, again, self._shares)
