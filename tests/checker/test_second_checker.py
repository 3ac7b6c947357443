"""``docs/checker.py``, written from the page of formats, against the code that this describes."""

import subprocess
import sys
from itertools import product
from math import ceil
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs import checker as second
from spmilp.machine.controllers import CONTROLLERS, StridedCopy, blocks_of
from spmilp.machine.read import load_machine
from spmilp.machine.routes import Routes
from spmilp.plan.file import write_pair
from spmilp.problem.file import problem_bytes, problem_sha256, read_problem
from spmilp.problem.objective import Objective
from spmilp.problem.problem import Problem, Task
from tests.checker.mutations.subjects import PRESETS
from tests.checker.worked_example import PLAN, PROBLEM

ROOT = Path(__file__).parents[2]
INSTANCES = sorted((ROOT / "instances" / "problems").glob("*.json"))


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the second checker as its users do."""
    command = [sys.executable, "-I", str(ROOT / "docs" / "checker.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.full
def test_what_cannot_be_read_gives_exit_code_2(tmp_path: Path) -> None:
    problem, plan = write_pair(PROBLEM, PLAN, tmp_path)
    assert run(problem).returncode == 2
    assert run(problem, tmp_path / "none.json").returncode == 2
    plan.write_text(plan.read_text().replace('"core": 0', '"core": 0, "core": 1', 1))
    done = run(problem, plan)
    assert (done.returncode, done.stdout) == (2, "")
    assert "a field is given twice" in done.stderr


@pytest.mark.full
@pytest.mark.parametrize("path", INSTANCES, ids=lambda path: path.stem)
def test_the_canonical_text_is_that_of_the_page(path: Path) -> None:
    data = path.read_bytes()
    assert second.read_problem(data).sha256 == problem_sha256(read_problem(path))


@pytest.mark.full
@pytest.mark.parametrize("name", PRESETS)
def test_routes_are_those_of_the_page(name: str) -> None:
    machine = load_machine(name).machine
    task = Task(index=0, name="t", cycles=(1,) * len(machine.kinds))
    problem = Problem(name="p", machine=machine, tasks=(task,), objective=Objective())
    routes = second.read_problem(problem_bytes(problem)).routes
    pairs = list(product(range(len(machine.memories)), repeat=2))
    ours = Routes(machine)
    for source, target in Random(name).sample(pairs, min(len(pairs), 120)):
        route, found = ours.between(source, target), routes.between(source, target)
        expected = None if route is None else (route.latency, len(route.links), route.links)
        assert found == expected


LOOPS = st.lists(
    st.tuples(
        st.one_of(st.integers(2, 300), st.sampled_from([255, 256, 16383, 16384])),
        st.sampled_from([4, 64, 1024, 32768, 32772]),
        st.sampled_from([4, 64, 32768, 32772]),
    ),
    max_size=4,
)
RUNS = st.one_of(st.integers(1, 400), st.sampled_from([255, 256, 16383, 16384, 40000]))


@pytest.mark.full
@settings(max_examples=250, deadline=None, derandomize=True)
@given(loops=LOOPS, words=RUNS)
def test_copies_are_cut_into_descriptors_as_the_page_says(
    loops: list[tuple[int, int, int]], words: int
) -> None:
    runs = 1
    for count, _, _ in loops:
        runs *= count
    if runs * ceil(words / 16383) > 2_000:
        return  # written out one by one, the runs take too long
    copy = StridedCopy(run=4 * words, loops=tuple(reversed(loops)))
    expected = len(blocks_of(copy, CONTROLLERS["aie_bd"]))
    assert second.aie_descriptors(loops, 4 * words) == expected
