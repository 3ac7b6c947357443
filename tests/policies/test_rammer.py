"""RAMMER: waves of operators, tasks on the unit where they end first."""

from dataclasses import replace

from spmilp.policies.rammer import appended_tasks, waves_of
from spmilp.problem.problem import Problem, Tile
from tests.solvers.chains import chain, star


def independent(cycles: tuple[int, ...], operators: str) -> Problem:
    """Return tasks that depend on nothing but what begins in DRAM, on two cores."""
    problem = chain(star(2, 4096), layers=1, strips=len(cycles))
    tasks = tuple(
        replace(task, cycles=(own,), tile=Tile(of=operator, box=((0, 1),)))
        for task, own, operator in zip(problem.tasks, cycles, operators, strict=True)
    )
    return replace(problem, tasks=tasks)


def test_tasks_of_different_operators_share_a_wave_and_go_where_they_end_first() -> None:
    problem = independent((90, 20, 30, 40), "aabb")

    assert waves_of(problem) == [0, 0, 0, 0]
    assert appended_tasks(problem) == [(0, 0), (1, 1), (2, 1), (3, 1)]


def test_a_task_comes_a_wave_after_the_operators_that_it_follows() -> None:
    problem = independent((90, 20, 30, 40), "aabb")
    last = replace(problem.tasks[3], after=(0,))
    problem = replace(problem, tasks=(*problem.tasks[:3], last))

    assert waves_of(problem) == [0, 0, 0, 1]
    assert appended_tasks(problem)[-1] == (3, 0)
