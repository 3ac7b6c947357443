"""One solver on one problem, watched and checked."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from spmilp.pipeline import judge, solve_problem
from spmilp.plan.measures import claimed, compulsory_dram_traffic
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, SolveOptions, SolverResult

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
class Watched:
    """A solver's answer, and how it came about.

    Parameters
    ----------
    seconds
        Wall time until the answer.
    cpu_seconds
        Of this process and of those that it started and that ended within this time.
    course
        Every improvement that the solver reported, in order of time.
    """

    result: SolverResult
    seconds: float
    cpu_seconds: float
    course: tuple[Moment, ...]


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
    seconds, cpu_seconds
        Of the solver alone, without reading and checking: on the wall, and of all its threads.
    course
        Every improvement that the solver reported, in order of time; its answer comes last.
    transfers
        In the accepted plan; ``None`` without one.
    busy
        Part of the makespan for which a core computes, on average over all cores.
    dram_ratio
        Bytes to and from DRAM over those that no plan can avoid; ``None`` where these are none.
    violations
        What the checker found wrong with the plan.
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
    cpu_seconds: float
    course: tuple[Moment, ...]
    transfers: int | None
    busy: float | None
    dram_ratio: float | None
    violations: int
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
    watched = watch(lambda noted: solve_problem(problem, solver, noted), options)
    return judged(instance, problem, solver, options.seed, watched)


def watch(
    search: Callable[[SolveOptions], SolverResult],
    options: SolveOptions,
    on_moment: Callable[[Moment], None] = lambda moment: None,
) -> Watched:
    """Let a search run under a clock, and note what it reports.

    Parameters
    ----------
    search
        Called with the options, whose ``on_progress`` is watched and then called.
    on_moment
        Called with each moment as it comes.
    """
    course: list[Moment] = []
    cpu_before = _cpu_seconds()
    started = perf_counter()

    def note(progress: Progress) -> None:
        seconds = perf_counter() - started
        course.append(Moment(seconds=seconds, objective=progress.incumbent, bound=progress.bound))
        on_moment(course[-1])
        if options.on_progress is not None:
            options.on_progress(progress)

    result = search(replace(options, on_progress=note))
    return Watched(
        result=result,
        seconds=perf_counter() - started,
        cpu_seconds=_cpu_seconds() - cpu_before,
        course=tuple(course),
    )


def judged(instance: str, problem: Problem, solver: str, seed: int, watched: Watched) -> Run:
    """Return the run of an answer, once the checker has decided about its plan."""
    result = watched.result
    mapped = judge(problem, result)
    quantity = problem.objective.first
    plan = mapped.plan
    objective = None if plan is None else claimed(plan.claim).of(quantity)
    answer = Moment(seconds=watched.seconds, objective=objective, bound=result.bound)
    broken = next((f"{each.rule}: {each.message}" for each in mapped.violations), "")
    return Run(
        instance=instance,
        tasks=len(problem.tasks),
        cores=len(problem.machine.cores),
        solver=solver,
        seed=seed,
        status=REJECTED if broken else str(result.status),
        quantity=quantity,
        objective=objective,
        bound=result.bound,
        bound_source=result.bound_source,
        seconds=watched.seconds,
        cpu_seconds=watched.cpu_seconds,
        course=(*watched.course, answer),
        transfers=None if plan is None else len(plan.transfers),
        busy=None if plan is None else _busy(problem, plan),
        dram_ratio=None if plan is None else _dram_ratio(problem, plan),
        violations=len(mapped.violations),
        reason=broken or result.reason,
    )


def _busy(problem: Problem, plan: Plan) -> float | None:
    computing = sum(placement.end - placement.start for placement in plan.placements)
    there = len(problem.machine.cores) * plan.claim.makespan
    return computing / there if there else None


def _dram_ratio(problem: Problem, plan: Plan) -> float | None:
    compulsory = compulsory_dram_traffic(problem)
    return plan.claim.dram_traffic / compulsory if compulsory else None


def _cpu_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])
