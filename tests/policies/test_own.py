"""Solvers and rules of somebody's own: by a decorator, and of a package that is installed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import spmilp
from spmilp import registry
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver

ROOT = Path(__file__).parents[2]
PROBLEM = sorted((ROOT / "instances" / "problems").glob("*-24t-*.json"))[0]

PACKAGE = '''
"""A rule and a solver in twenty lines."""

from spmilp.solvers.common.solver import Solver
from spmilp.solvers.schedule.solver import ListScheduler


def turns(problem):
    kinds = [core.kind for core in problem.machine.cores]
    able = [[c for c, kind in enumerate(kinds) if t.cycles[kind]] for t in problem.tasks]
    return [some[n % len(some)] for n, some in enumerate(able)]


class Lazy(Solver):
    def search(self, context):
        return ListScheduler().search(context)
'''
ENTRIES = (
    "[spmilp.solvers]\nturns = own:turns\nlazy = own:Lazy\nlost = own:nothing\nlist = own:Lazy\n"
)


@pytest.fixture
def added() -> Iterator[None]:
    yield
    registry._ADDED.clear()
    registry._solvers.cache_clear()


def first_core(problem: Problem) -> list[int]:
    kinds = [core.kind for core in problem.machine.cores]
    return [
        next(c for c, kind in enumerate(kinds) if task.cycles[kind] is not None)
        for task in problem.tasks
    ]


@pytest.mark.usefixtures("added")
def test_a_rule_says_the_core_of_each_task() -> None:
    spmilp.solver("first")(first_core)
    result = spmilp.solve(PROBLEM, solver="first", time_limit=20)
    assert result.plan is not None
    assert [run.core for run in result.plan.placements] == first_core(result.problem)


@pytest.mark.usefixtures("added")
def test_a_class_is_a_solver() -> None:
    @spmilp.solver("none")
    class Nothing(Solver):
        def search(self, context: SearchContext) -> SolverResult:
            return context.unknown("it is too lazy")

    result = spmilp.solve(PROBLEM, solver="none", time_limit=20)
    assert (result.plan, result.reason) == (None, "it is too lazy")


@pytest.mark.usefixtures("added")
@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (lambda problem: [0], r"1 cores for \d+ tasks"),
        (lambda problem: None, "it returned None; return the core of each task"),
        (lambda problem: [99] * len(problem.tasks), r"on core 99, but there are \d+"),
    ],
)
def test_what_a_rule_says_wrongly_is_named(rule: registry.T, says: str) -> None:
    spmilp.solver("wrong")(rule)
    with pytest.raises(spmilp.SpmilpError, match=says):
        spmilp.solve(PROBLEM, solver="wrong", time_limit=20)


def test_a_name_that_is_taken_stays_what_it_is() -> None:
    with pytest.raises(spmilp.SpmilpError, match="there is one of this name"):
        spmilp.solver("list")


def test_an_installed_package_adds_a_rule_and_a_solver(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PACKAGE)
    info = tmp_path / "own_solvers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-solvers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        path = f"{tmp_path}{os.pathsep}{ROOT}"
        command = [sys.executable, "-m", "spmilp", *words]
        env = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(command, capture_output=True, text=True, env=env, check=False)

    listed = json.loads(run("solvers", "--json").stdout)["solvers"]
    sources = {one["name"]: one["source"] for one in listed}
    assert sources["turns"] == sources["lazy"] == "package own-solvers"
    assert sources["list"].startswith("own")
    compared = run("compare", str(PROBLEM), "--solvers", "turns,lazy,list", "--time-limit", "20")
    assert compared.returncode == 0, compared.stderr
    assert "turns" in compared.stdout
    lost = run("solve", str(PROBLEM), "--solver", "lost", "-o", str(tmp_path / "out"))
    assert lost.returncode != 0
    assert "solver lost of package own-solvers: own:nothing cannot be loaded" in lost.stderr
    assert "Traceback" not in lost.stderr
