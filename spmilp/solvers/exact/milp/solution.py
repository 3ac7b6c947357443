"""Solutions of written models: a ``.sol`` file of some MILP solver, and the plan that it is.

Read are the files of HiGHS, CBC, Gurobi, SCIP and CPLEX. Of a solution only the integer variables
are taken (:meth:`~spmilp.solvers.exact.milp.rows.Rows.decided`); times and addresses are computed
from them exactly. What the file says of optimality proves nothing: bounds are our own.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from spmilp.errors import FileError
from spmilp.files import read_bytes
from spmilp.formats import shown
from spmilp.problem.objective import Objective, Quantity
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.formulation.addresses import Addresses, find_addresses
from spmilp.solvers.exact.formulation.extraction import extract
from spmilp.solvers.exact.formulation.translation import SolutionReader
from spmilp.solvers.exact.milp.program import Program
from spmilp.solvers.exact.milp.solver import MilpSolver, model_of
from spmilp.solvers.modulo.exact import PeriodSearch
from spmilp.solvers.schedule.solver import ListScheduler
from spmilp.units import Cycles

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+|inf|nan)(?:e[-+]?\d+)?"
VALUE = re.compile(rf"(?:\*\*)?\s*(?:\d+\s+)?([a-z_]\S*)\s+({NUMBER})(?:\s.*)?", re.IGNORECASE)
"""A line: CBC has a number before the name, and ``**`` where it breaks something."""

XML_VALUE = re.compile(rf'<variable [^>]*\bname="([^"]*)"[^>]*\bvalue="({NUMBER})"', re.IGNORECASE)
OBJECTIVE = re.compile(rf"objective ?(?:value)?\s*[:=]?[\s\"]*({NUMBER})", re.IGNORECASE)
FAILED = re.compile(r"infeasible|unbounded|no (?:integer )?solution|not solved", re.IGNORECASE)
COLUMNS = re.compile(r"# Columns (\d+)")

NEAR = 1e-4
"""How far the value of an integer variable may be from an integer, or beyond its bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MilpSolution:
    """The content of a file: values by name, and the objective if it is there.

    It is ``complete`` if it has all variables; else it leaves out those that are 0.
    """

    file: Path
    values: dict[str, float]
    objective: float | None
    complete: bool

    def of(self, program: Program) -> list[float]:
        """Return the value of each variable.

        Raises a ``FileError`` if one is missing, not whole, or out of its bounds, and if one is
        none of the program's.
        """
        used = set(program.objective.terms).union(*(row.left.terms for row in program.rows))
        names = {one.name for one in program.variables if one.index in used}
        strange = self.values.keys() - {"constant", *(one.name for one in program.variables)}
        if strange:
            self.refuse(f"{shown(min(strange))} is none of the model's {len(names)} variables")
        if self.complete and names - self.values.keys():
            lacking = min(names - self.values.keys())
            self.refuse(f"{lacking} is missing; it has {len(self.values)} of {len(names)}")
        found = []
        for one in program.variables:
            value = self.values.get(one.name, 0.0 if one.index in used else one.low)
            slack = NEAR * max(1, abs(one.low), abs(one.high))
            if not one.low - slack <= value <= one.high + slack:
                left_out = " (left out)" * (one.name not in self.values)
                self.refuse(f"{one.name} is {value:g}{left_out}; expected {one.low} to {one.high}")
            if one.whole and abs(value - round(value)) > NEAR:
                raise FileError(
                    f"{self.file}: {one.name} is {value:g}, expected an integer; let the solver "
                    "solve the integer program, not its relaxation"
                )
            found.append(value)
        return found

    def refuse(self, said: str) -> NoReturn:
        """Raise a ``FileError`` that says why it is no solution of a model."""
        raise FileError(
            f"{self.file}: {said}. It is of another model: give the problem.json that was saved "
            "when the model was written and the same --period, and let the solver keep all names"
        )


class SolutionSolver(Solver):
    """Returns the plan that a solution of a problem's written model is.

    With the period as the first objective, it is a stream with a ``period``, by default the bound.
    """

    name = MilpSolver.name
    keeps = MilpSolver.keeps

    def __init__(self, file: Path, period: Cycles | None = None) -> None:
        self._solution = read_solution(file)
        self._period = period

    def search(self, context: SearchContext) -> SolverResult:
        """Return the plan, with a warning if its objective is another one than the file's.

        Raises a ``FileError`` if the file has no solution of this model.
        """
        solution, problem = self._solution, context.problem
        model, rows, period = model_of(problem, period=self._period)
        decided = rows.decided(solution.of(rows.program))
        if decided is None:
            solution.refuse("no plan has these values of its integer variables")
        counted = problem.objective.first
        if period is not None:
            counted = Quantity.MAKESPAN
            once = replace(problem, objective=Objective())
            known = ListScheduler().solve(once, context.options).plan
            plan = known and PeriodSearch(context, known).read(model, decided, period)
        else:
            tables, bound = model.variables.tables, context.bound
            timed = extract(tables, SolutionReader(model.variables, decided.value).decisions())
            found = find_addresses(tables, timed, low=counted is Quantity.PEAK_SPM)
            packed = found if isinstance(found, Addresses) else None
            plan = packed.plan(tables, timed, bound, self.name) if packed else None
        if plan is None:
            return context.unknown(f"{solution.file}: its plan has no addresses")
        value, said = plan.claim.of(counted), solution.objective
        if said is not None and abs(value - said) >= 0.5:
            context.options.on_warning(
                f"{solution.file}: its {counted} is {said:g}, that of the plan {value}: times and "
                "addresses are as early and as low as the decisions allow"
            )
        return context.found(plan, solver=self.name, options=(("solution", solution.file.name),))


def read_solution(file: Path) -> MilpSolution:
    """Read a file; raises a ``FileError`` if it cannot be read or has no feasible solution."""
    text = read_bytes(file).decode(errors="replace")
    columns = COLUMNS.search(text)
    if "<CPLEXSolution" in text:
        pairs, head = XML_VALUE.findall(text), text.partition("<variables")[0]
    else:
        head, _, body = text.partition(columns[0]) if columns else ("", "", text)
        # Behind the columns HiGHS has rows and dual values.
        lines = [one.strip() for one in (body.split("\n#")[0] if columns else body).splitlines()]
        matches = [VALUE.fullmatch(line) for line in lines]
        pairs = [(one[1], one[2]) for one in matches if one]
        head += "\n".join(line for line, one in zip(lines, matches, strict=True) if not one)
    failed, objective = FAILED.search(head), OBJECTIVE.search(head)
    if failed or not pairs:
        why = f"it says {failed[0]!r}" if failed else "no line has the name and value of a variable"
        raise FileError(
            f"{file}: no solution: {why}; expected a file of HiGHS, CBC, Gurobi, SCIP or CPLEX"
        )
    if columns and len(pairs) != int(columns[1]):
        raise FileError(f"{file}: {columns[1]} columns announced, {len(pairs)} found; it is cut")
    return MilpSolution(
        file=file,
        values={name: float(value) for name, value in pairs},
        objective=float(objective[1]) if objective else None,
        complete=columns is not None,
    )
