"""As plain Python the packing gives what its kernels in C give."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spmilp.packing import arrays
from spmilp.packing.search import FailedStates

ROOT = Path(__file__).parents[2]
UNCOMPILED = """
import sys
from importlib.machinery import (
    EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
)
loaders = (SourceFileLoader, SOURCE_SUFFIXES), (ExtensionFileLoader, EXTENSION_SUFFIXES)
sys.path_hooks.insert(0, FileFinder.path_hook(*loaders))
sys.path_importer_cache.clear()
"""
"""Makes Python prefer a module's source to its machine code."""
PACKINGS = """
from dataclasses import replace
from random import Random
from spmilp.compiled import IS_COMPILED
from spmilp.packing import kernel, minimise, outlines, pack, pack_by
from tests.packing.random_problems import plain_problem, rich_problem
from tests.packing.searching import search_alone
print(IS_COMPILED, kernel.__file__.endswith(".py"), outlines.__file__.endswith(".py"))
for seed in range(12):
    for problem in (plain_problem(Random(seed), 9), rich_problem(Random(seed))):
        try:
            least = minimise(problem)
        except ValueError as error:
            print(error)
            continue
        print(least.status, least.offsets, least.bound, least.nodes)
        print(pack_by("xla", problem).offsets, pack_by("usmp:hill_climb", problem).offsets)
        for less in (0, 1) if least.height else ():
            asked = replace(problem, capacity=least.height - less)
            packing, searched = pack(asked), search_alone(asked)
            print(packing.status, packing.conflict, packing.nodes)
            print(searched.outcome.name, searched.offsets, searched.restarts)
"""


def answers(program: str) -> list[str]:
    """Return whether code was compiled, and what was found."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.full
def test_plain_python_and_compiled_code_find_the_same() -> None:
    kind_of_code, *compiled = answers(PACKINGS)
    kind_of_plain, *plain = answers(UNCOMPILED + PACKINGS)
    assert kind_of_code == "True False False"
    assert kind_of_plain == "False True True"
    assert len(compiled) >= 80
    assert plain == compiled


@pytest.mark.parametrize(
    "name", ["Outline", "Tables", "State", "Frames", "Agenda", "Memo", "Arrays"]
)
def test_structs_have_the_fields_of_the_tuples_in_their_order(name: str) -> None:
    text = (ROOT / "spmilp/packing/arrays.pxd").read_text()
    (struct,) = re.findall(rf"ctypedef struct C{name}:\n((?: +.*\n)+)", text)
    fields = [line.replace("*", "").split()[-1] for line in struct.splitlines()]
    assert tuple(fields) == getattr(arrays, name)._fields


def test_a_table_that_grows_forgets_nothing() -> None:
    failed = FailedStates()
    states = set[tuple[int, int, int]]()
    random = np.random.default_rng(0)
    first_size = failed.memo.size
    for _ in range(6):
        memo = failed.with_room(100)
        found = zip(memo.key.tolist(), memo.check.tolist(), memo.bound.tolist(), strict=True)
        assert {state for state in found if state[0]} == states
        for _ in range(100):
            # Where its first slot is free, a state lies there.
            key, check = random.integers(2**63, 2**64, 2, dtype=np.uint64).tolist()
            slot, bound = key % memo.size, int(random.integers(1000))
            if memo.key[slot] == 0:
                memo.key[slot], memo.check[slot], memo.bound[slot] = key, check, bound
                states.add((key, check, bound))
    assert len(states) > 400
    assert failed.memo.size >= 1000 * first_size
