"""Every rule of the list scheduler, tried in turn."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.list_scheduler.assign import ASSIGNMENTS, wherever_it_ends_first
from spmilp.solvers.list_scheduler.board import Board, Stop, Weights
from spmilp.solvers.list_scheduler.mixture import Mixture
from spmilp.solvers.list_scheduler.orders import ORDERS
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
    ("near", "layers"),
    ("earliest", "layers"),
    ("dealt", "layers"),
    ("earliest", "depth"),
)
"""Assignments and orders to begin with: large problems have time for no more.

On 17 problems of 140 to 20,000 tasks the first was 6 % worse than the best of all 15 in geometric
mean, and the best of the four 0.2 %; no other one and no other four did better.
"""

MIXED_ORDERS = (
    ("layers",),
    ("stationary",),
    ("layers", "stationary"),
    ("depth",),
    ("path",),
)
"""Orders whose schedules are mixed."""

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

    First every assignment with every order, then for each order a mixture of its assignments, then
    other weights with the best three of all. The number of trials depends on the number of tasks.

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
        self._orders: dict[str, Ints] = {}
        self._assignments: dict[str, Ints] = {}
        self._mixtures = {orders: Mixture(problem) for orders in MIXED_ORDERS}
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
        rules = list(dict.fromkeys([*FIRST_RULES, *product(ASSIGNMENTS, ORDERS)]))
        if len(self._problem.machine.memories) > MANY_MEMORIES:
            rules.sort(key=lambda rule: ASSIGNMENTS[rule[0]] is wherever_it_ends_first)
        for assignment, order in rules:
            yield Trial(assignment, order, usual)
        for orders, mixture in self._mixtures.items():
            mixed = mixture.mixed()
            if mixed is not None:
                name = "+".join(orders)
                self._orders[name], self._assignments[f"mixed {name}"] = mixed
                yield Trial(f"mixed {name}", name, usual)
        best = sorted(self._scores, key=lambda trial: (self._scores[trial], str(trial)))[:3]
        for trial in best:
            for weights in OTHER_WEIGHTS:
                yield Trial(trial.assignment, trial.order, weights)

    def _run(self, trial: Trial) -> Found | None:
        if trial.order not in self._orders:
            self._orders[trial.order] = ORDERS[trial.order](self._problem)
        if trial.assignment not in self._assignments:
            self._assignments[trial.assignment] = ASSIGNMENTS[trial.assignment](self._problem)
        order, cores = self._orders[trial.order], self._assignments[trial.assignment]
        stop, board = self._runner.run(order, cores, trial.weights)
        if stop is not Stop.DONE:
            self.reason = self._runner.why_it_stopped(stop, board)
            return None
        for orders, mixture in self._mixtures.items():
            if trial.order in orders:
                mixture.add(order, cores, board)
        self._scores[trial] = self._score(board)
        return Found(self._scores[trial], trial, order, board)
