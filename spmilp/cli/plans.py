"""Opening a plan together with the problem that it answers."""

from pathlib import Path

from spmilp.errors import FileError
from spmilp.plan.plan import Plan
from spmilp.plan.read import read_plan
from spmilp.problem.problem import Problem
from spmilp.problem.read import read_problem


def open_plan(plan_file: Path, problem_file: Path | None) -> tuple[Problem, Plan]:
    """Read a plan and its problem, by default the ``problem.json`` beside it.

    Raises
    ------
    FileError
        If one cannot be read, or the plan was made for another problem.
    """
    beside = problem_file or plan_file.with_name("problem.json")
    if not plan_file.exists():
        raise FileError(f"{plan_file}: no such file")
    if not beside.exists():
        raise FileError(
            f"{beside}: no such file; a plan is read with its problem: name it with --problem"
        )
    problem = read_problem(beside)
    return problem, read_plan(plan_file, problem)
