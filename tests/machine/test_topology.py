"""The generators of networks."""

from fractions import Fraction

import networkx as nx
import pytest

from spmilp.machine import description as topology
from spmilp.machine.description import Topology, Wire

WIRE = Wire(Fraction(8), 1)


def graph(network: Topology) -> nx.DiGraph:
    return nx.DiGraph([(link.source, link.target) for link in network.connections])


@pytest.mark.parametrize(
    ("network", "sites", "links"),
    [
        (topology.mesh(4, 3, WIRE), 12, 2 * (3 * 3 + 4 * 2)),
        (topology.mesh(1, 1, WIRE), 1, 0),
        (topology.torus(4, 3, WIRE), 12, 2 * (4 * 3 + 4 * 3)),
        (topology.torus(2, 3, WIRE), 6, 2 * (3 + 2 * 3)),
        (topology.opposed_tori(4, 3, WIRE), 12, 2 * (4 * 3 + 4 * 3)),
        (topology.opposed_tori(1, 3, WIRE), 3, 2 * 3),
        (topology.ring(5, WIRE), 5, 10),
        (topology.ring(2, WIRE), 2, 2),
        (topology.ring(1, WIRE), 1, 0),
        (topology.bus(WIRE), 1, 1),
        (topology.crossbar(WIRE), 1, 0),
        (topology.tree([2, 3], [WIRE, WIRE]), 6 + 3, 2 * (2 + 6)),
        (topology.routers(["a", "b"]), 2, 0),
    ],
)
def test_a_network_has_its_sites_and_links_each_once(
    network: Topology, sites: int, links: int
) -> None:
    assert len(network.sites) == sites
    assert len(network.connections) == graph(network).number_of_edges() == links


@pytest.mark.parametrize(
    "network",
    [
        topology.mesh(4, 3, WIRE),
        topology.torus(4, 3, WIRE),
        topology.ring(5, WIRE),
        topology.tree([2, 3], [WIRE, WIRE]),
    ],
)
def test_every_router_reaches_every_other(network: Topology) -> None:
    assert nx.is_strongly_connected(graph(network))
    assert frozenset(graph(network)) == network.routers


def test_opposed_tori_are_two_networks_of_one_way_links() -> None:
    network = graph(topology.opposed_tori(4, 3, WIRE))
    assert nx.number_strongly_connected_components(network) == 2
    assert not any(network.has_edge(b, a) for a, b in network.edges)
    assert network.has_edge("n0_3_0", "n0_0_0")
    assert network.has_edge("n1_0_0", "n1_3_0")


def test_inner_nodes_of_a_tree_are_sites_only_when_named() -> None:
    tree = topology.tree([2, 2], [WIRE, WIRE])
    assert [site.name for site in tree.sites if site.inner] == ["t", "t_0", "t_1"]
    assert [site.label for site in tree.sites if not site.inner] == ["0_0", "0_1", "1_0", "1_1"]


def test_levels_of_a_tree_have_their_own_links() -> None:
    thin = Wire(Fraction(2))
    tree = topology.tree([2, 2], [thin, WIRE])
    rates = {
        (link.source, link.target): link.wire.rate_bytes_per_cycle for link in tree.connections
    }
    assert rates["t", "t_1"] == 2
    assert rates["t_1", "t_1_0"] == 8
    assert tree.outward == Wire(Fraction(8))
