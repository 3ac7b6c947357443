"""The model as a file, for a solver of the user's own."""

from pathlib import Path

from spmilp.errors import SpmilpError
from spmilp.files import write_atomically
from spmilp.plan.measures import claimed
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.milp.model import Aim, Model, cycles_in_turn
from spmilp.solvers.milp.options import MilpOptions, refuse_problem, refuse_structure
from spmilp.solvers.milp.process import model_file
from spmilp.solvers.milp.structure import structure_of
from spmilp.solvers.milp.tables import MilpTables

SUFFIXES = (".mps", ".lp")

DEFAULTS = MilpOptions()


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
    model = _model(problem, candidates, settings)
    if model.program.is_impossible:
        raise SpmilpError(f"{problem.name}: no plan exists, so there is no model to write")
    write_atomically(path, model_file(model.program, path.suffix.lower()))


def _model(problem: Problem, candidates: int, settings: MilpOptions) -> Model:
    quantity = problem.objective.first
    tables = MilpTables(problem)
    structure = structure_of(
        tables,
        dict.fromkeys(tables.pairs, candidates),
        relaxed=False,
        addressed=quantity is Quantity.PEAK_SPM,
    )
    refuse_structure(structure, settings)
    start = ListScheduler().solve(problem, SolveOptions())
    horizon, ceiling = cycles_in_turn(tables, structure), None
    if start.plan is not None:
        ceiling = claimed(start.plan.claim).of(quantity)
        if quantity is Quantity.MAKESPAN:
            horizon = ceiling
    aim = Aim(quantity=quantity, ceilings={}, floor=start.bound, ceiling=ceiling, horizon=horizon)
    return Model(tables, structure, aim)
