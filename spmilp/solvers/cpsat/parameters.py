"""CP-SAT's parameters: limits, propagation, and strategies that alternate in proofs."""

from dataclasses import dataclass
from enum import Enum, auto

from ortools.sat.python import cp_model

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
    log: bool = False


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
    parameters.log_search_progress = limits.log
    parameters.log_to_stdout = False
    if limits.log:
        solver.log_callback = print
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
