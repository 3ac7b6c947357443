"""The model as a file."""

import subprocess
import sys
from pathlib import Path

import pytest

from spmilp.errors import SpmilpError
from spmilp.solvers.base import SolveOptions, SolveStatus
from spmilp.solvers.milp.options import MilpOptions
from spmilp.solvers.milp.solver import MilpSolver, write_model
from tests.solvers.tiny_problems import tiny_problem

SOLVE = """
import sys
import highspy

highs = highspy.Highs()
highs.silent()
assert highs.readModel(sys.argv[1]) == highspy.HighsStatus.kOk
highs.setOptionValue("presolve", "off")
highs.setOptionValue("mip_rel_gap", 0.0)
highs.run()
assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
print(highs.getObjectiveValue())
"""
"""HiGHS in a process of its own, for OR-Tools may be in this one."""


def optimum(file: Path) -> float:
    """Return the least objective that HiGHS finds for the model of a file."""
    command = [sys.executable, "-c", SOLVE, str(file)]
    return float(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
@pytest.mark.parametrize("number", [112, 109, 78, 3])
def test_read_back_the_model_has_the_optimum_of_the_problem(
    tmp_path: Path, number: int, suffix: str
) -> None:
    problem = tiny_problem(number)
    result = MilpSolver().solve(problem, SolveOptions())
    assert result.status is SolveStatus.OPTIMAL

    write_model(problem, tmp_path / f"model{suffix}")

    assert optimum(tmp_path / f"model{suffix}") == pytest.approx(result.bound)


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
def test_the_same_problem_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    files = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for file in files:
        write_model(tiny_problem(112), file)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpmilpError, match=r"model\.txt: a model is written as \.mps or \.lp"):
        write_model(tiny_problem(112), tmp_path / "model.txt")
    assert list(tmp_path.iterdir()) == []


def test_what_is_too_large_leaves_an_older_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "model.mps"
    file.write_text("older")

    with pytest.raises(SpmilpError, match="integer variables > 20; use the solver cpsat"):
        write_model(tiny_problem(112), file, settings=MilpOptions(most_whole=20))

    assert file.read_text() == "older"
