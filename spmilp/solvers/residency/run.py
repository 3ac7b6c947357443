"""One run of CP-SAT on the model of a scope."""

from dataclasses import dataclass

from ortools.sat.python import cp_model

from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.residency.extract import Solution, read_solution
from spmilp.solvers.residency.model import Model


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


def run(context: SearchContext, model: Model, share: float, deterministic: float) -> Answer:
    """Solve a model, in another thread so that a ``KeyboardInterrupt`` ends it at once.

    Parameters
    ----------
    share
        Of the time limit, by which the run has ended.
    deterministic
        CP-SAT's own time for it.
    """
    solver = cp_model.CpSolver()
    parameters, seconds = solver.parameters, context.clock.seconds_left(share)
    parameters.num_workers = context.options.workers
    parameters.interleave_search = context.options.workers == 1
    parameters.random_seed = context.options.seed
    parameters.catch_sigint_signal = False
    if seconds is not None:
        parameters.max_time_in_seconds = max(0.1, seconds)
    left = context.clock.deterministic_left(deterministic)
    if left is not None:
        parameters.max_deterministic_time = left
    status, interrupted = context.reports.finish(lambda: solver.solve(model.cp), solver.stop_search)
    if interrupted:
        raise KeyboardInterrupt
    context.clock.spend(solver.deterministic_time)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return Answer(
        solution=read_solution(model, solver.value) if found else None,
        values=tuple(solver.response_proto.solution) if found else (),
        complete=status in (cp_model.OPTIMAL, cp_model.INFEASIBLE),
    )
