"""What holds of every route on every machine."""

from fractions import Fraction

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.machine.machine import Machine, Routing
from spmilp.machine.routes import Routes, multicast_route
from tests.machine.small import as_graph, content, described, linked, nodes_between

ONE_RATE = {"rate_bytes_per_cycle": 8, "latency_cycles": 1}
QUICK = settings(max_examples=25, deadline=None, derandomize=True)

sides = st.integers(1, 6)


def on(topology: dict) -> Machine:
    fields = content()
    fields["topology"] = {**ONE_RATE, **topology}
    return described(fields)


@st.composite
def spots(draw: st.DrawFn) -> tuple[int, int, tuple[int, int], tuple[int, int]]:
    columns, rows = draw(sides), draw(sides)
    spot = st.tuples(st.integers(0, columns - 1), st.integers(0, rows - 1))
    return columns, rows, draw(spot), draw(spot)


def hops_across(machine: Machine, start: tuple[int, int], end: tuple[int, int]) -> int:
    by_position = {core.position: core.memory for core in machine.cores}
    route = Routes(machine).between(by_position[start], by_position[end])
    assert route is not None
    return max(0, route.hops - 2)


@QUICK
@given(spots())
def test_an_xy_route_is_as_long_as_the_manhattan_distance(case: tuple) -> None:
    columns, rows, start, end = case
    machine = on({"type": "mesh", "columns": columns, "rows": rows})
    distance = abs(start[0] - end[0]) + abs(start[1] - end[1])
    assert hops_across(machine, start, end) == distance


@QUICK
@given(spots())
def test_a_torus_route_is_as_long_as_the_distance_around(case: tuple) -> None:
    columns, rows, start, end = case
    machine = on({"type": "torus", "columns": columns, "rows": rows})
    along = [abs(a - b) for a, b in zip(start, end, strict=True)]
    distance = sum(min(d, n - d) for d, n in zip(along, (columns, rows), strict=True))
    assert hops_across(machine, start, end) == distance
    assert hops_across(machine, end, start) == distance


@st.composite
def networks(draw: st.DrawFn) -> Machine:
    """Four memories and five routers with random links."""
    nodes = ["a", "b", "c", "d", "r0", "r1", "r2", "r3", "r4"]
    pairs = [(s, t) for s in nodes for t in nodes if s != t]
    ends = draw(st.lists(st.sampled_from(pairs), max_size=24, unique=True))
    links = [(s, t, draw(st.integers(1, 9)), draw(st.integers(0, 3))) for s, t in ends]
    positions = tuple((f"r{i}", (i % 2, i // 2)) for i in range(5))
    routing = draw(st.sampled_from(Routing))
    return linked("a b c d", links, routing=routing, positions=positions)


@QUICK
@given(networks())
def test_the_links_of_every_route_connect_its_memories_through_routers(machine: Machine) -> None:
    routes = Routes(machine)
    names = [memory.name for memory in machine.memories]
    for source in range(4):
        for destination in range(4):
            route = routes.between(source, destination)
            if source == destination or route is None:
                continue
            nodes = nodes_between(machine, route.links)
            assert (nodes[0], nodes[-1]) == (names[source], names[destination])
            assert not set(nodes[1:-1]) & set(names)
            taken = [machine.links[link] for link in route.links]
            assert [link.source for link in taken] == nodes[:-1]
            assert route.latency == sum(link.latency for link in taken)
            assert route.rate == min(link.rate for link in taken)
            assert len(set(route.links)) == route.hops


@QUICK
@given(networks())
def test_there_is_a_route_whenever_routers_connect_two_memories(machine: Machine) -> None:
    routes, graph = Routes(machine), as_graph(machine)
    names = [memory.name for memory in machine.memories]
    for source in range(4):
        for destination in range(4):
            if source == destination:
                continue
            kept = [n for n in graph if n not in names or n in (names[source], names[destination])]
            linked_up = nx.has_path(graph.subgraph(kept), names[source], names[destination])
            assert (routes.between(source, destination) is not None) == linked_up


@QUICK
@given(networks())
def test_no_path_is_better_than_the_shortest_route(machine: Machine) -> None:
    if machine.routing is not Routing.SHORTEST:
        return
    routes, graph = Routes(machine), as_graph(machine)
    names = [memory.name for memory in machine.memories]
    kept = graph.subgraph([n for n in graph if n not in names[2:]])
    route = routes.between(0, 1)
    ways = []
    for way in nx.all_simple_paths(kept, names[0], names[1]):
        edges = [kept.edges[pair] for pair in nx.utils.pairwise(way)]
        links = tuple(edge["link"] for edge in edges)
        ways.append((sum(edge["latency"] for edge in edges), len(links), links))
    assert min(ways, default=None) == (route and (route.latency, route.hops, route.links))


@QUICK
@given(networks())
def test_a_multicast_tree_enters_each_router_once(machine: Machine) -> None:
    if machine.routing is not Routing.SHORTEST:
        return
    routes = Routes(machine)
    reached = [d for d in range(1, 4) if routes.between(0, d) is not None]
    tree = multicast_route(routes, 0, reached)
    assert tree is not None
    targets = [machine.links[link].target for link in tree.links]
    assert len(targets) == len(set(targets))
    rates = [machine.links[link].rate for link in tree.links]
    assert tree.rate == min(rates, default=None)
    assert tree.rate is None or isinstance(tree.rate, Fraction)
