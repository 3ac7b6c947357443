"""A plan and its problem as two files in one folder."""

from pathlib import Path

from spmilp.errors import FileError
from spmilp.plan.plan import Plan
from spmilp.plan.read import read_plan
from spmilp.plan.write import write_plan
from spmilp.problem.problem import Problem
from spmilp.problem.read import read_problem
from spmilp.problem.write import write_problem

PROBLEM_FILE = "problem.json"
PLAN_FILE = "plan.json"


def write_pair(problem: Problem, plan: Plan, folder: Path, prefix: str = "") -> tuple[Path, Path]:
    """Write ``problem.json`` and ``plan.json`` into a folder, and return their paths.

    Raises
    ------
    ValueError
        If the plan has a number that the format cannot hold.
    FileError
        If the folder cannot be written.
    """
    problem_file, plan_file = folder / (prefix + PROBLEM_FILE), folder / (prefix + PLAN_FILE)
    sha256 = write_problem(problem, problem_file)
    write_plan(plan, problem, plan_file, problem_sha256=sha256)
    return problem_file, plan_file


def open_pair(plan_file: Path, problem_file: Path | None = None) -> tuple[Problem, Plan]:
    """Read a plan and its problem, by default the ``problem.json`` beside it.

    Raises
    ------
    FileError
        If one cannot be read, or the plan was made for another problem.
    """
    beside = problem_file or plan_file.with_name(PROBLEM_FILE)
    if not plan_file.exists():
        raise FileError(f"{plan_file}: no such file")
    if not beside.exists():
        raise FileError(
            f"{beside}: no such file; a plan is read with its problem: name it with --problem"
        )
    problem = read_problem(beside)
    return problem, read_plan(plan_file, problem)
