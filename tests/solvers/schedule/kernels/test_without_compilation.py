"""The list scheduler as plain Python gives the plan that compiled code gives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

PROGRAM = """
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.kernels.generate import generate_schedule
from spmilp.solvers.schedule.solver import ListScheduler
from tests.solvers.chains import chain, star
print(hasattr(generate_schedule, "__wrapped__"))
for spm in (896, 4096):
    print(ListScheduler().solve(chain(star(4, spm), layers=3, strips=4), SolveOptions(seed=0)))
"""


def answers(disabled: str) -> tuple[str, str]:
    """Return whether the scheduler was compiled, and what it found."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parents[4],
        env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
        check=True,
        capture_output=True,
        text=True,
    )
    compiled, _, found = done.stdout.partition("\n")
    return compiled, found


def test_plain_python_and_compiled_code_find_the_same_plans() -> None:
    compiled, found = answers("0")
    plain, found_plainly = answers("1")
    assert (compiled, plain) == ("True", "False")
    assert found_plainly == found
    assert found.count("Placement(") == 2 * 3 * 4
