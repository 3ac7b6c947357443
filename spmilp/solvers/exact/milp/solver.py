"""The MILP solver: the whole problem as a mixed-integer program, through PuLP.

Or the model as a file, for a solver of the user's own.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from spmilp.bounds.period import period_bound
from spmilp.errors import SpmilpError
from spmilp.files import write_atomically
from spmilp.problem.contradictions import refuse_contradictions
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import PinKind
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.clock import OutOfTimeError, Step
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.fit import narrowed
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.formulation.candidates import Structure
from spmilp.solvers.exact.formulation.model import Model, ModelOptions
from spmilp.solvers.exact.formulation.search import Budget, ExactSearch, Found
from spmilp.solvers.exact.formulation.translation import SolutionReader
from spmilp.solvers.exact.milp.process import SolverProcessError, backend_name, model_file, run
from spmilp.solvers.exact.milp.program import Limits, TooLargeError
from spmilp.solvers.exact.milp.rows import Rows
from spmilp.solvers.modulo.exact import model_of_streams
from spmilp.solvers.schedule.solver import ListScheduler
from spmilp.units import Cycles

PLANS = Budget(0.5)
"""Of the search for plans, before the first proof."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MilpOptions(ModelOptions):
    """Settings beside :class:`~spmilp.solvers.base.SolveOptions`.

    ``backend`` is a solver's name in PuLP: ``HiGHS``, ``CBC``, ``GUROBI``, ``CPLEX_PY`` ... A model
    is tried if it has at most ``most_whole`` variables that have to be integers.
    """

    addresses_in_model: bool | None = False
    residencies: int = 1
    most_residencies: int = 6
    backend: str = "HiGHS"
    most_whole: int = 20_000


DEFAULTS = MilpOptions()


class MilpSolver(Solver):
    """Decides cores, residencies, transfers, times and addresses together.

    The list scheduler's plan is the start: its makespan is the horizon and so every big-M, and only
    better plans are searched for. :mod:`spmilp.solvers.exact.milp` has the model and its proofs.
    """

    name = "milp"
    keeps = frozenset(PinKind)

    def __init__(self, settings: MilpOptions = DEFAULTS) -> None:
        self._settings = settings

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found, never worse than the list scheduler's or a valid hint.

        A problem whose model would be too large is refused: the status is ``unknown``, and the
        reason says how large it would be. Raises a ``SpmilpError`` if PuLP does not know the
        backend, or it is not installed, or its work has no limit.
        """
        backend = backend_name(self._settings.backend)
        if context.clock.pace.counts_work and backend != DEFAULTS.backend:
            raise SpmilpError(
                f"effort: the work of {backend} has no limit that repeats; give a time limit "
                f"instead, or take {DEFAULTS.backend}"
            )
        try:
            refuse_problem(context.problem, self._settings)
        except TooLargeError as error:
            return context.unknown(str(error))
        start = ListScheduler().search_within_pins(context)
        if start.status is SolveStatus.INFEASIBLE:
            return start
        search = MilpSearch(context, self._settings, start)
        search.backend = backend
        for plan in (start.plan, context.hint):
            if plan is not None:
                search.offer(plan)
        with context.until_interrupted(lambda: search.incumbent.plan is not None):
            try:
                if not start.interrupted:
                    search.run()
            except TooLargeError as error:
                if not search.has_run:
                    return context.unknown(str(error))
            except SolverProcessError:
                # What has been found before the solver's process fails is kept.
                if search.incumbent.plan is None:
                    raise
        return search.result((("backend", backend),))


class MilpSearch(ExactSearch[MilpOptions]):
    """The search of one solve.

    ``backend`` is PuLP's name of the solver. It ``has_run`` if any model was small enough.
    """

    name = MilpSolver.name
    backend = ""
    has_run = False

    def run(self) -> None:
        """Minimise one quantity after the other.

        Raises a ``TooLargeError`` if a model is too large.
        """
        if not all(self.tables.pools_of(task.index) for task in self.problem.tasks):
            self.conclude_infeasible()
            return
        self.find_and_prove(PLANS)
        self.break_ties()

    def can_build(self, structure: Structure, budget: Budget) -> bool:
        """Refuse a model that is too large."""
        if structure.literals > self.settings.most_whole:
            raise TooLargeError(f"about {structure.literals}", self.settings.most_whole)
        return True

    def solve(
        self, model: Model, budget: Budget, *, finds: bool = False, proves: bool = False
    ) -> Found:
        """Look for anything better than the incumbent in a model, by a MILP solver."""
        high = None if model.high is None else model.high - 1
        most, makespan = self.settings.most_whole, model.variables.makespan
        try:
            rows = Rows(model.cp, makespan, model.low, high, most, self.clock.go_on)
        except OutOfTimeError:
            return Found()
        self.has_run = True
        options, nodes = self.context.options, None
        left = self.clock.seconds_left(budget.share)
        if self.clock.pace.counts_work and left is not None:
            nodes = 1 + int(left / Step.NODE.value)
        limits = Limits(
            seconds=self.clock.engine_seconds(budget.share),
            nodes=nodes,
            threads=options.workers,
            seed=options.seed,
            gap=options.gap if finds or proves else 0.0,
        )
        outcome = run(rows.program, self.backend, limits)
        self.clock.pace.count(Step.NODE, 1 + outcome.nodes)
        found = Found(infeasible=outcome.infeasible, complete=outcome.complete, bound=outcome.bound)
        decided = None if outcome.values is None else rows.decided(outcome.values)
        if decided is not None:
            found.solutions.append(SolutionReader(model.variables, decided.value).decisions())
        if outcome.interrupted:
            self.take(found)
            raise KeyboardInterrupt
        return found


def refuse_problem(problem: Problem, settings: MilpOptions) -> None:
    """Refuse a problem by its tasks and memories alone.

    Raises a ``TooLargeError`` if every model of it would be too large: each task has a variable for
    each slice that it reads and each memory in which it may run, at the least.
    """
    reads = sum(1 + len(task.reads) for task in problem.tasks)
    count = reads * len({core.memory for core in problem.machine.cores})
    if count > settings.most_whole:
        raise TooLargeError(f"at least {count}", settings.most_whole)


SUFFIXES = (".mps", ".lp")


def write_model(
    problem: Problem,
    path: Path,
    *,
    candidates: int = 2,
    settings: MilpOptions = DEFAULTS,
    period: Cycles | None = None,
) -> None:
    """Write the model of a problem's first objective.

    Every solution of it is a plan. The list scheduler's plan, if it has one, gives the horizon and
    the greatest value allowed of the objective, which are part of the model. The same problem gives
    the same bytes. The suffix of ``path`` says in what format: ``.mps`` or ``.lp``. A slice may lie
    ``candidates`` times in one memory that is not large enough for all. The optimum of the file is
    that of the problem unless the best plans all need more. If the first objective is the period,
    the model is that of the least latency of streams with a ``period``, by default the bound on it
    (:mod:`spmilp.solvers.modulo.exact` says what it leaves out). Raises a ``SpmilpError`` if the
    suffix is another one, the model would be too large, or it is known to have no solution; and a
    ``FileError`` if the file cannot be written.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise SpmilpError(f"{path}: a model is written as {' or '.join(SUFFIXES)}")
    refuse_contradictions(problem)
    _, rows, _ = model_of(narrowed(problem).problem, candidates, settings, period)
    write_atomically(path, model_file(rows.program, path.suffix.lower()))


def model_of(
    problem: Problem,
    candidates: int = 2,
    settings: MilpOptions = DEFAULTS,
    period: Cycles | None = None,
) -> tuple[Model, Rows, Cycles | None]:
    """Return the model that :func:`write_model` writes, its rows, and the period of a stream.

    The problem is a narrowed one. Raises the same ``SpmilpError``.
    """
    refuse_problem(problem, settings)
    impossible = "no plan exists, so there is no model to write"
    if problem.objective.first is Quantity.PERIOD:
        period = period or period_bound(problem).value
        model = model_of_streams(problem, period, candidates)
        impossible = f"the model has no stream of period {period:,}; give a longer period"
    else:
        model, period = _model_of_plans(problem, candidates, settings), None
    rows = Rows(model.cp, model.variables.makespan, model.low, model.high, settings.most_whole)
    if rows.program.is_impossible:
        raise SpmilpError(f"{problem.name}: {impossible}")
    return model, rows, period


def _model_of_plans(problem: Problem, candidates: int, settings: MilpOptions) -> Model:
    """Return the model of a first objective that a plan for one inference has."""
    context = SearchContext(problem, SolveOptions())
    start = ListScheduler().search_within_pins(context)
    known = replace(settings, addresses_in_model=True, residencies=candidates)
    search = MilpSearch(context, known, start)
    search.builder.ample = False
    if start.plan is not None:
        search.offer(start.plan)
    return search.model(search.structure(relaxed=False), 0)
