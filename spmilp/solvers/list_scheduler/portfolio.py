"""Every rule of the list scheduler, tried in turn."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.assign import ASSIGNMENTS, wherever_it_ends_first
from spmilp.solvers.list_scheduler.board import Board, Stop, Weights
from spmilp.solvers.list_scheduler.mixture import Mixture, operators_of
from spmilp.solvers.list_scheduler.orders import ORDERS, by_priority
from spmilp.solvers.list_scheduler.records import Ints
from spmilp.solvers.list_scheduler.run import Runner
from spmilp.solvers.list_scheduler.score import Scorer

FIRST_WEIGHTS = {
    Quantity.MAKESPAN: Weights(dram=2.0),
    Quantity.DRAM_TRAFFIC: Weights(dram=1000.0, evict=4.0),
    Quantity.ENERGY: Weights(dram=1000.0, evict=4.0),
    Quantity.PEAK_SPM: Weights(dram=2.0),
}
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

FIRST_RULES = (
    ("near", "turns"),
    ("earliest", "path"),
    ("rotating", "path"),
    ("earliest", "depth"),
)
"""Assignments and orders to begin with: large problems have time for no more.

On the problems of the benchmark suite ``networks`` the first is 14 % worse than the best of all 24
for each, in geometric mean, and the best of the four 1.4 %; no other one and no other four did
better.
"""

SAME = {("earliest", "turns")}
"""Rules that do what others do: without cores nobody takes turns."""

MIXED_ORDERS = (
    ("turns",),
    ("turns", "stationary"),
    ("stationary",),
    ("path",),
    ("layers",),
    ("stationary", "layers"),
    ("depth",),
)
"""Orders whose schedules are mixed when all of their rules have been tried."""

MANY_MEMORIES = 512
"""Where cores stay open, the routes between all memories must be known, which takes long: on larger
machines those rules come last."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting of the scheduler."""

    assignment: str
    order: str
    weights: Weights

    def __str__(self) -> str:
        return f"{self.assignment}/{self.order}"


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A schedule and what it is worth, in the problem's order of quantities."""

    score: tuple[int, ...]
    trial: Trial
    order: Ints
    board: Board


class Portfolio:
    """Schedules a problem by the rules of a portfolio.

    First every assignment with every order, and mixtures of them, then other weights with the best
    three of all. The number of trials depends on the number of tasks.

    Parameters
    ----------
    runner
        For ``problem``.
    greedy
        The assignment and the order of the only trial; without it all are tried.
    """

    def __init__(
        self, problem: Problem, runner: Runner, greedy: tuple[str, str] | None = None
    ) -> None:
        self._problem = problem
        self._runner = runner
        self._score = Scorer(problem)
        self._greedy = greedy
        self._orders: dict[tuple[str, str], Ints] = {}
        self._assignments: dict[str, Ints] = {}
        self._mixtures: dict[tuple[str, ...], Mixture] = {}
        # A single rule is mixed with nothing.
        self._missing = {
            orders: set(product(ASSIGNMENTS, orders)) - SAME
            for orders in (MIXED_ORDERS if greedy is None else ())
        }
        self._scores: dict[Trial, tuple[int, ...]] = {}
        self.reason = "the time limit left no room for a first trial"
        """Why the last trial that failed found no schedule."""

    def __iter__(self) -> Iterator[Found | None]:
        """Run the trials one by one, and yield what each finds."""
        budget = max(4, MOST_TASKS_TRIED // max(1, len(self._problem.tasks)))
        for count, trial in enumerate(self._trials()):
            if count >= budget:
                return
            yield self._run(trial)

    def _trials(self) -> Iterator[Trial]:
        usual = FIRST_WEIGHTS[self._problem.objective.first]
        if self._greedy is not None:
            assignment, order = self._greedy
            yield Trial(assignment, order, usual)
            return
        for assignment, order in self._rules():
            yield Trial(assignment, order, usual)
            yield from self._mixed_after(assignment, order, usual)
        best = sorted(self._scores, key=lambda trial: (self._scores[trial], str(trial)))[:3]
        for trial in best:
            for weights in OTHER_WEIGHTS:
                yield Trial(trial.assignment, trial.order, weights)

    def _rules(self) -> list[tuple[str, str]]:
        """Return every assignment with every order, in the order in which they are tried."""
        by_order = ((assignment, order) for order in ORDERS for assignment in ASSIGNMENTS)
        rules = [rule for rule in dict.fromkeys([*FIRST_RULES, *by_order]) if rule not in SAME]
        if len(self._problem.machine.memories) > MANY_MEMORIES:
            rules.sort(key=lambda rule: ASSIGNMENTS[rule[0]] is wherever_it_ends_first)
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
                self._orders[name, f"mixed {name}"] = by_priority(
                    self._problem.predecessors(), mixture.position.tolist()
                )
                self._assignments[f"mixed {name}"] = mixture.cores
                yield Trial(f"mixed {name}", name, weights)

    @cached_property
    def _operators(self) -> Ints:
        return operators_of(self._problem)

    def _run(self, trial: Trial) -> Found | None:
        if trial.assignment not in self._assignments:
            self._assignments[trial.assignment] = ASSIGNMENTS[trial.assignment](self._problem)
        cores = self._assignments[trial.assignment]
        name = trial.order, trial.assignment
        if name not in self._orders:
            self._orders[name] = ORDERS[trial.order](self._problem, cores)
        order = self._orders[name]
        stop, board = self._runner.run(order, cores, trial.weights)
        if stop is not Stop.DONE:
            self.reason = self._runner.why_it_stopped(stop, board)
            return None
        for orders, missing in self._missing.items():
            if trial.order in orders and missing:
                if orders not in self._mixtures:
                    self._mixtures[orders] = Mixture(self._operators)
                self._mixtures[orders].add(order, cores, board)
        self._scores[trial] = self._score(board)
        return Found(self._scores[trial], trial, order, board)
