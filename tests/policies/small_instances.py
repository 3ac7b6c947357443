"""The problems on which every policy is tried: the instances of up to 30 tasks."""

from pathlib import Path

from spmilp.problem.file import read_problem
from spmilp.problem.problem import Problem

INSTANCES = Path(__file__).parents[2] / "instances" / "problems"


def tasks_in(path: Path) -> int:
    """Return the number of tasks that a file's name states."""
    return next(int(part[:-1]) for part in path.stem.split("-") if part[:-1].isdigit())


SMALL = tuple(path.stem for path in sorted(INSTANCES.glob("*.json")) if tasks_in(path) <= 30)


def small_instance(name: str) -> Problem:
    return read_problem(INSTANCES / f"{name}.json")
