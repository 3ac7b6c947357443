"""The committed instances: they read, are made again alike, and cover what they promise."""

from pathlib import Path

import pytest
from bare import bare_problems
from best_known import read_table
from family import SPECS
from make_instances import made

from spmilp.bounds.best import best_bound
from spmilp.machine.machine import MemoryKind
from spmilp.problem.file import problem_bytes, read_problem
from spmilp.problem.problem import Problem

PROBLEMS = Path(__file__).parents[2] / "instances" / "problems"


@pytest.fixture(scope="module")
def problems() -> dict[str, Problem]:
    return {path.stem: read_problem(path) for path in sorted(PROBLEMS.glob("*.json"))}


@pytest.mark.parametrize("piece", ["residual", "gru", "dense"])
@pytest.mark.full
def test_the_script_makes_the_same_bytes(piece: str) -> None:
    for name, problem in made(spec for spec in SPECS if spec.name == piece):
        assert problem_bytes(problem) == (PROBLEMS / f"{name}.json").read_bytes(), name


def test_problems_without_data_are_the_same_too() -> None:
    for name, problem in bare_problems().items():
        assert problem_bytes(problem) == (PROBLEMS / f"{name}.json").read_bytes(), name


def test_the_family_covers_sizes_and_what_machines_can(problems: dict[str, Problem]) -> None:
    tasks = [len(problem.tasks) for problem in problems.values()]
    machines = [problem.machine for problem in problems.values()]

    assert 40 <= len(problems) <= 60
    assert min(tasks) >= 5
    assert max(tasks) <= 200
    assert sum(20 <= count <= 40 for count in tasks) >= 12
    assert sum(41 <= count <= 80 for count in tasks) >= 10
    assert {len(machine.cores) for machine in machines} >= {1, 2, 4, 8, 16}
    assert sum(machine.remote is not None for machine in machines) >= 4
    assert sum(any(e.multicast for e in machine.engines) for machine in machines) >= 4
    assert sum(any(m.kind is MemoryKind.SHARED for m in x.memories) for x in machines) >= 2
    assert sum(any(t.in_place for t in p.tasks) for p in problems.values()) >= 20
    assert sum(len({c.memory for c in x.cores}) < len(x.cores) for x in machines) >= 3
    assert len({problem.objective.first for problem in problems.values()}) == 4


def test_the_table_has_a_row_for_each_instance_and_says_nothing_else(
    problems: dict[str, Problem],
) -> None:
    rows = read_table()

    assert sorted(rows) == sorted(problems)
    for name, row in rows.items():
        assert row.tasks == len(problems[name].tasks)
        assert row.quantity == problems[name].objective.first.value
        assert row.objective is not None
        assert row.bound <= row.objective
        assert (row.status == "optimal") == (row.bound == row.objective)
        assert row.bound_by
        assert row.found_by


@pytest.mark.full
def test_no_simple_bound_exceeds_the_best_known_objective(problems: dict[str, Problem]) -> None:
    for name, row in read_table().items():
        if row.tasks <= 60:
            assert row.objective is not None
            assert best_bound(problems[name]).value <= row.objective, name
