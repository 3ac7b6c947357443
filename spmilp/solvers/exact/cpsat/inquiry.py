"""One run of CP-SAT: for plans in one go, for a bound as questions with targets."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf
from time import monotonic

from ortools.sat.python import cp_model

from spmilp.solvers.common.context import Reports
from spmilp.solvers.exact.formulation.extraction import Decisions
from spmilp.solvers.exact.formulation.model import Model
from spmilp.solvers.exact.formulation.search import Found
from spmilp.solvers.exact.formulation.translation import SolutionReader

STRATEGIES: tuple[dict[str, object], ...] = (
    {"search_branching": cp_model.PORTFOLIO_WITH_QUICK_RESTART_SEARCH, "linearization_level": 0},
    {"linearization_level": 1},
    {"linearization_level": 0},
    {"linearization_level": 2},
    {"search_branching": cp_model.PORTFOLIO_WITH_QUICK_RESTART_SEARCH},
)
"""Parameters with which a single worker asks in turn: which of them refutes a question soon is
different from one to the next. (``interleave_search`` would alternate them within one question, but
ends long after its limit, and ends the process where a limit strikes while it loads the model.)"""

FIRST_LIMIT = 0.1
"""Deterministic time for the first questions."""

OPENING_LIMIT = 0.5
"""Deterministic time for minimising in one go before them."""

SECONDS = 10.0
"""Wall time for a unit of deterministic time, of which propagation in schedules takes little."""

NO_LIMIT = 2**60
"""A value that no objective reaches."""

KEPT = 8
"""Solutions kept: if the best has no addresses, an earlier one may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may spend, and when it has done enough.

    It has so many ``seconds`` of wall time and so much ``deterministic`` time; ``None`` for no
    limit. A solution of at most ``enough`` ends it. With ``neighbourhoods`` CP-SAT's own
    large-neighbourhood search works alone, from the hint; it proves nothing.
    """

    seconds: float | None
    deterministic: float | None
    workers: int
    seed: int
    enough: int | None = None
    neighbourhoods: bool = False


def run(
    model: Model,
    limits: Limits,
    reports: Reports,
    *,
    proves: bool,
    on_solution: Callable[[int], None],
    on_bound: Callable[[int], None],
) -> Found:
    """Solve a model within limits.

    For a bound, questions are asked whether anything is at most some value. A question has a
    target, from which CP-SAT propagates much more than from the best value known; the answer *no*
    raises the bound, *yes* lowers the best value. Targets begin near the bound, and move on faster
    after each answer in time.

    The search runs in a thread of its own, so that a ``KeyboardInterrupt`` reaches this one at
    once; it then stops the search, keeps what was found, and is noted in the result. If it
    ``proves``, a bound is wanted first of all; else solutions.
    """
    inquiry = _Inquiry(model, limits, on_solution, on_bound)
    reports.finish(inquiry.prove if proves else inquiry.find, inquiry.stop)
    return inquiry.found


class _Inquiry:
    """Questions to one model; ``low`` and ``high`` are what is known of its best value."""

    def __init__(
        self,
        model: Model,
        limits: Limits,
        on_solution: Callable[[int], None],
        on_bound: Callable[[int], None],
    ) -> None:
        self.found = Found(bound=model.low)
        self._model = model
        self._limits = limits
        self._on_solution = on_solution
        self._on_bound = on_bound
        self._began = monotonic()
        self._low, self._high = model.low, model.high
        self._strategy = 0
        self._asked: cp_model.CpSolver | None = None

    def stop(self) -> None:
        """Stop as soon as possible, for the user wants it."""
        self.found.interrupted = True
        if self._asked is not None:
            self._asked.stop_search()

    def find(self) -> None:
        """Minimise in one go."""
        self._ask(None, inf)
        self._finish()

    def prove(self) -> None:
        """Find any solution if none is known, minimise for a while, then ask from below."""
        each = FIRST_LIMIT
        while self._high is None and not self.found.infeasible and self._has_time():
            self._ask(NO_LIMIT, each)
            each *= 2
        if self._goes_on():
            whole = self._limits.deterministic
            self._ask(None, OPENING_LIMIT if whole is None else whole / 4)
        step = self._part_of_gap()
        while self._goes_on():
            target = min(self._low + step, self._known_high) - 1
            answer = self._ask(target, each, refutes=True)
            if answer is None:
                self._strategy = (self._strategy + 1) % len(STRATEGIES)
                each *= 1.5
                step = max(1, step // 2)
            else:
                step = self._part_of_gap() if answer else 2 * step
        self._finish()

    @property
    def _known_high(self) -> int:
        return NO_LIMIT if self._high is None else self._high

    def _part_of_gap(self) -> int:
        return max(1, (self._known_high - self._low) // 8)

    def _goes_on(self) -> bool:
        if self._high is None or self._low >= self._high or self.found.interrupted:
            return False
        return self._high > (self._limits.enough or self._low) and self._has_time()

    def _has_time(self) -> bool:
        left = self._seconds_left()
        deterministic = self._limits.deterministic
        enough = deterministic is None or self.found.deterministic < deterministic
        return enough and (left is None or left > 0.0) and not self.found.interrupted

    def _seconds_left(self) -> float | None:
        if self._limits.seconds is None:
            return None
        return self._limits.seconds - (monotonic() - self._began)

    def _ask(self, target: int | None, each: float, *, refutes: bool = False) -> bool | None:
        """Say whether there is a solution of at most a target; ``None`` if that takes too long.

        Without a target the best solution is looked for, from the hint. It may take ``each`` of
        deterministic time. If it ``refutes``, the answer *no* is hoped for: nothing looks for
        solutions then.
        """
        top = self._known_high if target is None else max(target, self._low)
        domain = self._model.cp.proto.objective.domain
        domain.clear()
        domain.extend([self._low, top])
        solver = self._solver(each, refutes=refutes)
        solver.parameters.stop_after_first_solution = target is not None
        self._asked = solver
        status = solver.solve(self._model.cp, _Watcher(self._model, self._take))
        self.found.deterministic += solver.deterministic_time
        if status == cp_model.INFEASIBLE:
            if self._high is None:
                self.found.infeasible = True
            else:
                self._raise(min(top + 1, self._high))
            return False
        if abs(solver.best_objective_bound) < inf:
            self._raise(min(_whole(solver.best_objective_bound), top + 1))
        if status == cp_model.UNKNOWN:
            return None
        if target is None and status == cp_model.OPTIMAL:
            self._raise(self._known_high)
        return True

    def _raise(self, bound: int) -> None:
        if bound > self._low:
            self._low = bound
            self.found.bound = bound
            self._on_bound(bound)

    def _take(self, value: int, solution: Decisions) -> bool:
        """Keep a solution that is better; say whether it is good enough to stop."""
        if self._high is None or value < self._high:
            self._high = value
            self.found.solutions = [*self.found.solutions, solution][-KEPT:]
            self._on_solution(value)
        enough = self._limits.enough
        return self.found.interrupted or (enough is not None and value <= enough)

    def _finish(self) -> None:
        known = self._high is not None and self._low >= self._high
        self.found.complete = known or self.found.infeasible

    def _solver(self, each: float, *, refutes: bool) -> cp_model.CpSolver:
        solver = cp_model.CpSolver()
        parameters, limits = solver.parameters, self._limits
        left, workers = self._seconds_left(), limits.workers
        parameters.num_workers = workers
        # A single worker then alternates strategies and neighbourhoods, a little differently each
        # time: not where there is no limit of wall time, for then the same seed is to give the same
        # plan. Neighbourhoods alone alternate in the same way each time.
        is_timed = left is not None and limits.deterministic is None
        alternates = is_timed or limits.neighbourhoods
        parameters.interleave_search = workers == 1 and alternates and not refutes
        parameters.use_lns_only = limits.neighbourhoods
        parameters.random_seed = limits.seed
        # Probing each of thousands of literals through every resource takes longer than the search.
        parameters.cp_model_probing_level = 0
        # Scheduling propagation beyond the default: what proofs of tight plans rest upon.
        parameters.use_overload_checker_in_cumulative = True
        parameters.use_timetable_edge_finding_in_cumulative = True
        parameters.use_strong_propagation_in_disjunctive = True
        parameters.catch_sigint_signal = False
        if refutes and workers == 1:
            # Each question is presolved anew, and what further rounds find is little.
            parameters.max_presolve_iterations = 1
            for name, value in STRATEGIES[self._strategy].items():
                setattr(parameters, name, value)
        if left is not None:
            parameters.max_time_in_seconds = max(
                0.1, min(left, each * SECONDS) if refutes and is_timed else left
            )
        if limits.deterministic is not None:
            each = min(each, max(0.0, limits.deterministic - self.found.deterministic))
        if each < inf:
            parameters.max_deterministic_time = each
        return solver


class _Watcher(cp_model.CpSolverSolutionCallback):
    """Reads every solution, and ends the search when one is good enough."""

    def __init__(self, model: Model, take: Callable[[int, Decisions], bool]) -> None:
        super().__init__()
        self._model = model
        self._take = take

    def on_solution_callback(self) -> None:
        solution = SolutionReader(self._model.variables, self.value).decisions()
        if self._take(round(self.objective_value), solution):
            self.stop_search()


def _whole(bound: float) -> int:
    """Round a bound on a whole number up, a hair of the solver's arithmetic left aside."""
    return ceil(bound - 1e-6)
