"""Solutions of written models: what solvers write, every form of file, and files that are wrong."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pulp
import pytest

from spmilp.checker.check import check
from spmilp.errors import FileError
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions, SolverResult
from spmilp.solvers.exact.milp.process import run
from spmilp.solvers.exact.milp.program import Limits
from spmilp.solvers.exact.milp.solution import SolutionSolver
from spmilp.solvers.exact.milp.solver import model_of, write_model
from spmilp.solvers.modulo.solver import of_period
from tests.bounds.test_period import random_problem
from tests.solvers.tiny_problems import tiny_problem

HIGHS = """
import highspy, sys
highs = highspy.Highs()
highs.setOptionValue("presolve", "off")
highs.readModel(sys.argv[1])
highs.run()
highs.writeSolution(sys.argv[2], 0)
"""
CBC = """
import pulp, subprocess, sys
cbc = pulp.PULP_CBC_CMD().path
subprocess.run([cbc, sys.argv[1], "solve", "solution", sys.argv[2]], check=True)
"""
STREAM = of_period(random_problem(8))


def plan_of(problem: Problem, file: Path, period: int | None = None) -> SolverResult:
    result = SolutionSolver(file, period).solve(problem, SolveOptions())
    assert result.plan is not None
    assert check(problem, result.plan) == ()
    return result


CASES = {
    "peak-highs": (tiny_problem(3), None, (36,), HIGHS),
    "peak-cbc": (tiny_problem(3), None, (36,), CBC),
    "stream-highs": (STREAM, 15, (15, 24), HIGHS),
    "stream-cbc": (STREAM, 15, (15, 24), CBC),
    "makespan-highs": (tiny_problem(104), None, (53,), HIGHS),
    "makespan-cbc": (tiny_problem(104), None, (53,), CBC),
}
QUICK = ("peak-highs", "peak-cbc", "stream-highs")


@pytest.mark.parametrize("suffix", [".mps", pytest.param(".lp", marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "case", [pytest.param(n, marks=() if n in QUICK else pytest.mark.full) for n in CASES]
)
def test_what_other_solvers_write_becomes_a_plan_of_their_objective(
    tmp_path: Path, case: str, suffix: str
) -> None:
    problem, period, values, script = CASES[case]
    if script is CBC and not hasattr(pulp, "PULP_CBC_CMD"):
        pytest.skip("the solver cbc is not installed: PuLP 3 brings it along")
    model, solution = tmp_path / f"model{suffix}", tmp_path / "model.sol"
    write_model(problem, model, period=period)
    command = [sys.executable, "-c", script, str(model), str(solution)]
    subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)

    plan = plan_of(problem, solution, period).plan

    order = problem.objective.order
    assert tuple(plan.claim.of(quantity) for quantity in order)[: len(values)] == values


PROBLEM = tiny_problem(4)
"""Its model has two dozen variables."""


@pytest.fixture(scope="module")
def values() -> dict[str, float]:
    _, rows, _ = model_of(PROBLEM)
    found = run(rows.program, "HiGHS", Limits(seconds=60, threads=1, seed=0)).values
    assert found is not None
    return {one.name: found[one.index] for one in rows.program.variables}


def cbc(values: dict[str, float]) -> str:
    rows = [
        f"{n:7} {name} {value:.15g} 0" for n, (name, value) in enumerate(values.items()) if value
    ]
    return "\n".join(["Optimal - objective value 31.0", *rows])


def gurobi(values: dict[str, float]) -> str:
    return "# Objective value = 31\n" + "\n".join(f"{n} {v:.15g}" for n, v in values.items())


def scip(values: dict[str, float]) -> str:
    rows = [f"{name}   {value:.15g} \t(obj:0)" for name, value in values.items() if value]
    return "solution status: optimal solution found\nobjective value:   31\n" + "\n".join(rows)


def cplex(values: dict[str, float]) -> str:
    rows = "".join(f'<variable name="{n}" index="0" value="{v}"/>\n' for n, v in values.items())
    header = '<header objectiveValue="31" solutionStatusString="integer optimal solution"/>'
    return f'<?xml version="1.0"?>\n<CPLEXSolution>{header}<variables>{rows}</variables>'


def highs(values: dict[str, float]) -> str:
    rows = "\n".join(f"{name} {value:.15g}" for name, value in values.items())
    head = "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 31\n"
    return f"{head}# Columns {len(values)}\n{rows}\n# Rows 1\nR0 3\n"


@pytest.mark.parametrize("form", [cbc, gurobi, scip, cplex, highs])
def test_all_forms_give_the_same_plan_and_say_where_the_objective_differs(
    form: Callable[[dict[str, float]], str], values: dict[str, float], tmp_path: Path
) -> None:
    file, heard = tmp_path / "a.sol", list[str]()
    file.write_text(form(values))
    result = SolutionSolver(file).solve(PROBLEM, SolveOptions(on_warning=heard.append))
    assert result.plan is not None
    assert check(PROBLEM, result.plan) == ()
    assert (result.plan.claim.makespan, result.plan.options) == (30, (("solution", "a.sol"),))
    assert heard == [
        f"{file}: its makespan is 31, that of the plan 30: times and addresses are as early and as "
        "low as the decisions allow"
    ]


WRONG = [
    ("", "no solution: no line has the name and value of a variable"),
    ("Model status\nInfeasible\n\n# Primal solution values\nNone\n", "it says 'Infeasible'"),
    ("Infeasible - objective value 3.0\n 0 makespan_0 1 0", "it says 'Infeasible'"),
    ("Stopped on time (no integer solution - continuous used)\n 0 a 1 0", "'no integer solution'"),
    ("solution status: infeasible\nno solution available", "it says 'infeasible'"),
    (
        "x0 1\nx1 2",
        "'x0' is none of the model's 32 variables. It is of another model: give the pro",
    ),
    ("# Columns 3\na 1\nb 2\n# Rows 0", "3 columns announced, 2 found; it is cut"),
    ("# Columns 1\ntask0_in_pool0_0 1\n", "is missing; it has 1 of 32"),
    ("task0_in_pool0_0 0.5", "task0_in_pool0_0 is 0.5, expected an integer; let the solver solve"),
    ("task0_in_pool0_0 nan", "task0_in_pool0_0 is nan; expected 0 to 1"),
    ("task0_in_pool0_0 1e9", "task0_in_pool0_0 is 1e+09; expected 0 to 1"),
    ("task0_in_pool0_0 1", "(left out); expected"),
]


@pytest.mark.parametrize(("text", "said"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_file_is_refused_with_what_to_do(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.sol"
    file.write_text(text)
    with pytest.raises(FileError, match=re.escape(said)) as caught:
        SolutionSolver(file).solve(PROBLEM, SolveOptions())
    assert str(caught.value).startswith(f"{file}: ")


def test_decisions_that_contradict_each_other_are_no_plan(
    values: dict[str, float], tmp_path: Path
) -> None:
    file = tmp_path / "a.sol"
    file.write_text(gurobi({**values, "slice1_memory0_number0_3": 0.0}))
    with pytest.raises(FileError, match="no plan has these values of its integer variables"):
        SolutionSolver(file).solve(PROBLEM, SolveOptions())
