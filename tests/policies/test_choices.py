"""What CDM, RAMMER, SET, Stream and TOpLib choose, on problems small enough to see it."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import inf

import pytest

from spmilp.plan.plan import Plan
from spmilp.policies.cdm import Accesses, Choice, Improvement, add_stays
from spmilp.policies.one_after_another import Setting
from spmilp.policies.rammer import appended_tasks, waves_of
from spmilp.policies.scheduled import Layers
from spmilp.policies.set import Cut, Set, Tree, tasks_of
from spmilp.policies.stream import Stream, core_sets
from spmilp.policies.toplib import TopLib, coloured, height
from spmilp.problem.problem import Problem, Tile
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.schedule.assignments import along_the_chip
from spmilp.solvers.schedule.orders import operators_of
from tests.policies.small_instances import QUICK, small_instance
from tests.solvers.chains import chain, star


def cost(accesses: Accesses, chosen: Mapping[int, Choice]) -> int:
    busy = accesses.base.copy()
    for choice in chosen.values():
        busy.reshape(-1)[choice.places] += choice.cycles
    return int(busy.max(axis=1).sum())


def fits(accesses: Accesses, chosen: Mapping[int, Choice]) -> bool:
    used = accesses.fixed.copy()
    for choice in chosen.values():
        add_stays(used, choice, 1)
    capacity = [blocks or inf for blocks in accesses.setting.tables.capacity]
    return bool((used.max(axis=1) <= capacity).all())


def assert_it_fits_and_gains(problem: Problem) -> tuple[Accesses, Improvement]:
    accesses = Accesses(Setting(problem, "cdm"))
    found = Improvement(accesses)
    off_chip = found.cost()
    found.run(accesses.choices, lambda: False)
    assert fits(accesses, found.chosen)
    assert found.cost() == cost(accesses, found.chosen) < off_chip
    return accesses, found


def slow_links(problem: Problem) -> Problem:
    links = tuple(replace(link, rate=Fraction(2)) for link in problem.machine.links)
    return replace(problem, machine=replace(problem.machine, links=links))


@pytest.mark.parametrize("spm", [900, 1100, 4096])
def test_no_choices_together_cost_less_on_a_small_chain(spm: int) -> None:
    accesses, found = assert_it_fits_and_gains(slow_links(chain(star(2, spm), layers=1, strips=3)))
    every = (
        dict(zip(accesses.choices, some, strict=True))
        for some in product(*accesses.choices.values())
    )
    assert found.cost() == min(cost(accesses, some) for some in every if fits(accesses, some))


@pytest.mark.parametrize("name", QUICK)
def test_what_is_chosen_fits_and_gains(name: str) -> None:
    assert_it_fits_and_gains(small_instance(name))


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


def plan_with(problem: Problem, generations: int, seed: int = 0) -> Plan:
    plan = Stream(generations).solve(problem, SolveOptions(seed=seed)).plan
    assert plan is not None
    return plan


def test_each_layer_lies_on_one_set_of_cores() -> None:
    plan = plan_with(CHAIN, generations=5)
    layers, sets = operators_of(CHAIN).tolist(), core_sets(CHAIN)
    for layer in range(3):
        used = {one.core for one in plan.placements if layers[one.task] == layer}
        assert used in [set(cores) for cores in sets]


@pytest.mark.full
def test_more_generations_are_never_worse_and_sometimes_better() -> None:
    problem = small_instance("mlp-24t-4c-ring-tight-balanced")
    first, last = (plan_with(problem, count, seed=5).claim.makespan for count in (0, 16))
    assert last < first


def test_a_limit_that_is_over_leaves_the_first_allocation() -> None:
    plan = Stream().solve(CHAIN, SolveOptions(time_limit=0.0)).plan

    assert plan is not None
    assert dict(plan.options)["allocations"] == "1"


def test_values_of_one_colour_share_a_partition_as_large_as_the_largest() -> None:
    ranges = [{0, 1}, {1, 2}, {2, 3}]
    partitions = coloured(ranges, [30, 20, 10])

    assert [(one.size, one.values) for one in partitions] == [(30, [0, 2]), (20, [1])]
    assert height(partitions) == 50


def test_more_memory_promotes_more() -> None:
    problem = small_instance("branch-15t-4c-mesh2x2-remote-tight-balanced")
    memories = tuple(
        one if one.size is None else replace(one, size=8 * one.size)
        for one in problem.machine.memories
    )
    ample = replace(problem, machine=replace(problem.machine, memories=memories))
    tight, roomy = (TopLib().solve(one, SolveOptions()).plan for one in (problem, ample))

    assert tight is not None
    assert roomy is not None
    assert roomy.claim.dram_traffic < tight.claim.dram_traffic
