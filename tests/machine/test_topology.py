"""The generators of networks."""

from fractions import Fraction

import networkx as nx
import pytest

from spmilp.machine.description import (
    Bus,
    Crossbar,
    Level,
    Mesh,
    OpposedTori,
    Ring,
    Routers,
    Topology,
    Torus,
    Tree,
    Wire,
)

WIRE = {"rate": Fraction(8), "latency": 1}


def grid(kind: type[Mesh] | type[OpposedTori], columns: int, rows: int) -> Topology:
    return kind(columns=columns, rows=rows, **WIRE).laid_out()


def tree(*children: int) -> Topology:
    return Tree(levels=tuple(Level(children=count, **WIRE) for count in children)).laid_out()


def graph(network: Topology) -> nx.DiGraph:
    return nx.DiGraph([(link.source, link.target) for link in network.links])


@pytest.mark.parametrize(
    ("network", "sites", "links"),
    [
        (grid(Mesh, 4, 3), 12, 2 * (3 * 3 + 4 * 2)),
        (grid(Mesh, 1, 1), 1, 0),
        (grid(Torus, 4, 3), 12, 2 * (4 * 3 + 4 * 3)),
        (grid(Torus, 2, 3), 6, 2 * (3 + 2 * 3)),
        (grid(OpposedTori, 4, 3), 12, 2 * (4 * 3 + 4 * 3)),
        (grid(OpposedTori, 1, 3), 3, 2 * 3),
        (Ring(routers=5, **WIRE).laid_out(), 5, 10),
        (Ring(routers=2, **WIRE).laid_out(), 2, 2),
        (Ring(routers=1, **WIRE).laid_out(), 1, 0),
        (Bus(**WIRE).laid_out(), 1, 1),
        (Crossbar(**WIRE).laid_out(), 1, 0),
        (tree(2, 3), 6 + 3, 2 * (2 + 6)),
        (Routers(routers=("a", "b")).laid_out(), 2, 0),
    ],
)
def test_a_network_has_its_sites_and_links_each_once(
    network: Topology, sites: int, links: int
) -> None:
    assert len(network.sites) == sites
    assert len(network.links) == graph(network).number_of_edges() == links


@pytest.mark.parametrize(
    "network",
    [
        grid(Mesh, 4, 3),
        grid(Torus, 4, 3),
        Ring(routers=5, **WIRE).laid_out(),
        tree(2, 3),
    ],
)
def test_every_router_reaches_every_other(network: Topology) -> None:
    assert nx.is_strongly_connected(graph(network))
    assert frozenset(graph(network)) == network.routers


def test_opposed_tori_are_two_networks_of_one_way_links() -> None:
    network = graph(grid(OpposedTori, 4, 3))
    assert nx.number_strongly_connected_components(network) == 2
    assert not any(network.has_edge(b, a) for a, b in network.edges)
    assert network.has_edge("n0_3_0", "n0_0_0")
    assert network.has_edge("n1_0_0", "n1_3_0")


def test_inner_nodes_of_a_tree_are_sites_only_when_named() -> None:
    sites = tree(2, 2).sites
    assert [site.name for site in sites if site.inner] == ["t", "t_0", "t_1"]
    assert [site.label for site in sites if not site.inner] == ["0_0", "0_1", "1_0", "1_1"]


def test_levels_of_a_tree_have_their_own_links() -> None:
    levels = (Level(children=2, rate=Fraction(2)), Level(children=2, **WIRE))
    made = Tree(levels=levels).laid_out()
    rates = {(link.source, link.target): link.wire.rate for link in made.links}
    assert rates["t", "t_1"] == 2
    assert rates["t_1", "t_1_0"] == 8
    assert made.outward == Wire(Fraction(8))
