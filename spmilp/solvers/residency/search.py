"""One run of CP-SAT on the model of a course."""

from dataclasses import dataclass

from ortools.sat.python import cp_model

from spmilp.solvers.common.reports import Reports
from spmilp.solvers.residency.decisions import Solution, read_solution
from spmilp.solvers.residency.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may spend.

    Parameters
    ----------
    seconds, deterministic
        Wall time and deterministic time; ``None`` for no limit.
    """

    seconds: float | None
    deterministic: float | None
    workers: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a run has found.

    Parameters
    ----------
    complete
        The search has come to its end: the solution is the model's best, or there is none.
    values
        Of all the model's variables; empty without a solution.
    """

    solution: Solution | None
    values: tuple[int, ...]
    complete: bool
    deterministic: float


def run(model: Model, limits: Limits, reports: Reports) -> Answer:
    """Solve a model within limits.

    The search runs in a thread of its own, so that a ``KeyboardInterrupt`` reaches this one at
    once; it ends the search before it passes on.
    """
    solver = _solver(limits)
    status, interrupted = reports.finish(lambda: solver.solve(model.cp), solver.stop_search)
    if interrupted:
        raise KeyboardInterrupt
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return Answer(
        solution=read_solution(model, solver.value) if found else None,
        values=tuple(solver.response_proto.solution) if found else (),
        complete=status in (cp_model.OPTIMAL, cp_model.INFEASIBLE),
        deterministic=solver.deterministic_time,
    )


def _solver(limits: Limits) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = limits.workers
    parameters.interleave_search = limits.workers == 1
    parameters.random_seed = limits.seed
    parameters.catch_sigint_signal = False
    if limits.seconds is not None:
        parameters.max_time_in_seconds = max(0.1, limits.seconds)
    if limits.deterministic is not None:
        parameters.max_deterministic_time = limits.deterministic
    return solver
