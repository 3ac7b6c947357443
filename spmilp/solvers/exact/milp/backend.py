"""The interface to PuLP: from a program to values and a proven bound, in a process of its own.

Only that process (:mod:`.process`) imports this module.

PuLP 3 and 4 will do. Of HiGHS, which runs inside the process, the status, the solution and the dual
bound are read from HiGHS itself. Of a solver that only PuLP talks to there is no bound, unless it
says that it has found the optimum. PuLP 3 calls a run ``Optimal`` that a limit has stopped with a
solution, so its status is never taken alone: a run is complete only if the state of the solution
says so too.
"""

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from inspect import signature
from math import ceil, isfinite
from pathlib import Path
from time import monotonic
from typing import Any

import pulp

from spmilp.errors import SpmilpError
from spmilp.processes import stoppably
from spmilp.solvers.exact.milp.program import Limits, Linear, Outcome, Program

HIGHS = "HiGHS"
CLASSES = {
    "highs": (HIGHS,),
    "cbc": ("PULP_CBC_CMD", "COIN_CMD"),
    "gurobi": ("GUROBI", "GUROBI_CMD"),
    "cplex": ("CPLEX_PY", "CPLEX_CMD"),
    "scip": ("SCIP_PY", "SCIP_CMD"),
    "xpress": ("XPRESS_PY", "XPRESS"),
    "copt": ("COPT", "COPT_CMD"),
    "mosek": ("MOSEK",),
    "glpk": ("GLPK_CMD",),
}
"""The classes that PuLP has for solvers with a name of their own; the first one installed is taken.
Every other class goes by PuLP's name for it."""

TOLERANCE = 1e-5
"""How far a bound on a whole number may lie below it for the solver's arithmetic."""


def backend_name(name: str) -> str:
    """Return the name that PuLP has for a solver: see :func:`.process.backend_name`."""
    known = {one.lower(): (one,) for one in pulp.listSolvers()} | CLASSES
    if name.lower() not in known:
        raise SpmilpError(f"PuLP knows no solver named {name!r}; it knows {', '.join(known)}")
    for one in known[name.lower()]:
        if one in pulp.listSolvers() and pulp.getSolver(one, msg=False).available():
            return one
    able = ", ".join(pulp.listSolvers(onlyAvailable=True))
    raise SpmilpError(f"the solver {name} is not installed; install it, or take one of {able}")


def run(program: Program, backend: str, limits: Limits) -> Outcome:
    """Let a solver minimise the objective of a program."""
    began = monotonic()
    if program.is_impossible:
        return Outcome(infeasible=True, complete=True)
    if not program.rows:
        return _without_rows(program)
    problem, variables = to_pulp(program)
    if backend == HIGHS:
        return _run_highs(program, problem, variables, limits, began)
    return _run_other(program, problem, variables, backend, limits.since(began))


def _without_rows(program: Program) -> Outcome:
    """Return each variable at its better bound; of a model without rows HiGHS gives no values."""
    terms = program.objective.terms
    values = {v.index: v.high if terms.get(v.index, 0) < 0 else v.low for v in program.variables}
    found: list[float] = [values[variable.index] for variable in program.variables]
    return Outcome(values=found, bound=program.objective.value(values), complete=True)


def to_pulp(program: Program) -> tuple[Any, dict[int, Any]]:
    """Return the program as PuLP has it, with those of its variables that some row has.

    The files that PuLP writes for a solver have no column for the others.
    """
    problem = pulp.LpProblem("spmilp", pulp.LpMinimize)
    used = set(program.objective.terms).union(*(row.left.terms for row in program.rows))
    variables = {
        one.index: _new_variable(problem, one.name, one.low, one.high, whole=one.whole)
        for one in program.variables
        if one.index in used
    }

    # PuLP 4 makes expressions and rows in other ways than PuLP 3, but compares them alike.
    make = getattr(pulp.LpAffineExpression, "from_list", pulp.LpAffineExpression)

    def expression(left: Linear) -> Any:
        return make([(variables[i], c) for i, c in left.terms.items()])

    problem += expression(program.objective)
    for row in program.rows:
        if row.left.terms:
            left, right = expression(row.left), -row.left.constant
            problem += left == right if row.equal else left >= right
    return problem, variables


def model_file(program: Program, suffix: str) -> bytes:
    """Return the bytes of a program as a file of that format, ``.lp`` or ``.mps``."""
    problem, _ = to_pulp(program)
    constant = program.objective.constant
    if constant:
        # Neither format keeps a constant in every reader; a variable that is 1 does.
        problem.objective += constant * _new_variable(problem, "constant", 1, 1, whole=False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"model{suffix}"
        write = problem.writeLP if suffix == ".lp" else problem.writeMPS
        write(str(file))
        return file.read_bytes()


def _new_variable(problem: Any, name: str, low: int, high: int, *, whole: bool) -> Any:
    """Return a variable of a PuLP problem; PuLP 4 has none that are made without a problem."""
    make = getattr(problem, "add_variable", pulp.LpVariable)
    return make(name, low, high, pulp.LpInteger if whole else pulp.LpContinuous)


def _values(program: Program, variables: Mapping[int, Any]) -> list[float]:
    """Return the values of all variables; of one that no row has, its least one."""
    return [
        variables[one.index].varValue or 0.0 if one.index in variables else one.low
        for one in program.variables
    ]


def _run_highs(
    program: Program, problem: Any, variables: dict[int, Any], limits: Limits, began: float
) -> Outcome:
    import highspy

    solver = pulp.HiGHS(
        msg=False,
        gapRel=limits.gap,
        gapAbs=0.0,
        presolve="off",
        threads=limits.threads,
        random_seed=limits.seed % 2**31,
    )
    # With presolve, HiGHS 1.15 has called one of our tiny models infeasible that has a solution;
    # the same is told of other models and releases (its issues 1164, 1958, 2388, 2585 and 3090).
    # One scheduler serves the whole process, and keeps the number of threads of its first run.
    highspy.Highs.resetGlobalScheduler(True)
    solver.createAndConfigureSolver(problem)
    highs = problem.solverModel
    highs.HandleUserInterrupt = True
    solver.buildSolverModel(problem)
    left = limits.since(began).seconds
    if left is not None:
        highs.setOptionValue("time_limit", left)
    if limits.nodes is not None:
        highs.setOptionValue("mip_max_nodes", limits.nodes)
    _, interrupted = stoppably(lambda: solver.callSolver(problem), highs.cancelSolve)
    status, known = highs.getModelStatus(), highspy.HighsModelStatus
    info = highs.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    if found:
        # When its values are read, PuLP 3 has no name for the status at a limit of nodes.
        with suppress(KeyError):
            solver.findSolutionValues(problem)
    complete = status == known.kOptimal
    bound = (
        info.mip_dual_bound
        if any(v.whole for v in program.variables)
        else (info.objective_function_value if complete else -float("inf"))
    )
    return Outcome(
        values=_values(program, variables) if found else None,
        bound=_whole(bound) + program.objective.constant if isfinite(bound) else None,
        infeasible=status in (known.kInfeasible, known.kUnboundedOrInfeasible),
        complete=complete,
        interrupted=interrupted,
        nodes=max(0, info.mip_node_count),
    )


def _run_other(
    program: Program, problem: Any, variables: dict[int, Any], backend: str, limits: Limits
) -> Outcome:
    solver = pulp.getSolver(backend, **_settings(backend, limits))
    try:
        answer = problem.solve(solver)
    except KeyboardInterrupt:
        return Outcome(interrupted=True)
    except pulp.PulpSolverError as error:
        raise SpmilpError(f"the solver {backend} failed: {error}") from error
    complete, found, infeasible = _how_it_ended(problem, answer)
    values = _values(program, variables) if found else None
    bound = None
    if complete and values is not None:
        objective = program.objective
        value = objective.constant + sum(c * values[index] for index, c in objective.terms.items())
        bound = _whole(value - limits.gap * abs(value))
    return Outcome(
        values=values, bound=bound, infeasible=infeasible and not found, complete=complete
    )


def _how_it_ended(problem: Any, answer: Any) -> tuple[bool, bool, bool]:
    """Return whether a run has found the optimum, whether a solution, and whether none exists.

    ``answer`` is what PuLP returns of the run: PuLP 3 a number, PuLP 4 a record. An optimum within
    the gap that was asked for has a status of its own in PuLP 4.
    """
    if isinstance(answer, int):
        state = problem.sol_status
        complete = answer == pulp.LpStatusOptimal and state == pulp.LpSolutionOptimal
        found = complete or state == pulp.LpSolutionIntegerFeasible
        return complete, found, answer == pulp.LpStatusInfeasible
    known, status, found = pulp.LpSolveStatus, answer.status, answer.has_solution
    complete = found and status in (known.Optimal, known.GapLimit)
    return complete, found, status == known.Infeasible


def _settings(backend: str, limits: Limits) -> dict[str, Any]:
    """Return the settings that the class of a solver takes: not all take all."""
    seconds = limits.seconds
    if backend == "GLPK_CMD" and seconds is not None:
        seconds = ceil(seconds)  # glpsol reads whole numbers alone
    wanted = {"msg": False, "timeLimit": seconds, "gapRel": limits.gap, "threads": limits.threads}
    known = signature(type(pulp.getSolver(backend))).parameters
    return {name: value for name, value in wanted.items() if name in known}


def _whole(bound: float) -> int:
    """Round a bound on a whole number up, with tolerance for the solver's arithmetic."""
    return ceil(bound - TOLERANCE - 1e-9 * abs(bound))
