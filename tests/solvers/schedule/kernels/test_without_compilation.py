"""As plain Python the list scheduler and the packing search give what compiled code gives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SCHEDULES = """
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.kernels.generate import generate_schedule
from spmilp.solvers.schedule.solver import ListScheduler
from tests.solvers.chains import chain, star
print(hasattr(generate_schedule, "__wrapped__"))
for spm in (896, 4096):
    print(ListScheduler().solve(chain(star(4, spm), layers=3, strips=4), SolveOptions(seed=0)))
"""
PACKINGS = """
from dataclasses import replace
from random import Random
from spmilp.packing import minimise, pack
from spmilp.solvers.schedule.kernels.generate import generate_schedule
from tests.packing.random_problems import plain_problem, rich_problem
from tests.packing.searching import search_alone
print(hasattr(generate_schedule, "__wrapped__"))
for seed in range(12):
    for problem in (plain_problem(Random(seed), 9), rich_problem(Random(seed))):
        try:
            least = minimise(problem)
        except ValueError as error:
            print(error)
            continue
        print(least.status, least.offsets, least.bound, least.nodes)
        for less in (0, 1) if least.height else ():
            asked = replace(problem, capacity=least.height - less)
            packing, searched = pack(asked), search_alone(asked)
            print(packing.status, packing.conflict, packing.nodes)
            print(searched.outcome.name, searched.offsets, searched.restarts)
"""


def answers(program: str, disabled: str) -> list[str]:
    """Return whether code was compiled, and what was found."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.full
@pytest.mark.parametrize(
    ("program", "found"), [(SCHEDULES, 2), (PACKINGS, 60)], ids=["list", "packing"]
)
def test_plain_python_and_compiled_code_find_the_same(program: str, found: int) -> None:
    is_compiled, *compiled = answers(program, "0")
    is_plain, *plain = answers(program, "1")
    assert (is_compiled, is_plain) == ("True", "False")
    assert len(compiled) >= found
    assert program != SCHEDULES or "".join(compiled).count("Placement(") == 2 * 3 * 4
    assert plain == compiled
