"""TOpLib: live ranges over loops, colours that share partitions, promotion, and its plans."""

import random
from dataclasses import replace

import networkx as nx
import pytest

from spmilp.checker.check import check
from spmilp.packing import Item, PackingProblem, minimise
from spmilp.policies.toplib import (
    Remainder,
    TopLib,
    coloured,
    height,
    interference_graph,
    live_ranges,
    loop_of,
)
from spmilp.solvers.base import SolveOptions, SolveStatus
from tests.policies.small_instances import SMALL, small_instance
from tests.policies.test_onsram import REFUSED


@pytest.mark.parametrize("name", [*SMALL[::4], *REFUSED])
def test_every_plan_passes_the_checker_and_a_refusal_has_name_and_number(name: str) -> None:
    problem = small_instance(name)
    result = TopLib().solve(problem, SolveOptions())

    if name in REFUSED:
        assert (result.status, result.plan) == (SolveStatus.UNKNOWN, None)
        assert REFUSED[name] in result.reason
    else:
        assert result.plan is not None
        assert check(problem, result.plan) == ()
        assert result.plan.solver == "toplib"


def test_a_value_that_a_loop_reads_lives_in_all_of_it() -> None:
    """0 is written before the loop of b and c and read in b; 1 is written in b and read in c."""
    program = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")])

    found = live_ranges(program, {"b": [0], "c": [1]}, {"a": [0], "b": [1]}, 2)

    assert found == [{"a", "b", "c"}, {"b", "c"}]


def test_a_value_that_one_branch_writes_and_the_join_reads_lives_on_the_other_branch_too() -> None:
    program = nx.DiGraph([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])

    (found,) = live_ranges(program, {"d": [0]}, {"a": [0], "b": [0]}, 1)

    assert found == {"a", "b", "c", "d"}


def test_what_every_round_writes_anew_does_not_live_from_round_to_round() -> None:
    (found,) = live_ranges(loop_of(range(5)), {3: [0]}, {1: [0]}, 1)
    (kept,) = live_ranges(loop_of(range(5)), {3: [0]}, {}, 1)

    assert found == {1, 2, 3}
    assert kept == set(range(5))


def test_values_of_one_colour_share_a_partition_as_large_as_the_largest() -> None:
    ranges = [{0, 1}, {1, 2}, {2, 3}]
    partitions = coloured(ranges, [30, 20, 10])

    assert sorted(interference_graph(ranges).edges) == [(0, 1), (1, 2)]
    assert [(one.size, one.values) for one in partitions] == [(30, [0, 2]), (20, [1])]
    assert height(partitions) == 50


def test_small_values_side_by_side_cannot_share_a_partition_with_a_large_one() -> None:
    """Two values of 10 bytes fit where one of 20 lay before: by addresses, not by colours."""
    ranges, sizes = [{0}, {1}, {1}], [20, 10, 10]

    assert height(coloured(ranges, sizes)) == 30
    assert packed_height(ranges, sizes) == 20


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


def test_promoted_data_shares_what_is_left_if_it_lives_at_other_times() -> None:
    remainder = Remainder(10)

    assert remainder.takes(0, 6, {0, 1})
    assert not remainder.takes(1, 5, {1, 2})
    assert remainder.takes(2, 7, {2})
    assert remainder.takes(3, 3, {0, 1, 2})
    assert [(one.size, one.values) for one in remainder.partitions] == [(7, [0, 2]), (3, [3])]


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
