"""One solver on one problem, watched and checked."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from spmilp.pipeline import judge, solve_problem
from spmilp.plan.measures import claimed
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, SolveOptions

REJECTED = "rejected"
"""The status of a run whose plan the checker does not accept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a solver had after some wall seconds.

    Parameters
    ----------
    seconds
        Since the solver was called.
    objective
        Of its best plan; ``None`` before the first.
    bound
        The best that it had proven, in the unit of the problem's first quantity.
    """

    seconds: float
    objective: int | None
    bound: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One solver's run on one problem with one seed.

    Parameters
    ----------
    status
        The solver's, or ``rejected`` when the checker does not accept its plan.
    objective
        The problem's first quantity in the plan; ``None`` without an accepted plan.
    bound
        The best bound that the solver names, in the same unit.
    seconds
        Wall time of the solver alone, without reading and checking.
    course
        Every improvement that the solver reported, in order of time; its answer comes last.
    reason
        Why there is no accepted plan; empty when there is one.
    """

    instance: str
    tasks: int
    cores: int
    solver: str
    seed: int
    status: str
    quantity: Quantity
    objective: int | None
    bound: int
    bound_source: str
    seconds: float
    course: tuple[Moment, ...]
    reason: str

    @property
    def seconds_to_best(self) -> float | None:
        """When the plan of the answer's objective was first reported; ``None`` without a plan."""
        if self.objective is None:
            return None
        return next(moment.seconds for moment in self.course if moment.objective == self.objective)


def compare(
    problems: Mapping[str, Problem],
    solvers: Sequence[str],
    options: SolveOptions,
    on_start: Callable[[str, str], None] = lambda instance, solver: None,
) -> Iterator[Run]:
    """Run every solver on every problem, and yield each run when it is over.

    The compiled code of the list scheduler is loaded before the first clock starts.

    Parameters
    ----------
    problems
        By the name of the instance.
    options
        The same for every run.
    on_start
        Called with the instance and the solver before each run.

    Yields
    ------
    Run
        One for each pair, the solvers of the first problem first.

    Raises
    ------
    SpmilpError
        If no solver has one of the names.
    """
    _load_compiled_code(problems.values())
    for instance, problem in problems.items():
        for solver in solvers:
            on_start(instance, solver)
            yield run_one(instance, problem, solver, options)


def _load_compiled_code(problems: Iterable[Problem]) -> None:
    smallest = min(problems, key=lambda problem: len(problem.tasks), default=None)
    if smallest is not None:
        solve_problem(smallest, "list", SolveOptions(time_limit=0.001))


def run_one(instance: str, problem: Problem, solver: str, options: SolveOptions) -> Run:
    """Run one solver, note its course, and let the checker decide about its plan.

    Raises
    ------
    SpmilpError
        If no solver has that name.
    """
    course: list[Moment] = []
    started = perf_counter()

    def note(progress: Progress) -> None:
        seconds = perf_counter() - started
        course.append(Moment(seconds=seconds, objective=progress.incumbent, bound=progress.bound))
        if options.on_progress is not None:
            options.on_progress(progress)

    result = solve_problem(problem, solver, replace(options, on_progress=note))
    seconds = perf_counter() - started
    mapped = judge(problem, result)
    quantity = problem.objective.first
    objective = None if mapped.plan is None else claimed(mapped.plan.claim).of(quantity)
    course.append(Moment(seconds=seconds, objective=objective, bound=result.bound))
    broken = next((f"{each.rule}: {each.message}" for each in mapped.violations), "")
    return Run(
        instance=instance,
        tasks=len(problem.tasks),
        cores=len(problem.machine.cores),
        solver=solver,
        seed=options.seed,
        status=REJECTED if broken else str(result.status),
        quantity=quantity,
        objective=objective,
        bound=result.bound,
        bound_source=result.bound_source,
        seconds=seconds,
        course=tuple(course),
        reason=broken or result.reason,
    )
