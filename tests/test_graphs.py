"""Reachable nodes and least cuts, against networkx."""

import random
from fractions import Fraction

import networkx as nx
import pytest

from spmilp.frontend.fuse import dominators
from spmilp.graphs import graph_of, least_cut, reached


def random_graph(draw: random.Random) -> list[tuple[int, int, Fraction]]:
    pairs = [(draw.randrange(7), draw.randrange(7)) for _ in range(draw.randint(1, 20))]
    return [(a, b, Fraction(draw.randint(1, 9), draw.randint(1, 3))) for a, b in pairs]


@pytest.mark.parametrize("seed", range(30))
def test_a_least_cut_carries_what_edges_between_two_sets_carry(seed: int) -> None:
    edges = random_graph(random.Random(seed))
    graph = nx.DiGraph()
    for a, b, capacity in edges:
        known = graph.get_edge_data(a, b, {"capacity": 0})["capacity"]
        graph.add_edge(a, b, capacity=known + capacity)
    graph.add_edges_from([("begin", 0), ("begin", 1), (5, "end"), (6, "end")])

    assert least_cut(edges, [0, 1], {5, 6}) == nx.minimum_cut_value(graph, "begin", "end")


@pytest.mark.parametrize("seed", range(30))
def test_nodes_are_reached_by_one_edge_or_more(seed: int) -> None:
    pairs = [(a, b) for a, b, _ in random_graph(random.Random(seed))]
    graph = nx.DiGraph(pairs)
    graph.add_node(0)
    after = nx.descendants(graph, 0)

    assert reached(graph_of(pairs), 0) - {0} == after
    assert (0 in reached(graph_of(pairs), 0)) == any(b == 0 for a, b in pairs if a in {0, *after})


@pytest.mark.parametrize("seed", range(30))
def test_a_dominator_is_the_first_that_all_paths_go_through(seed: int) -> None:
    draw = random.Random(seed)
    end = 9
    readers = [
        tuple(sorted({draw.randint(at + 1, end - 1) for _ in range(draw.randrange(3))}))
        if at + 1 < end
        else ()
        for at in range(end)
    ]
    graph = nx.DiGraph((b, a) for a, some in enumerate(readers) for b in some or (end,))
    parents = nx.immediate_dominators(graph, end)

    found = dominators([some or None for some in readers])
    assert found == tuple(None if parents[at] == end else parents[at] for at in range(end))
