"""The line from a model to a checked plan, written out: read, choose tiles, solve, check.

This is the file to read first. :func:`solve` is the line: the command line, the benchmarks, the
comparisons and the notebooks all call it, so that the same arguments give the same plan everywhere.
Each step is one function from one frozen value to the next.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from spmilp.bounds.best import Bound
from spmilp.bounds.deadlines import impossible_with_these_tiles
from spmilp.checker.check import Verdict
from spmilp.compiled import warn_if_slow
from spmilp.options import DEFAULT_SOLVER, Options, with_options
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.registry import find_solver, hint_takers
from spmilp.report.address_stability import AddressStability
from spmilp.result import Origin, Result, checked
from spmilp.solvers.base import Progress, SolveOptions, SolverResult
from spmilp.solvers.common.clock import Step
from spmilp.solvers.common.context import SearchContext, rows_of
from spmilp.solvers.modulo.solver import of_period, stream_answer
from spmilp.source import MachineGiven, Model, NetworkSource, ProblemSource, what_is_mapped
from spmilp.tile_selection.tiled_problem import TiledProblem
from spmilp.warm_start import locked_answer
from spmilp.watch import SILENT, Observer, Stage, Watch

SECONDS_AFTER_AN_INTERRUPT = 1.0
"""Time limit of the solver if an interrupt came before there was a schedule."""

SHARE_WITHOUT_LOCK = 0.5
"""Share of the time behind the choice of tiles for a plan without the lock, to know its cost."""

SHARE_OF_A_DEADLINE = 0.1
"""Share of the time in which it is found out whether a deadline can be kept at all."""

SHARE_OF_ONE_INFERENCE = 0.65
"""Share of the time of a stream in which tiles for one inference may be chosen."""

SHARE_OF_ITS_PLAN = 0.5
"""Share of the time behind all tiles for the plan of one inference."""


@with_options()
def solve(
    model: Model, machine: MachineGiven = None, *, observer: Observer = SILENT, **given: Any
) -> Result:
    """Map a network onto a machine: load, choose tiles, solve, check.

    The same arguments give the same plan with an ``effort``; without one, with one worker and
    unless the time limit cuts a search short. A ``KeyboardInterrupt`` (in a notebook: stop) ends
    the search; the best plan so far is the answer, if there is one.

    Parameters
    ----------
    model
        An ONNX file or a TensorFlow Lite one, ``onnx:NAME`` for one of the graphs in the ``onnx``
        package, a problem file (``.json``), or a problem. Of several models the plan is one stream,
        unless there is another objective; a network goes by the name of its file.
    machine
        A preset's name, a YAML file, or a machine; ``mesh4x4`` by default. A problem carries its
        own.
    observer
        Hears how it gets on.
    given
        The options of ``spmilp solve``, by their names: :class:`~spmilp.options.Options`. Where
        these take a file, a mapping, a plan or a :class:`Result` will do, too.

    Returns
    -------
    Result
        The plan that the checker has accepted, and everything that can be asked of it. Not finding
        a plan is a result too: ``status`` and ``reason`` say why.

    Raises
    ------
    ValueError
        If an argument has a value that it cannot have.
    SpmilpError
        If a file cannot be used, an operator cannot be lowered, or a tile fits no scratchpad.

    Examples
    --------
    >>> result = spmilp.solve("net.onnx", "mesh4x4", time_limit="60s")
    >>> result.makespan, result.bound
    """
    options = Options.of(given)
    watch = Watch(options, observer)
    warn_if_slow(observer.on_warning)
    source = what_is_mapped(model, machine, options, observer)
    if source.streams:
        watch.begin_with_one_inference(SHARE_OF_ONE_INFERENCE)
    start = source.start(options, watch)

    def bound_of(part: Problem) -> Bound:
        return SearchContext(part, _limits(options, watch, SHARE_OF_A_DEADLINE)).bound

    for late in impossible_with_these_tiles(start.problem, bound_of, streams=source.streams):
        observer.on_warning(late)
    return solved(start, options, watch, source.origin, streams=source.streams)


def solved(
    start: TiledProblem,
    options: Options,
    watch: Watch,
    origin: Origin | None = None,
    *,
    streams: bool = False,
) -> Result:
    """Solve a problem whose tiles are chosen, and check the plan."""
    lock, problem = None, of_period(start.problem) if streams else start.problem
    if options.solution is not None:
        answer = _of_solution(problem, options.solution, options, watch)
    elif streams:
        watch.begin_with_one_inference(SHARE_OF_ITS_PLAN)
        answer, lock = find_plan(start, options, watch)
        answer = _overlapped(problem, answer, start.stream, options, watch)
    else:
        answer, lock = find_plan(start, options, watch)
    watch.observer.on_stage(Stage.CHECKING)
    result = checked(
        problem,
        answer,
        asked=options.solver,
        origin=origin,
        lock=lock,
        tiles_are_fallback=start.is_fallback,
    )
    watch.log.note(result.bound_source, result.objective, result.bound)
    return replace(result, **watch.seen())


def problem_of(
    model: Model, machine: MachineGiven = None, *, tiles: str = "first", **given: Any
) -> Problem:
    """Return the problem that :func:`solve` would solve; see there for the arguments."""
    options, source = _source(model, machine, tiles, given)
    problem = source.start(options, Watch(options)).problem
    return of_period(problem) if source.streams else problem


def tiled_problem(
    model: Model, machine: MachineGiven = None, *, tiles: str = "first", **given: Any
) -> tuple[TiledProblem, Origin | None]:
    """Return the problem to solve, and the model that it was made from if there is one.

    Of a stream, it is the problem of one inference.
    """
    options, source = _source(model, machine, tiles, given)
    return source.start(options, Watch(options)), source.origin


def _source(
    model: Model, machine: MachineGiven, tiles: str, given: dict[str, Any]
) -> tuple[Options, ProblemSource | NetworkSource]:
    options = Options.of({"time_limit": None, "tiles": tiles, **given})
    return options, what_is_mapped(model, machine, options)


def find_plan(
    start: TiledProblem, options: Options, watch: Watch
) -> tuple[SolverResult, AddressStability | None]:
    """Return a plan that is no worse than what is known, and what a lock has kept if there is one.

    With a lock, half of the time goes to a plan without it.
    """
    if options.lock is None:
        return _unlocked(start, options, watch), None
    free = _unlocked(start, options, watch, share=SHARE_WITHOUT_LOCK)

    def solve_again(problem: Problem, known: Plan | None) -> SolverResult:
        limits = replace(_limits(options, watch), on_progress=None)
        hint = known if options.solver in hint_takers() else None
        return find_solver(options.solver).solve(problem, limits, hint)

    try:
        return locked_answer(start.problem, free, options.lock, solve_again)
    except (KeyboardInterrupt, MemoryError):
        if free.plan is None:
            raise
        return replace(free, interrupted=True), None


def _unlocked(
    start: TiledProblem, options: Options, watch: Watch, share: float = 1.0
) -> SolverResult:
    """Solve in a share of the time that is left.

    After an interrupt, and where there is not enough memory, the schedule that there is counts.
    """
    if start.interrupted and (known := start.result()) is not None:
        return known
    clock, observer, verdict, hint = watch.clock, watch.observer, None, None
    try:
        observer.on_problem(of_period(start.problem) if watch.overlaps else start.problem)
        began = clock.now()
        verdict = start.verdict()
        hint = start.plan() if verdict is None else verdict.plan
        if hint is not None and start.schedule is not None:
            checking = 0.0 if verdict is None else verdict.seconds
            clock.pace.note(Step.CHECK, rows_of(hint), checking)
            clock.pace.note(Step.PLAN, rows_of(hint), clock.now() - began - checking)
        observer.on_stage(Stage.SOLVING)
        # A hint has been checked, too, where it was read.
        valid = start.known if verdict is None else verdict.plan
        if valid is not None:
            value, bound = start.value, valid.claim.bound
            watch.progress(Progress(incumbent=value, bound=bound, source=start.source))
        limits = _limits(options, watch, share, () if verdict is None else (verdict,))
        if start.interrupted:
            limits = replace(limits, time_limit=SECONDS_AFTER_AN_INTERRUPT)
        answer = find_solver(options.solver).solve(start.problem, limits, hint)
        return answer if valid is None else _no_worse(start.problem, answer, valid)
    except (KeyboardInterrupt, MemoryError):
        if (known := start.result(verdict, hint)) is None:
            raise
        return known


def _of_solution(problem: Problem, file: Path, options: Options, watch: Watch) -> SolverResult:
    """Return the plan that a solution of the problem's written model is."""
    # It loads OR-Tools.
    from spmilp.solvers.exact.milp.solution import SolutionSolver

    watch.observer.on_problem(problem)
    watch.observer.on_stage(Stage.SOLVING)
    limits = replace(_limits(options, watch), on_progress=None)
    return SolutionSolver(file, options.period).solve(problem, limits)


def _overlapped(
    problem: Problem, answer: SolverResult, known: Plan | None, options: Options, watch: Watch
) -> SolverResult:
    """Return the best stream that is found in the rest of the time, or one that is known.

    A solver that was asked for has only its own plan overlapped. With ``cpsat`` and ``auto`` small
    problems are decided as a whole, too.
    """
    watch.go_on_with_streams()
    by_any = options.solver == DEFAULT_SOLVER
    return stream_answer(
        problem,
        answer,
        _limits(options, watch),
        options.period,
        stream=known,
        also_quick_plans=by_any,
        decides_whole=by_any or options.solver == "cpsat",
    )


def _limits(
    options: Options, watch: Watch, share: float = 1.0, verdicts: tuple[Verdict, ...] = ()
) -> SolveOptions:
    """Return the options as a solver knows them: with a share of the time that is left."""
    return SolveOptions(
        time_limit=watch.clock.seconds_left(share),
        gap=options.gap,
        seed=options.seed,
        workers=watch.workers,
        on_progress=watch.progress,
        on_warning=watch.observer.on_warning,
        pace=watch.clock.pace,
        verdicts=verdicts,
    )


def _no_worse(problem: Problem, answer: SolverResult, plan: Plan) -> SolverResult:
    """Return a plan that the checker has accepted where a solver has found none as good."""
    context = SearchContext(problem, SolveOptions())
    if answer.plan is not None and context.values(answer.plan) <= context.values(plan):
        return answer
    return context.better(answer, context.found(plan, context.fast_bound))
