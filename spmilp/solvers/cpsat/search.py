"""One run of CP-SAT: limits, streaming, and an interrupt that keeps what was found."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, inf
from threading import Event, Thread
from typing import Protocol

from ortools.sat.python import cp_model

from spmilp.solvers.cpsat.decisions import Decisions, read_decisions
from spmilp.solvers.cpsat.variables import Variables

KEPT = 8
"""Solutions kept: if the best has no addresses, an earlier one may."""


class Searchable(Protocol):
    """A model that can be run."""

    cp: cp_model.CpModel
    variables: Variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may spend, and when it has done enough.

    Parameters
    ----------
    seconds, deterministic
        Wall time and deterministic time; ``None`` for no limit.
    enough
        A solution of at most this value ends the run.
    """

    seconds: float | None
    deterministic: float | None
    workers: int
    seed: int
    enough: int | None = None
    log: bool = False


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
    on_solution: Callable[[int], None],
    on_bound: Callable[[int], None],
) -> Found:
    """Solve a model within limits.

    The search runs in a thread of its own, so that a ``KeyboardInterrupt`` reaches this one at
    once; it then stops the search, keeps what was found, and is noted in the result.
    """
    found = Found()
    solver = _solver(limits)
    watcher = _Watcher(model, found, limits, on_solution)
    solver.best_bound_callback = lambda bound: on_bound(_whole(bound))
    if limits.log:
        solver.log_callback = print
    done, status = Event(), [cp_model.UNKNOWN]

    def search() -> None:
        try:
            status[0] = solver.solve(model.cp, watcher)
        finally:
            done.set()

    thread = Thread(target=search, daemon=True)
    thread.start()
    while not done.is_set():
        try:
            done.wait()
        except KeyboardInterrupt:
            found.interrupted = True
            watcher.stop_search()
            solver.stop_search()
    thread.join()
    _conclude(found, solver, status[0])
    return found


class _Watcher(cp_model.CpSolverSolutionCallback):
    """Reads every solution, and ends the search when one is good enough."""

    def __init__(
        self, model: Searchable, found: Found, limits: Limits, on_solution: Callable[[int], None]
    ) -> None:
        super().__init__()
        self._model = model
        self._found = found
        self._limits = limits
        self._on_solution = on_solution

    def on_solution_callback(self) -> None:
        value = round(self.objective_value)
        decisions = read_decisions(self._model.variables, self.value, value)
        self._found.solutions = [*self._found.solutions, decisions][-KEPT:]
        self._on_solution(value)
        if self._found.interrupted:
            self.stop_search()
        if self._limits.enough is not None and value <= self._limits.enough:
            self.stop_search()


def _solver(limits: Limits) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    if limits.seconds is not None:
        parameters.max_time_in_seconds = max(0.1, limits.seconds)
    if limits.deterministic is not None:
        parameters.max_deterministic_time = limits.deterministic
    parameters.num_workers = limits.workers
    # A single worker then takes turns between strategies and neighbourhoods, the same each time.
    parameters.interleave_search = limits.workers == 1
    parameters.random_seed = limits.seed
    # Probing each of thousands of literals through every resource takes longer than the search.
    parameters.cp_model_probing_level = 0
    parameters.catch_sigint_signal = False
    parameters.log_search_progress = limits.log
    parameters.log_to_stdout = False
    return solver


def _conclude(found: Found, solver: cp_model.CpSolver, status: cp_model.CpSolverStatus) -> None:
    found.infeasible = status == cp_model.INFEASIBLE
    found.complete = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        bound = solver.best_objective_bound
        found.bound = None if abs(bound) == inf else _whole(bound)
    found.deterministic = solver.deterministic_time


def _whole(bound: float) -> int:
    """Round a bound on a whole number up, a hair of the solver's arithmetic left aside."""
    return ceil(bound - 1e-6)
