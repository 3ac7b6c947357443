"""One run of CP-SAT, as questions with targets; an interrupt keeps what was found."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, inf
from time import monotonic
from typing import Protocol

from ortools.sat.python import cp_model

from spmilp.solvers.common.reports import Reports
from spmilp.solvers.cpsat.extract import read_decisions
from spmilp.solvers.cpsat.parameters import STRATEGIES, Limits, Way, only_refute, solver_within
from spmilp.solvers.cpsat.variables import Variables
from spmilp.solvers.formulation.extraction import Decisions

FIRST_LIMIT = 0.1
"""Deterministic time for the first questions."""

OPENING_LIMIT = 0.5
"""Deterministic time for minimising in one go at first."""

SECONDS = 10.0
"""Wall time for a unit of deterministic time, of which propagation in schedules takes little."""

NO_LIMIT = 2**60
"""A value that no objective reaches."""

KEPT = 8
"""Solutions kept: if the best has no addresses, an earlier one may."""


class Searchable(Protocol):
    """A model that can be run.

    Attributes
    ----------
    low, high
        What is known of the value looked for: a lower bound, and the best value so far.
    """

    cp: cp_model.CpModel
    variables: Variables
    low: int
    high: int | None


@dataclass(slots=True, kw_only=True)
class Found:
    """What a run has found.

    Parameters
    ----------
    infeasible
        It is proven that the model has no solution.
    complete
        The search has come to its end: the best solution is the model's best.
    bound
        Proven on the model's objective; ``None`` when nothing is known.
    solutions
        The last few, the best one last.
    interrupted
        The user has asked to stop.
    """

    infeasible: bool = False
    complete: bool = False
    bound: int | None = None
    solutions: list[Decisions] = field(default_factory=list)
    interrupted: bool = False
    deterministic: float = 0.0


def run(
    model: Searchable,
    limits: Limits,
    reports: Reports,
    *,
    proves: bool,
    on_solution: Callable[[int], None],
    on_bound: Callable[[int], None],
) -> Found:
    """Solve a model within limits, by questions whether anything is at most some value.

    Minimising in one go, CP-SAT often finds solutions each a cycle better than the last, and
    propagates little, for the best value known is far above the best there is. A question has a
    target; the answer *yes* lowers what is known from above, *no* raises it from below. Targets
    begin near the one end that matters, and move on faster after each answer in time.

    A model of scheduling alone, in which nothing stands for what it leaves out, is minimised in one
    go all the same: what CP-SAT learns about a job shop, and its own neighbourhoods, are worth more
    than targets. Around a good plan those neighbourhoods alone are worth more than both.

    The search runs in a thread of its own, so that a ``KeyboardInterrupt`` reaches this one at
    once; it then stops the search, keeps what was found, and is noted in the result.

    Parameters
    ----------
    proves
        Whether to ask from below, for a bound, or from above, for solutions.
    """
    inquiry = _Inquiry(model, limits, on_solution, on_bound)
    reports.finish(inquiry.prove if proves else inquiry.find, inquiry.stop)
    return inquiry.found


class _Inquiry:
    """Questions to one model; ``low`` and ``high`` are what is known of its best value."""

    def __init__(
        self,
        model: Searchable,
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
        self._each = FIRST_LIMIT
        self._refutes = False
        self._strategy = 0
        self._asked: cp_model.CpSolver | None = None

    def stop(self) -> None:
        """Stop as soon as possible, for the user wants it."""
        self.found.interrupted = True
        if self._asked is not None:
            self._asked.stop_search()

    def prove(self) -> None:
        """Ask from below."""
        self._refutes = self._limits.round_robin and self._limits.workers < len(STRATEGIES)
        self._begin()
        step = self._part(8)
        while self._goes_on():
            answer = self._ask(min(self._low + step, self._high_or_low()) - 1)
            if answer is None:
                self._strategy += self._limits.workers
                self._each *= 1.5
                step = max(1, step // 2)
            else:
                step = self._part(8) if answer else 2 * step
        self._finish()

    def find(self) -> None:
        """Ask from above; minimise in one go for a while when that leads nowhere."""
        if self._limits.way is Way.NEIGHBOURHOODS and self._high is not None:
            self._each = inf
            self._ask(None)
            self._finish()
            return
        self._begin()
        step = self._part(16)
        while self._goes_on():
            answer = self._ask(self._high_or_low() - step)
            if answer is None and step <= self._part(128):
                self._each *= 2
                self._ask(None)
                step = self._part(16)
            elif answer is None:
                step = max(1, step // 4)
            else:
                step = min(2 * step, self._part(2)) if answer else self._part(16)
        self._finish()

    def _part(self, share: int) -> int:
        return max(1, (self._high_or_low() - self._low) // share)

    def _high_or_low(self) -> int:
        return self._low if self._high is None else self._high

    def _begin(self) -> None:
        """Find any solution if none is known, then minimise in one go: it may be easy."""
        while self._high is None and not self.found.infeasible and self._has_time():
            self._ask(NO_LIMIT)
            self._each *= 2
        if self._goes_on():
            each, self._each = self._each, self._opening()
            self._ask(None)
            self._each = each

    def _opening(self) -> float:
        """Return the deterministic time for minimising in one go at first.

        Without a limit of wall time a single worker follows one strategy, for which questions are
        better in every model.
        """
        whole = self._limits.deterministic
        if self._limits.way is Way.IN_ONE_GO and self._limits.seconds is not None:
            return inf
        return OPENING_LIMIT if whole is None else whole / 4

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

    def _ask(self, target: int | None) -> bool | None:
        """Say whether there is a solution of at most a target; ``None`` if that takes too long.

        Without a target the best solution is looked for, from the hint.
        """
        top = self._high_or_low() if target is None else max(target, self._low)
        domain = self._model.cp.proto.objective.domain
        domain.clear()
        domain.extend([self._low, top])
        solver = self._solver()
        solver.parameters.stop_after_first_solution = target is not None
        self._asked = solver
        status = solver.solve(self._model.cp, _Watcher(self._model, self._take))
        self.found.deterministic += solver.deterministic_time
        if status == cp_model.INFEASIBLE:
            self._refuted(top)
            return False
        if abs(solver.best_objective_bound) < inf:
            self._raise(min(_whole(solver.best_objective_bound), top + 1))
        if status == cp_model.UNKNOWN:
            return None
        if target is None and status == cp_model.OPTIMAL:
            self._raise(self._high_or_low())
        return True

    def _refuted(self, top: int) -> None:
        if self._high is None:
            self.found.infeasible = True
        else:
            self._raise(min(top + 1, self._high))

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

    def _solver(self) -> cp_model.CpSolver:
        solver = solver_within(self._limits)
        parameters = solver.parameters
        if self._refutes:
            only_refute(parameters, self._limits.workers, self._strategy)
        each, left = self._each, self._seconds_left()
        if left is not None:
            most = min(left, each * SECONDS) if self._refutes else left
            parameters.max_time_in_seconds = max(0.1, most)
        if self._limits.deterministic is not None:
            each = min(each, max(0.0, self._limits.deterministic - self.found.deterministic))
        parameters.max_deterministic_time = each
        return solver


class _Watcher(cp_model.CpSolverSolutionCallback):
    """Reads every solution, and ends the search when one is good enough."""

    def __init__(self, model: Searchable, take: Callable[[int, Decisions], bool]) -> None:
        super().__init__()
        self._model = model
        self._take = take

    def on_solution_callback(self) -> None:
        value = round(self.objective_value)
        if self._take(value, read_decisions(self._model.variables, self.value)):
            self.stop_search()


def _whole(bound: float) -> int:
    """Round a bound on a whole number up, a hair of the solver's arithmetic left aside."""
    return ceil(bound - 1e-6)
