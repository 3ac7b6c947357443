"""Problems by name, for the scripts beside this one."""

from pathlib import Path

from spmilp.pipeline import problem_of
from spmilp.problem.file import read_problem
from spmilp.problem.problem import Problem


def problem_named(name: str) -> Problem:
    """Return the problem of a file, or of a model and a machine: ``model.onnx@edge16``."""
    if name.endswith(".json"):
        return read_problem(Path(name))
    model, _, machine = name.rpartition("@")
    return problem_of(model, machine)


def short(name: str) -> str:
    """Return what to call it in a table."""
    return Path(name).name
