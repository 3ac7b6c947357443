"""All rules of the list scheduler, tried in turn; their schedules, made once for all solvers.

And a quick evaluation of problems that differ in their tiles, by a few of the rules.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from spmilp.bounds.best import Bound
from spmilp.errors import DoesNotFitError, Shortage
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Pace, Step
from spmilp.solvers.common.context import SearchContext, reads_of
from spmilp.solvers.schedule.assignments import ASSIGNMENTS, earliest_finish
from spmilp.solvers.schedule.kernels.extract import Scorer, can_be_open, columns_of, plan_of
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns
from spmilp.solvers.schedule.kernels.records import NEVER, Ints
from spmilp.solvers.schedule.kernels.run import Runner, shortage_of, why_it_stopped
from spmilp.solvers.schedule.kernels.schedule_state import Stop, Weights
from spmilp.solvers.schedule.orders import (
    critical_path,
    depth_first,
    fused_bands,
    layer_by_layer,
    round_robin,
    tight_operators,
)
from spmilp.units import Cycles

Rule: TypeAlias = tuple[str, str]
"""An assignment and an order."""


def _whatever_cores(rule: Callable[[Problem], Ints]) -> Callable[[Problem, Ints], Ints]:
    return lambda problem, cores: rule(problem)


ORDERS: dict[str, Callable[[Problem, Ints], Ints]] = {
    "round_robin": round_robin,
    "fused_bands": fused_bands,
    "critical_path": _whatever_cores(critical_path),
    "layer_by_layer": _whatever_cores(layer_by_layer),
    "depth_first": _whatever_cores(depth_first),
}

BANDS_RULES = (("round_robin", "fused_bands"), ("earliest_finish", "fused_bands"))
"""Rules with fused bands, which differ from ``round_robin`` only where memory is tight. With tiles
that are cut into bands other rules take up to 32 % longer."""

SPARING = "sparing"
"""The order ``round_robin`` with weights by which bytes of DRAM are dear: cores rather wait for
what others load, and results rather stay. On layers of language models it takes up to a fifth less.
"""

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
other one and no other four did better.
"""

OF_STREAMS = (
    ("balanced", "round_robin"),
    ("in_8_stages", "round_robin"),
    ("in_16_stages", "critical_path"),
    ("balanced", "critical_path"),
    ("longest_first", "round_robin"),
    ("in_4_stages", "round_robin"),
)
"""For periods, not for makespans. On ``tiny_lstm`` and ``tiny_gru`` on ``mesh4x4`` those with
stages have periods of 1,023 and 1,636 where ``balanced`` has 1,680 and 2,967."""

EVALUATION_RULES = (FIRST_RULES[0], ("locality", SPARING), *FIRST_RULES[1:5], BANDS_RULES[1])
"""On the same problems the best of those without fused bands is 2.4 % worse than the best of all;
no other three did better."""


def advances_of(operators: Ints, columns: PlanColumns) -> Ints:
    """Return the cycles by which each operator advances a schedule.

    They are those from the end of the operator that ends before it to its own end: the time that it
    takes and that no other operator hides. ``operators`` has a number for that of each task.
    """
    last = np.zeros(int(operators.max(initial=-1)) + 1, operators.dtype)
    np.maximum.at(last, operators, columns.end[: operators.size])
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

FEWER_CORES = (2, 4)
"""Parts of the cores that are left where the best rules are tried with fewer, besides all but one
core and one. Where all cores load the same through a slow port fewer may be quicker."""

MANY_MEMORIES = 512
"""Where cores stay open, the routes between all memories must be known, which takes long: on larger
machines those rules come last."""

MOST_KEPT = 20
"""Schedules that are kept, the best ones."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting of the scheduler; ``cores`` for the first so many along the chip alone."""

    assignment: str
    order: str
    weights: Weights
    multicasts: bool = True
    cores: int | None = None

    @property
    def rule(self) -> Rule:
        """The assignment and the order."""
        return self.assignment, self.order

    def __str__(self) -> str:
        return f"{self.assignment}/{self.order}"


@dataclass(frozen=True, eq=False)
class Found:
    """A schedule, and its quantities in the problem's order.

    Tasks were placed in ``order``. ``columns`` are what it decides; all bytes fit at all times. If
    it ``has_addresses``, it also says where they are, but for what is in DRAM.
    """

    score: tuple[int, ...]
    trial: Trial
    order: Ints
    columns: PlanColumns
    runner: Runner
    has_addresses: bool = False

    @cached_property
    def with_addresses(self) -> "Found":
        """The same with addresses; another one by the same trial where none are found for it.

        Raises a ``DoesNotFitError`` if none were found.
        """
        if self.has_addresses:
            return self
        runner, trial = self.runner, self.trial
        columns = runner.with_addresses(
            self.order, self.columns, trial.weights, multicasts=trial.multicasts
        )
        score = Scorer(runner.problem)(columns, has_addresses=True)
        return replace(self, columns=columns, score=score, has_addresses=True)

    def within(self, share: float) -> "Found | None":
        """Return the open schedule of the same trial that fills a share of each scratchpad at most.

        ``None`` where some task finds no room.
        """
        runner, trial = self.runner, self.trial
        stop, state = runner.run(
            self.order,
            self.columns.core,
            trial.weights,
            multicasts=trial.multicasts,
            is_open=True,
            share=share,
        )
        if stop is not Stop.DONE:
            return None
        columns = columns_of(runner.problem, state)
        score = Scorer(runner.problem)(columns, has_addresses=False)
        return replace(self, columns=columns, score=score)


class Schedules:
    """What the rules of the portfolio find for a problem, one after another.

    First every assignment with every order, the first of them also without multicasts, where
    engines can: those plans are longer, but some become shorter in the end. Then other weights with
    the best three of all, and fewer cores with the best three then. A trial with the same order,
    cores and settings as another is left out. The number of trials depends on the number of tasks.
    A trial is run when it is first asked for; later its schedule is returned again.

    Parameters
    ----------
    only
        Assignments and orders to be tried instead, nothing else.
    latest
        A trial that is sure to take more cycles is given up.
    seconds
        A trial that takes longer to make is given up; ``None`` for no limit.
    multicasts
        Whether a transfer may fill several memories, where engines can.
    pace
        Counts the trials that are run.
    share
        Of each scratchpad, as far as addresses are open, that schedules fill at most.

    Attributes
    ----------
    kept
        The best schedule of each rule, the best one first.
    reason
        Why the last trial that failed found no schedule.
    shortage
        The same as data, where it was for want of room.
    was_late
        Whether it was given up because it took too many cycles, or too long.
    """

    def __init__(
        self,
        problem: Problem,
        only: Sequence[Rule] = (),
        latest: Cycles = NEVER,
        seconds: float | None = None,
        *,
        multicasts: bool = True,
        pace: Pace | None = None,
        share: float = 1.0,
    ) -> None:
        self._problem, self._share = problem, share
        self._pace = pace or Pace()
        self.runner = Runner(problem, multicasts=multicasts)
        self._only, self._latest, self._seconds = only, latest, seconds
        self._score = Scorer(problem)
        self._is_open = can_be_open(problem)
        self._assignments: dict[tuple[str, int | None], Ints] = {}
        self._orders: dict[tuple[Rule, int | None], Ints] = {}
        self._tried: set[tuple[bytes, bytes, Weights, bool]] = set()
        self._made: list[Found | None] = []
        self._trials = self._run_all()
        self.kept: list[Found] = []
        self.reason = "no trial was made"
        self.shortage: Shortage | None = None
        self.was_late = False

    @classmethod
    def of(cls, context: SearchContext) -> "Schedules":
        """Return the schedules that all solvers of one problem share."""
        return context.shared(_schedules)

    def __iter__(self) -> Iterator[Found | None]:
        """Yield what each trial found, from the first one on; ``None`` for no schedule."""
        yield from self._made
        for found in self._trials:
            self._made.append(found)
            yield found

    def _run_all(self) -> Iterator[Found | None]:
        budget = max(4, MOST_TASKS_TRIED // max(1, len(self._problem.tasks)))
        for trial in self._settings():
            if self._is_new(trial):
                yield self.schedule(trial, *self._decided(trial), self._latest)
                budget -= 1
            if budget == 0:
                return

    def _settings(self) -> Iterator[Trial]:
        usual = FIRST_WEIGHTS[self._problem.objective.first]
        sparing = SPARING_WEIGHTS[self._problem.objective.first]
        for assignment, order in self._only or self._rules():
            first = Trial(assignment, order, sparing if order == SPARING else usual)
            yield first
            is_first = not self._only and (assignment, order) in FIRST_RULES
            # Without cores there is nobody yet for whom a transfer could do more.
            is_open = ASSIGNMENTS[assignment] is earliest_finish
            if is_first and self.runner.can_multicast and not is_open:
                yield replace(first, multicasts=False)
        if not self._only:
            for found in self._best_three():
                for weights in OTHER_WEIGHTS:
                    yield replace(found.trial, weights=weights)
            for found in self._best_three():
                for cores in fewer_cores(len(self._problem.machine.cores)):
                    yield replace(found.trial, cores=cores)

    def _best_three(self) -> list[Found]:
        return sorted(filter(None, self._made), key=lambda one: one.score)[:3]

    def _rules(self) -> list[Rule]:
        """Return every assignment with every order, in the order in which they are tried."""
        for_streams = {assignment for assignment, _ in OF_STREAMS}
        usual = [name for name in ASSIGNMENTS if name not in for_streams]
        by_order = ((assignment, order) for order in ORDERS for assignment in usual)
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
        chosen, rule = (trial.assignment, trial.cores), (trial.rule, trial.cores)
        if chosen not in self._assignments:
            self._assignments[chosen] = ASSIGNMENTS[trial.assignment](self._problem, trial.cores)
        cores = self._assignments[chosen]
        if rule not in self._orders:
            order = ORDERS["round_robin" if trial.order == SPARING else trial.order]
            self._orders[rule] = order(self._problem, cores)
        return self._orders[rule], cores

    def schedule(
        self, trial: Trial, order: Ints, cores: Ints, latest: Cycles = NEVER
    ) -> Found | None:
        """Return the schedule of an order and cores, which is kept if it is good; or ``None``.

        It is given up if it is sure to take more cycles than ``latest``.
        """
        stop, state = self.runner.run(
            order,
            cores,
            trial.weights,
            latest,
            multicasts=trial.multicasts,
            seconds=self._seconds,
            is_open=self._is_open,
            share=self._share,
        )
        self._pace.count(Step.SCHEDULE, reads_of(self._problem))
        self.was_late = stop is Stop.TOO_LATE
        if self.was_late:
            return None
        if stop is not Stop.DONE:
            self.reason = why_it_stopped(self._problem, stop, state)
            self.shortage = shortage_of(self._problem, stop, state)
            return None
        columns = columns_of(self._problem, state)
        score = self._score(columns, has_addresses=not self._is_open)
        found = Found(score, trial, order, columns, self.runner, has_addresses=not self._is_open)
        self._keep(found)
        return found

    def _keep(self, found: Found) -> None:
        """Keep the best schedule of each rule; of two that score the same, one."""

        def key(one: Found) -> tuple[Rule, bool, int | None]:
            return one.trial.rule, one.trial.multicasts, one.trial.cores

        alike = [one for one in self.kept if key(one) == key(found)]
        if all(found.score != one.score for one in self.kept) and all(
            found.score < one.score for one in alike
        ):
            others = [one for one in self.kept if one not in alike]
            self.kept = sorted([*others, found], key=lambda one: one.score)[:MOST_KEPT]

    def best_plan(
        self, bound: Bound, solver: str, known: Found | None, is_over: Callable[[], bool]
    ) -> Plan | None:
        """Return the best plan of the kept schedules; ``None`` where none gets addresses.

        Addresses may cost cycles: where none are found, tasks are placed anew with them. So
        schedules get them in order, until the next one is no better even without, or time is over.
        ``known`` is a schedule that has addresses, if there is one.
        """
        best: Found | None = None
        plan: Plan | None = None
        for found in (*filter(None, [known]), *self.kept):
            if best is not None and (best.score <= found.score or is_over()):
                break
            try:
                made = plan_from(self._problem, found, bound, solver)
            except DoesNotFitError as error:
                # Others may need less of a memory, or of a DRAM to which they spill.
                self.reason = str(error)
                continue
            if best is None or found.with_addresses.score < best.score:
                best, plan = found.with_addresses, made
        return plan


def plan_from(
    problem: Problem, found: Found, bound: Bound, solver: str, columns: PlanColumns | None = None
) -> Plan:
    """Return a schedule as a plan that says by which rules it was made.

    ``columns`` are what was made of it, with addresses, in place of the schedule itself. Raises a
    ``DoesNotFitError`` if no addresses were found, or a bounded DRAM is too small for the tensors
    and what is spilled to it.
    """
    trial = found.trial
    settings = (("assignment", trial.assignment), ("order", trial.order))
    weights = ((name, str(value)) for name, value in trial.weights._asdict().items())
    alone = () if trial.multicasts else (("multicasts", "no"),)
    if trial.cores is not None:
        alone = (*alone, ("cores", str(trial.cores)))
    if columns is None:
        columns = found.with_addresses.columns
    return plan_of(problem, columns, bound, solver, (*settings, *weights, *alone))


def fewer_cores(cores: int) -> list[int]:
    """Return how many of so many cores a rule is tried with, the most first."""
    found = {cores - 1, 1, *(cores // part for part in FEWER_CORES)}
    return sorted(found - {0, cores}, reverse=True)


def _schedules(context: SearchContext) -> Schedules:
    return Schedules(context.problem, pace=context.clock.pace)


def schedules_by(
    problem: Problem,
    rules: Sequence[Rule] = EVALUATION_RULES,
    latest: Cycles = NEVER,
    seconds: float | None = None,
    pace: Pace | None = None,
    share: float = 1.0,
) -> Iterator[Found]:
    """Yield what some of the rules find, one after another.

    A schedule that is sure to take more cycles than ``latest``, or longer to make than so many
    ``seconds``, is given up, and no other is made. ``pace`` counts the trials that are run. Open
    addresses fill a ``share`` of each scratchpad at most.
    """
    schedules = Schedules(problem, rules, latest, seconds, pace=pace, share=share)
    for found in schedules:
        if found is not None:
            yield found
        elif schedules.was_late:
            return


def promising_schedules(
    problem: Problem,
    rules: Sequence[Rule],
    latest: Cycles,
    seconds: float | None = None,
    pace: Pace | None = None,
    share: float = 1.0,
) -> Iterator[Found]:
    """Yield what :func:`schedules_by` does; where results do not fit, by fused bands first.

    What these and others are worth for other tilings says nothing of them there, and either are
    asked though the schedules of the others are given up.
    """
    if tight_operators(problem).any():
        yield from schedules_by(problem, BANDS_RULES, latest, seconds, pace, share)
        rules = [rule for rule in rules if rule not in BANDS_RULES]
    yield from schedules_by(problem, rules, latest, seconds, pace, share)
