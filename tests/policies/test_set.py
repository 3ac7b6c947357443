"""SET: trees of cuts, the cores and the order that they give, and moves."""

import pytest

from spmilp.policies.scheduled import Layers
from spmilp.policies.set import (
    Cut,
    Set,
    Tree,
    tasks_of,
)
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.assignments import along_the_chip
from tests.policies.small_instances import small_instance
from tests.solvers.chains import chain, star

CHAIN = chain(star(4, 8192), layers=3, strips=8)


def placed(problem: Problem, tree: Tree) -> list[tuple[int, int]]:
    return [tuple(one) for one in tasks_of(tree, Layers(problem), along_the_chip(problem))]


def test_a_cut_in_space_gives_each_layer_cores_of_its_own() -> None:
    tasks = placed(CHAIN, Cut(True, 1, (0, Cut(False, 1, (1, 2)))))

    sets = [{core for task, core in tasks if task // 8 == layer} for layer in range(3)]
    assert sets[1] == sets[2]
    assert sets[0].isdisjoint(sets[1])
    assert (len(sets[0]), len(sets[1])) == (1, 3)


def test_sub_batches_take_turns() -> None:
    tasks = placed(CHAIN, Cut(True, 4, (0, 1, 2)))

    assert [task // 8 for task, _ in tasks] == [0, 0, 1, 1, 2, 2] * 4
    assert sorted(task for task, _ in tasks) == list(range(24))


@pytest.mark.full
def test_more_steps_are_never_worse_and_sometimes_better() -> None:
    problem = small_instance("mlp-24t-4c-ring-tight-balanced")
    plans = [Set(steps).solve(problem, SolveOptions(seed=3)).plan for steps in (0, 200)]

    first, last = (plan.claim.makespan for plan in plans if plan is not None)
    assert last < first


def test_a_limit_that_is_over_leaves_the_first_tree() -> None:
    result = Set().solve(CHAIN, SolveOptions(time_limit=0.0))

    assert result.plan is not None
    assert dict(result.plan.options)["trees"] == "1"
