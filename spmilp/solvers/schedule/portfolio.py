"""All rules of the list scheduler, tried in turn; their schedules, made once for all solvers.

And a quick evaluation of problems that differ in their tiles, by a few of the rules.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from spmilp.bounds.best import Bound
from spmilp.errors import Shortage
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.schedule.assignments import ASSIGNMENTS, earliest_finish
from spmilp.solvers.schedule.kernels.extract import Scorer, columns_of, plan_of
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns
from spmilp.solvers.schedule.kernels.records import NEVER, Ints, Shares
from spmilp.solvers.schedule.kernels.run import Runner
from spmilp.solvers.schedule.kernels.schedule_state import ScheduleState, Stop, Weights
from spmilp.solvers.schedule.orders import (
    banded_chains,
    banded_operators,
    critical_path,
    depth_first,
    fused_bands,
    layer_by_layer,
    operand_stationary,
    round_robin,
)
from spmilp.units import Cycles


def _whatever_cores(rule: Callable[[Problem], Ints]) -> Callable[[Problem, Ints], Ints]:
    return lambda problem, cores: rule(problem)


ORDERS: dict[str, Callable[[Problem, Ints], Ints]] = {
    "round_robin": round_robin,
    "fused_bands": fused_bands,
    "operand_stationary": _whatever_cores(operand_stationary),
    "critical_path": _whatever_cores(critical_path),
    "layer_by_layer": _whatever_cores(layer_by_layer),
    "depth_first": _whatever_cores(depth_first),
}

BANDS_RULES = (("across_bands", "fused_bands"), ("locality", "fused_bands"))
"""Rules with fused bands. They equal those without where no operators are cut into bands."""

SPARING, SPARING_BANDS = "sparing", "sparing_bands"
SPARING_ORDERS = {SPARING: "round_robin", SPARING_BANDS: "fused_bands"}
"""Orders under other names, with weights by which bytes of DRAM are dear: cores rather wait for
what others load, and results rather stay. On layers of language models it takes up to a fifth less.
"""

CHAINS_RULES = (("locality", SPARING_BANDS), ("locality", "fused_bands"))
"""Rules for problems in which results are added up block by block as they are made."""

FIRST_RULES = (
    ("locality", "round_robin"),
    BANDS_RULES[0],
    ("contiguous", "fused_bands"),
    ("earliest_finish", "critical_path"),
    ("rotating_contiguous", "critical_path"),
    ("earliest_finish", "depth_first"),
)
"""Assignments and orders to begin with: large problems have time for no more.

On the problems of the benchmark suite ``networks`` the first is 14 % worse than the best of all 24
rules without fused bands, in geometric mean, and the best of the four here without them 1.4 %; no
other one and no other four did better. Fused bands differ from ``round_robin`` only where memory is
tight.
"""

EVALUATION_RULES = (
    FIRST_RULES[0],
    ("locality", SPARING),
    *FIRST_RULES[1:5],
    ("earliest_finish", "fused_bands"),
)
"""On the same problems the best of those without fused bands is 2.4 % worse than the best of all;
no other three did better. The last one is 23 % better than the others on SqueezeNet for Cell."""


def advances_of(operators: Ints, state: ScheduleState) -> Ints:
    """Return the cycles by which each operator advances a schedule.

    They are those from the end of the operator that ends before it to its own end: the time that it
    takes and that no other operator hides.

    Parameters
    ----------
    operators
        Of each task, as a number.
    """
    last = np.zeros(int(operators.max(initial=-1)) + 1, operators.dtype)
    np.maximum.at(last, operators, state.tasks["end"])
    in_order = np.argsort(last, kind="stable")
    advances = np.empty_like(last)
    advances[in_order] = np.diff(last[in_order], prepend=0)
    return advances


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
"""Tasks that all trials together schedule, about; at least four trials are run."""

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

    First every assignment with every order, the first of them also without multicasts, where
    engines can: those plans are longer, but some become shorter in the end. Then other weights with
    the best three of all. A trial with the same order, cores and settings as
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
        self._scores[trial] = self._score(state)

        def again(shares: Shares | None) -> ScheduleState | None:
            stop, state = self._runner.run(order, cores, weights, multicasts=casts, shares=shares)
            return state if stop is Stop.DONE else None

        return Found(self._scores[trial], trial, order, state, again, self._shares)


MOST_KEPT = 20
"""Schedules whose tables are kept, the best ones; fewer of large problems."""

ACTIVITIES_KEPT = 400_000
"""Activities of all schedules whose tables are kept, about: few schedules of a large problem."""


class Schedules:
    """What the rules of the portfolio find, one after another.

    A trial is run when it is first asked for; later its schedule is returned again. Several threads
    may ask.

    Parameters
    ----------
    only
        Assignments and orders to be tried instead of the whole portfolio, each as it is known: with
        one memory for each transfer.
    shares
        Schedules with open addresses: the part of each memory that may be filled.
    """

    def __init__(
        self,
        problem: Problem,
        only: Sequence[tuple[str, str]] = (),
        shares: Shares | None = None,
    ) -> None:
        self._problem = problem
        self.runner = Runner(problem, multicasts=not only)
        self._portfolio = Portfolio(problem, self.runner, only, shares=shares)
        self._trials = iter(self._portfolio)
        self._made: list[Found | None] = []
        self._lock = Lock()
        self._plans: dict[Found, Plan] = {}
        self._newest: Found | None = None
        self.kept: list[Found] = []

    @classmethod
    def of(cls, context: SearchContext) -> "Schedules":
        """Return the schedules that all solvers of one problem share."""
        return context.shared(_schedules)

    @property
    def reason(self) -> str:
        """Why the last trial that failed found no schedule."""
        return self._portfolio.reason

    @property
    def shortage(self) -> Shortage | None:
        """The same as data, where it was for want of room."""
        return self._portfolio.shortage

    def __iter__(self) -> Iterator[Found | None]:
        """Yield what each trial found, from the first one on; ``None`` for no schedule."""
        position = 0
        while self._has(position):
            yield self._made[position]
            position += 1

    def plan(self, found: Found, bound: Bound) -> Plan:
        """Return a schedule as :func:`plan_from` does; the best one's plan is made only once."""
        plan = self._plans.get(found)
        if plan is None or plan.claim.bound != bound.value:
            plan = plan_from(self._problem, found, bound, "list")
            if found in self.kept[:1]:
                self._plans = {found: plan}
        return plan

    def _has(self, position: int) -> bool:
        """Say whether there is a trial at a position; run it if it was not run before."""
        with self._lock:
            if position == len(self._made):
                for found in self._trials:
                    self._made.append(found)
                    if found is not None:
                        self._keep(found)
                    break
            return position < len(self._made)

    def _keep(self, found: Found) -> None:
        """Keep the tables of the best schedule of each rule; of two that score the same, of one.

        Those of the newest one are kept until there is another.
        """
        before = [self._newest, *self.kept]
        self._newest = found
        if self._is_worth_keeping(found):
            others = [one for one in self.kept if not one.trial.is_like(found.trial)]
            self.kept = sorted([*others, found], key=lambda one: one.score)
            activities = found.state.tasks.size + len(found.state.made_transfers())
            del self.kept[max(2, min(MOST_KEPT, ACTIVITIES_KEPT // activities)) :]
        for one in before:
            if one is not None and one not in self.kept:
                one.release()

    def _is_worth_keeping(self, found: Found) -> bool:
        if any(found.score == other.score for other in self.kept):
            return False
        alike = (one for one in self.kept if one.trial.is_like(found.trial))
        return all(found.score < one.score for one in alike)


def plan_from(
    problem: Problem, found: Found, bound: Bound, solver: str, columns: PlanColumns | None = None
) -> Plan:
    """Return a schedule as a plan that says by which rules it was made.

    Parameters
    ----------
    columns
        What was made of it, in place of the schedule itself.

    Raises
    ------
    DoesNotFitError
        If a bounded DRAM is too small for the tensors and what is spilled to it.
    """
    trial = found.trial
    settings = (("assignment", trial.assignment), ("order", trial.order))
    weights = ((name, str(value)) for name, value in trial.weights._asdict().items())
    alone = () if trial.multicasts else (("multicasts", "no"),)
    if columns is None:
        columns = columns_of(problem, found.state)
    return plan_of(problem, columns, bound, solver, (*settings, *weights, *alone))


def _schedules(context: SearchContext) -> Schedules:
    return Schedules(context.problem)


Rule = tuple[str, str]
"""An assignment and an order."""


def least_value(problem: Problem) -> int | None:
    """Return the least value of the first quantity in the schedules by which tiles are evaluated.

    ``None`` without a schedule.
    """
    return min((found.score[0] for found in schedules_by(problem)), default=None)


def schedules_by(
    problem: Problem,
    rules: Sequence[Rule] = EVALUATION_RULES,
    latest: Cycles = NEVER,
    seconds: float | None = None,
    shares: Shares | None = None,
) -> Iterator[Found]:
    """Yield what some of the rules find, one after another.

    Parameters
    ----------
    latest
        A schedule that is sure to take more cycles is given up, and no other is made.
    seconds
        The same for one that takes longer to make; ``None`` for no limit.
    shares
        Schedules with open addresses: the part of each memory that may be filled.
    """
    portfolio = Portfolio(problem, Runner(problem), rules, latest, seconds, shares)
    for found in portfolio:
        if found is not None:
            yield found
        elif portfolio.was_late:
            return


def promising_schedules(
    problem: Problem,
    rules: Sequence[Rule],
    latest: Cycles,
    seconds: float | None = None,
    shares: Shares | None = None,
) -> Iterator[Found]:
    """Yield what :func:`schedules_by` does; where there are bands or chains, by their rules first.

    What these and others are worth for other tilings says nothing of them there, and either are
    asked though the schedules of the others are given up.
    """
    if banded_operators(problem):
        first = CHAINS_RULES if banded_chains(problem) else BANDS_RULES
        yield from schedules_by(problem, first, latest, seconds, shares)
        rules = [rule for rule in rules if rule not in BANDS_RULES]
    if rules:
        yield from schedules_by(problem, rules, latest, seconds, shares)
