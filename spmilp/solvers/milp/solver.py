"""The MILP solver: the whole problem as a mixed-integer program, through PuLP.

Or the model as a file, for a solver of the user's own.
"""

from pathlib import Path

from spmilp.errors import SpmilpError
from spmilp.files import write_atomically
from spmilp.plan.measures import claimed
from spmilp.problem.contradictions import refuse_contradictions
from spmilp.problem.objective import Quantity
from spmilp.problem.pins import PinKind
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.narrow import narrowed
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.milp.model import Aim, Model, cycles_in_turn
from spmilp.solvers.milp.options import MilpOptions, TooLargeError, refuse_problem, refuse_structure
from spmilp.solvers.milp.process import SolverProcessError, backend_name, model_file
from spmilp.solvers.milp.search import NAME, MilpSearch
from spmilp.solvers.milp.structure import structure_of
from spmilp.solvers.milp.tables import MilpTables

DEFAULTS = MilpOptions()


class MilpSolver(Solver):
    """Decides cores, residencies, transfers, times and addresses together.

    The list scheduler's plan is the start: its makespan is the horizon and so every big-M, and only
    better plans are searched for. See :mod:`spmilp.solvers.milp` for the model and its proofs.
    """

    name = NAME
    keeps = frozenset(PinKind)

    def __init__(self, settings: MilpOptions = DEFAULTS) -> None:
        self._settings = settings

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found, never worse than the list scheduler's or a valid hint.

        A problem whose model would be too large is refused: the status is ``unknown``, and the
        reason says how large it would be.

        Raises
        ------
        SpmilpError
            If PuLP does not know the backend, or it is not installed.
        """
        backend = backend_name(self._settings.backend)
        try:
            refuse_problem(context.problem, self._settings)
            return self._solve(context, backend)
        except TooLargeError as error:
            return context.unknown(str(error))

    def _solve(self, context: SearchContext, backend: str) -> SolverResult:
        start = ListScheduler().search_within_pins(context)
        if start.status is SolveStatus.INFEASIBLE:
            return start
        search = MilpSearch(context, self._settings, backend)
        for plan in (start.plan, context.hint):
            if plan is not None:
                search.offer(plan)
        with context.until_interrupted(lambda: search.incumbent.plan is not None):
            if not start.interrupted:
                self._run(search)
        reason = start.reason or "a limit was reached before a plan was found"
        return search.result(reason)

    def _run(self, search: MilpSearch) -> None:
        """Search; what has been found before the solver's process fails is kept."""
        try:
            search.run()
        except SolverProcessError:
            if search.incumbent.plan is None:
                raise


SUFFIXES = (".mps", ".lp")


def write_model(
    problem: Problem, path: Path, *, candidates: int = 2, settings: MilpOptions = DEFAULTS
) -> None:
    """Write the model of a problem's first objective.

    Every solution of it is a plan. The list scheduler's plan, if it has one, gives the horizon and
    the greatest value allowed of the objective, which are part of the model. The same problem gives
    the same bytes.

    Parameters
    ----------
    path
        Its suffix says in what format: ``.mps`` or ``.lp``.
    candidates
        How often a transfer may bring a slice into one memory that is not large enough for all.
        The optimum of the file is that of the problem unless the best plans all need more.

    Raises
    ------
    SpmilpError
        If the suffix is another one, the model would be too large, or it is known to have no
        solution.
    FileError
        If the file cannot be written.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise SpmilpError(f"{path}: a model is written as {' or '.join(SUFFIXES)}")
    refuse_problem(problem, settings)
    refuse_contradictions(problem)
    problem = narrowed(problem).problem
    model = _model_to_write(problem, candidates, settings)
    if model.program.is_impossible:
        raise SpmilpError(f"{problem.name}: no plan exists, so there is no model to write")
    write_atomically(path, model_file(model.program, path.suffix.lower()))


def _model_to_write(problem: Problem, candidates: int, settings: MilpOptions) -> Model:
    quantity = problem.objective.first
    tables = MilpTables(problem)
    structure = structure_of(
        tables,
        dict.fromkeys(tables.pairs, candidates),
        relaxed=False,
        addressed=quantity is Quantity.PEAK_SPM,
    )
    refuse_structure(structure, settings)
    context = SearchContext(problem, SolveOptions())
    start = ListScheduler().search_within_pins(context)
    horizon, ceiling = cycles_in_turn(tables, structure), None
    if start.plan is not None:
        ceiling = claimed(start.plan.claim).of(quantity)
        if quantity is Quantity.MAKESPAN:
            horizon = ceiling
    aim = Aim(quantity=quantity, ceilings={}, floor=start.bound, ceiling=ceiling, horizon=horizon)
    return Model(tables, structure, aim)
