"""As plain Python the same functions give the same answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
from dataclasses import replace
from random import Random
from spmilp.packing import minimise, pack
from tests.packing.random_problems import plain_problem, rich_problem
from tests.packing.searching import search_alone

answers = []
for seed in range(12):
    for problem in (plain_problem(Random(seed), 9), rich_problem(Random(seed))):
        try:
            least = minimise(problem)
        except ValueError as error:
            answers.append(str(error))
            continue
        answers.append([least.status, least.offsets, least.bound, least.statistics.nodes])
        for less in (0, 1) if least.height else ():
            asked = replace(problem, capacity=least.height - less)
            packing, searched = pack(asked), search_alone(asked)
            answers.append([packing.status, packing.conflict, packing.statistics.nodes])
            answers.append([searched.outcome.name, searched.offsets, searched.restarts])
json.dump(answers, sys.stdout)
"""


def answers(disabled: str) -> list[object]:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.full
def test_the_answers_are_the_same_to_the_last_node() -> None:
    compiled = answers("0")
    assert len(compiled) > 60
    assert answers("1") == compiled
