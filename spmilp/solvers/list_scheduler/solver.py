"""The list scheduler as a solver: a portfolio of orders and assignments."""

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic

from spmilp.errors import DoesNotFitError
from spmilp.machine.routes import Routes
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, Result, SolveOptions, SolveStatus
from spmilp.solvers.bounds.best import best_bound
from spmilp.solvers.bounds.bound import Bound
from spmilp.solvers.list_scheduler.assign import ASSIGNMENTS
from spmilp.solvers.list_scheduler.board import Board, Stop, Weights
from spmilp.solvers.list_scheduler.extract import extract
from spmilp.solvers.list_scheduler.fit import why_it_cannot_fit
from spmilp.solvers.list_scheduler.orders import ORDERS
from spmilp.solvers.list_scheduler.records import Ints
from spmilp.solvers.list_scheduler.run import Runner
from spmilp.solvers.list_scheduler.score import score

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


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting of the scheduler."""

    assignment: str
    order: str
    weights: Weights

    def __str__(self) -> str:
        return f"{self.assignment}/{self.order}"


class ListScheduler:
    """Schedules by every rule of the portfolio and returns the best plan.

    First every assignment with every order, then other weights with the best three of them. The
    number of trials depends on the number of tasks, not on the clock; a time limit or an interrupt
    only cuts it short.

    Parameters
    ----------
    greedy
        Schedule in one pass by this assignment and this order alone, the baseline of comparisons;
        without it, by all of them.
    """

    def __init__(self, greedy: tuple[str, str] | None = None) -> None:
        self._greedy = greedy
        self.name = "list" if greedy is None else greedy_name(*greedy)

    def solve(self, problem: Problem, options: SolveOptions, hint: Plan | None = None) -> Result:
        """Return the best plan of the portfolio (a ``hint`` is of no use to it)."""
        bound = best_bound(problem)
        reason = why_it_cannot_fit(problem)
        if reason:
            return Result(
                status=SolveStatus.INFEASIBLE,
                plan=None,
                bound=bound.value,
                bound_source=bound.name,
                reason=reason,
            )
        return _Search(problem, options, bound, self.name, self._greedy).result()


def greedy_name(assignment: str, order: str) -> str:
    """Return the solver name of one pass by this assignment and this order."""
    return f"greedy:{assignment}/{order}"


class _Search:
    def __init__(
        self,
        problem: Problem,
        options: SolveOptions,
        bound: Bound,
        name: str,
        greedy: tuple[str, str] | None,
    ) -> None:
        self._problem = problem
        self._name = name
        self._greedy = greedy
        self._options = options
        self._bound = bound
        self._routes = Routes(problem.machine)
        self._runner = Runner(problem, self._routes)
        self._orders: dict[str, Ints] = {}
        self._assignments: dict[str, Ints] = {}
        self._scores: dict[Trial, tuple[int, ...]] = {}
        self._best: tuple[tuple[int, ...], Trial, Board] | None = None
        self._reason = "the time limit left no room for a first trial"
        limit = options.time_limit
        self._deadline = None if limit is None else monotonic() + limit

    def result(self) -> Result:
        """Run the trials and return the best plan among them."""
        try:
            self._run_trials()
        except KeyboardInterrupt:
            if self._best is None:
                raise
        if self._best is None:
            return self._without_plan(self._reason)
        try:
            return self._result_of(self._best[1], self._best[2])
        except DoesNotFitError as error:
            # The way in which this scheduler spills needs more of a DRAM than there is; others
            # might need less.
            return self._without_plan(str(error))

    def _without_plan(self, reason: str) -> Result:
        return Result(
            status=SolveStatus.UNKNOWN,
            plan=None,
            bound=self._bound.value,
            bound_source=self._bound.name,
            reason=reason,
        )

    def _run_trials(self) -> None:
        budget = max(4, MOST_TASKS_TRIED // max(1, len(self._problem.tasks)))
        for count, trial in enumerate(self._trials()):
            if count >= budget or self._is_over():
                return
            self._run(trial)

    def _trials(self) -> Iterator[Trial]:
        usual = FIRST_WEIGHTS[self._problem.objective.first]
        if self._greedy is not None:
            assignment, order = self._greedy
            yield Trial(assignment, order, usual)
            return
        for order in ORDERS:
            for assignment in ASSIGNMENTS:
                yield Trial(assignment, order, usual)
        best = sorted(self._scores, key=lambda trial: (self._scores[trial], str(trial)))[:3]
        for trial in best:
            for weights in OTHER_WEIGHTS:
                yield Trial(trial.assignment, trial.order, weights)

    def _run(self, trial: Trial) -> None:
        if trial.order not in self._orders:
            self._orders[trial.order] = ORDERS[trial.order](self._problem)
        if trial.assignment not in self._assignments:
            self._assignments[trial.assignment] = ASSIGNMENTS[trial.assignment](self._problem)
        order, cores = self._orders[trial.order], self._assignments[trial.assignment]
        stop, board = self._runner.run(order, cores, trial.weights)
        if stop is not Stop.DONE:
            self._reason = self._runner.why_it_stopped(stop, board)
            return
        found = score(self._problem, board)
        self._scores[trial] = found
        if self._best is None or found < self._best[0]:
            self._best = (found, trial, board)
            self._tell(found[0], trial)

    def _tell(self, incumbent: int, trial: Trial) -> None:
        if self._options.on_progress is not None:
            source = f"list {trial}" if self._greedy is None else self._name
            self._options.on_progress(
                Progress(incumbent=incumbent, bound=self._bound.value, source=source)
            )

    def _is_over(self) -> bool:
        if self._deadline is not None and monotonic() > self._deadline:
            return True
        if self._best is None:
            return False
        objective = self._best[0][0]
        return objective - self._bound.value <= self._options.gap * objective

    def _result_of(self, trial: Trial, board: Board) -> Result:
        problem = self._problem
        schedule = extract(problem, self._routes, board)
        measures = measure(problem, schedule.placements, schedule.residencies, schedule.transfers)
        plan = Plan(
            placements=schedule.placements,
            residencies=schedule.residencies,
            transfers=schedule.transfers,
            tensors=schedule.tensors,
            claim=claim_of(measures, self._bound.value, self._bound.name),
            solver=self._name,
            options=(
                ("assignment", trial.assignment),
                ("order", trial.order),
                *((name, str(value)) for name, value in trial.weights._asdict().items()),
            ),
        )
        objective = score(problem, board)[0]
        optimal = objective == self._bound.value
        return Result(
            status=SolveStatus.OPTIMAL if optimal else SolveStatus.FEASIBLE,
            plan=plan,
            bound=self._bound.value,
            bound_source=self._bound.name,
        )
