"""One run of CP-SAT, as questions with targets; an interrupt keeps what was found."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from math import ceil, inf
from time import monotonic

from ortools.sat.python import cp_model

from spmilp.solvers.common.context import Reports
from spmilp.solvers.exact.formulation.extraction import Decisions
from spmilp.solvers.exact.formulation.model import Model
from spmilp.solvers.exact.formulation.state import Found
from spmilp.solvers.exact.formulation.translation import read_decisions

STRATEGIES: dict[str, dict[str, object]] = {
    "quick_restart_no_lp": {
        "search_branching": cp_model.PORTFOLIO_WITH_QUICK_RESTART_SEARCH,
        "linearization_level": 0,
    },
    "default_lp": {"linearization_level": 1},
    "no_lp": {"linearization_level": 0},
    "max_lp": {"linearization_level": 2},
    "quick_restart": {"search_branching": cp_model.PORTFOLIO_WITH_QUICK_RESTART_SEARCH},
}
"""CP-SAT's strategies that alternate where there are fewer workers, by its own names for them.

With two workers CP-SAT by itself runs one of them, and looks for solutions with the other worker;
and which strategy refutes a question soon is different from one to the next. The parameters are
those with which a single worker follows the strategy. (``interleave_search`` would alternate them
within one question, but ends long after its limit, and ends the process where a limit strikes
while it loads the model.)
"""

STARTERS = (
    *("fj", "fs_random", "fs_random_no_lp"),
    *("fs_random_quick_restart", "fs_random_quick_restart_no_lp"),
)
"""CP-SAT's strategies that look for a first solution."""


class Way(Enum):
    """How a run looks for solutions."""

    QUESTIONS = auto()
    """Whether there is one of at most some value, again and again."""

    IN_ONE_GO = auto()
    """The best one, for as long as there is time."""

    NEIGHBOURHOODS = auto()
    """CP-SAT's own large-neighbourhood search alone, from the hint; it proves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may spend, and when it has done enough.

    Parameters
    ----------
    seconds, deterministic
        Wall time and deterministic time; ``None`` for no limit.
    enough
        A solution of at most this value ends the run.
    way
        How solutions are looked for.
    round_robin
        Whether the solver's strategies alternate in proofs where workers are few, and none looks
        for solutions.
    """

    seconds: float | None
    deterministic: float | None
    workers: int
    seed: int
    enough: int | None = None
    way: Way = Way.QUESTIONS
    round_robin: bool = True


def solver_within(limits: Limits) -> cp_model.CpSolver:
    """Return a solver that knows everything but the time for one question."""
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = limits.workers
    # A single worker then alternates strategies and neighbourhoods, a little differently each time:
    # not where there is no limit of wall time, for then the same seed is to give the same plan.
    parameters.interleave_search = limits.workers == 1 and limits.seconds is not None
    if limits.way is Way.NEIGHBOURHOODS:
        # These alternate in the same way each time.
        parameters.interleave_search = limits.workers == 1
        parameters.use_lns_only = True
    parameters.random_seed = limits.seed
    # Probing each of thousands of literals through every resource takes longer than the search.
    parameters.cp_model_probing_level = 0
    # Scheduling propagation beyond the default: what proofs of tight plans rest upon.
    parameters.use_overload_checker_in_cumulative = True
    parameters.use_timetable_edge_finding_in_cumulative = True
    parameters.use_strong_propagation_in_disjunctive = True
    parameters.catch_sigint_signal = False
    return solver


def only_refute(parameters: cp_model.SatParameters, workers: int, first: int) -> None:
    """Have all workers refute, with successive strategies from the first, and none find plans."""
    names = [list(STRATEGIES)[(first + n) % len(STRATEGIES)] for n in range(workers)]
    # Each question is presolved anew, and what further rounds find is little.
    parameters.max_presolve_iterations = 1
    parameters.interleave_search = False
    if workers == 1:
        for name, value in STRATEGIES[names[0]].items():
            setattr(parameters, name, value)
        return
    # CP-SAT keeps one worker for what looks for solutions: one more, then, with nothing to do.
    parameters.num_workers = workers + 1
    parameters.subsolvers.extend(names)
    parameters.ignore_subsolvers.extend(STARTERS)
    parameters.use_lns = False
    parameters.use_feasibility_jump = False
    parameters.use_feasibility_pump = False
    parameters.num_violation_ls = 0


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


def run(
    model: Model,
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

    def __init__(self, model: Model, take: Callable[[int, Decisions], bool]) -> None:
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
