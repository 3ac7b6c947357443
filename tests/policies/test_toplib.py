"""TOpLib: live ranges, colours that share partitions, and promotion."""

import random
from dataclasses import replace

from spmilp.packing import Item, PackingProblem, minimise
from spmilp.policies.toplib import (
    TopLib,
    coloured,
    height,
)
from spmilp.solvers.base import SolveOptions
from tests.policies.small_instances import small_instance


def test_values_of_one_colour_share_a_partition_as_large_as_the_largest() -> None:
    ranges = [{0, 1}, {1, 2}, {2, 3}]
    partitions = coloured(ranges, [30, 20, 10])

    assert [(one.size, one.values) for one in partitions] == [(30, [0, 2]), (20, [1])]
    assert height(partitions) == 50


def packed_height(ranges: list[set[int]], sizes: list[int]) -> int:
    items = tuple(
        Item(size=size, lifetimes=((min(points), max(points) + 1),))
        for points, size in zip(ranges, sizes, strict=True)
    )
    found = minimise(PackingProblem(items=items, capacity=None)).height
    assert found is not None
    return found


def test_packing_is_never_higher_than_colouring() -> None:
    chance = random.Random(7)
    for _ in range(20):
        starts = [chance.randrange(20) for _ in range(25)]
        ranges = [set(range(start, start + chance.randint(1, 8))) for start in starts]
        sizes = [chance.randint(1, 40) for _ in ranges]
        assert packed_height(ranges, sizes) <= height(coloured(ranges, sizes))


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
