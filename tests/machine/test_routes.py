"""Routes, engines and staging paths, by hand and on random machines; what links carry."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.lowering.rates import dram_rate, shared_dram_rate
from spmilp.machine.machine import Engine, Machine, Routing
from spmilp.machine.read import load_machine
from spmilp.machine.routes import (
    Route,
    Routes,
    most_in_use,
    transfer_cycles,
    transfer_rate,
)
from tests.machine.small import as_graph, content, described, index_of, linked, nodes_between, small


def path(machine: Machine, source: str, destination: str) -> list[str]:
    route = Routes(machine).between(index_of(machine, source), index_of(machine, destination))
    return [] if route is None else nodes_between(machine, route.links)


GRID = {"type": "torus", "columns": 5, "rows": 4}
SQUARE = {"type": "torus", "columns": 4, "rows": 4}


@pytest.mark.parametrize(
    ("topology", "source", "destination", "routers"),
    [
        ({}, "spm_0_0", "spm_2_1", "r_0_0 r_1_0 r_2_0 r_2_1"),
        (GRID, "spm_0_0", "spm_4_3", "r_0_0 r_4_0 r_4_3"),
        # The increasing way when both are equally long.
        (SQUARE, "spm_3_0", "spm_1_0", "r_3_0 r_0_0 r_1_0"),
    ],
)
def test_a_route_takes_its_topologys_way(
    topology: dict, source: str, destination: str, routers: str
) -> None:
    machine = small(**topology)
    assert path(machine, source, destination)[1:-1] == routers.split()


def test_a_route_adds_latencies_and_has_the_rate_of_its_slowest_link() -> None:
    machine = small()
    route = Routes(machine).between(index_of(machine, "dram"), index_of(machine, "spm_2_0"))
    assert (route.latency, route.rate, route.hops) == (30 + 2 + 2, 6, 6)


def test_reads_and_writes_of_a_dram_share_its_port_unless_it_is_full_duplex() -> None:
    fields = content()
    for full_duplex, expected in ((False, 1), (True, 0)):
        fields["dram"][0]["full_duplex"] = full_duplex
        machine = described(fields)
        routes, dram, spm = Routes(machine), index_of(machine, "dram"), index_of(machine, "spm_1_1")
        read, write = routes.between(dram, spm), routes.between(spm, dram)
        assert len(set(read.links) & set(write.links)) == expected


LINE = (("r0", (0, 0)), ("r1", (1, 0)))
CORNER = (("r00", (0, 0)), ("r01", (0, 1)), ("r11", (1, 1)))
BESIDE = [("a", "r0", 8, 0), ("r0", "r1", 8, 5), ("r1", "b", 8, 0)]


@pytest.mark.parametrize(
    ("links", "positions", "nodes"),
    [
        # No path leads through a memory, between routers neither.
        ([("a", "c", 8, 0), ("c", "b", 8, 0)], (), ""),
        ([*BESIDE, ("r0", "c", 8, 0), ("c", "r1", 8, 0)], LINE, "a r0 r1 b"),
        # A direct link beside the grid is taken where it is better.
        ([("a", "b", 1, 1), *BESIDE], LINE, "a b"),
        ([("a", "b", 1, 7), *BESIDE], LINE, "a r0 r1 b"),
        # A pair without an XY path takes the shortest one.
        (
            [("a", "r00", 8, 0), ("r00", "r01", 8, 1), ("r01", "r11", 8, 1), ("r11", "b", 8, 0)],
            CORNER,
            "a r00 r01 r11 b",
        ),
        # Latency, then links, then the least indices.
        ([("a", "b", 8, 5), ("a", "r", 8, 2), ("r", "b", 8, 2)], (), "a r b"),
        ([("a", "r", 8, 2), ("r", "b", 8, 2), ("a", "b", 8, 4)], (), "a b"),
        ([("q", "b", 8, 1), ("r", "b", 8, 1), ("a", "r", 8, 1), ("a", "q", 8, 1)], (), "a r b"),
    ],
)
def test_a_route_is_the_least_by_its_rule(links: list, positions: tuple, nodes: str) -> None:
    routing = Routing.XY if positions else Routing.SHORTEST
    machine = linked("a b c", links, routing=routing, positions=positions)
    assert path(machine, "a", "b") == nodes.split()


def engine(**changes: object) -> Engine:
    usual = {"index": 0, "name": "dma", "owner": 0, "rate": Fraction(4), "setup": 10}
    return Engine(**{**usual, **changes})


def test_a_transfer_takes_setup_its_bytes_rounded_up_and_then_the_latency() -> None:
    route = Route(links=(0, 1), latency=7, rate=Fraction(8))
    for count, rate, sending in ((100, 4, 25), (101, 4, 26), (10, Fraction(3, 2), 7), (100, 9, 13)):
        for pipelined in (False, True):
            taken = transfer_cycles(engine(rate=rate, pipelined=pipelined), route, count)
            sent, arrived = 10 + sending, 10 + sending + 7
            assert taken == (10, sent, sent if pipelined else arrived, arrived)
    rates = [transfer_rate(engine(), replace(route, rate=rate)) for rate in (3, 5, None)]
    assert rates == [3, 4, 4]


def two_levels() -> Machine:
    """Return a machine whose scratchpads are filled from two second-level memories only."""
    fields = content()
    fields["topology"] = {"type": "ring", "routers": 4, "rate_bytes_per_cycle": 8}
    fields["topology"]["latency_cycles"] = 3
    engine = {"rate_bytes_per_cycle": 4}
    fields["shared"] = [
        {"name": "l2", "sites": ["r_0", "r_2"], "size_kib": 256, "dma": [{**engine}]}
    ]
    fields["shared"][0]["dma"][0]["reaches"] = ["dram"]
    fields["scratchpads"][0]["dma"] = [{**engine, "reaches": ["l2_*"]}]
    fields["dram"][0]["sites"] = ["r_0"]
    return described(fields)


def names(machine: Machine, path: tuple[int, ...] | None) -> list[str]:
    return [machine.memories[memory].name for memory in path or ()]


def test_the_engines_of_both_ends_serve_a_pair() -> None:
    machine = small()
    routes = Routes(machine)
    serving = routes.engines_for(index_of(machine, "spm_0_0"), index_of(machine, "spm_1_0"))
    assert [machine.engines[engine].name for engine in serving] == ["dma_0_0", "dma_1_0"]
    serving = routes.engines_for(index_of(machine, "dram"), index_of(machine, "spm_1_0"))
    assert [machine.engines[engine].name for engine in serving] == ["dma_1_0"]
    dram, spm = index_of(machine, "dram"), index_of(machine, "spm_3_2")
    assert routes.staging_path(dram, spm) == (dram, spm)
    assert routes.staging_path(spm, spm) == (spm,)
    assert routes.between(spm, spm) == Route(links=(), latency=0, rate=None)


@pytest.mark.parametrize(
    ("source", "destination", "stop"),
    [
        *(("dram", "spm_1", "l2_0"), ("dram", "spm_2", "l2_0")),
        *(("spm_2", "dram", "l2_0"), ("spm_3", "spm_2", "l2_2")),
    ],
)
def test_data_is_staged_where_the_latency_is_least(
    source: str, destination: str, stop: str
) -> None:
    machine = two_levels()
    found = Routes(machine).staging_path(index_of(machine, source), index_of(machine, destination))
    assert names(machine, found) == [source, stop, destination]


QUICK = settings(max_examples=25, deadline=None, derandomize=True)


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
def test_no_path_is_better_than_the_shortest_route(machine: Machine) -> None:
    if machine.routing is Routing.XY:
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
    best = min(ways, default=None)
    if best and machine.routing is Routing.ROUND_TRIP and best[1] > 1:
        last, first = machine.links[best[2][-1]].source, machine.links[best[2][0]].target
        onwards = nx.single_source_dijkstra_path_length(
            graph.subgraph([n for n in graph if n not in names]), last, weight="latency"
        )
        best = best[0] + onwards.get(first, 0), *best[1:]
    assert best == (route and (route.latency, route.hops, route.links))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    capacity=st.integers(0, 30),
    rates=st.sets(st.integers(1, 12), max_size=3),
    unit=st.sampled_from([Fraction(1), Fraction(1, 3), Fraction(5, 4)]),
)
def test_no_transfers_side_by_side_use_more(capacity: int, rates: set[int], unit: Fraction) -> None:
    counts = product(*(range(capacity // rate + 1) for rate in rates))
    sums = {sum(n * rate for n, rate in zip(some, rates, strict=True)) for some in counts}

    found = most_in_use(capacity * unit, {rate * unit for rate in rates})

    most = max(each for each in sums if each <= capacity) * unit
    assert most <= found <= capacity * unit
    assert found == most or len(rates) > 1


@pytest.mark.parametrize(
    ("name", "ports", "used"),
    [("wormhole", 267.6, 267.6), ("ipu_mk2", 15, 12), ("mesh4x4", 128, 128)],
)
def test_a_port_of_dram_carries_whole_transfers(name: str, ports: float, used: float) -> None:
    machine = load_machine(name).machine
    drams = {memory.name for memory in machine.drams}

    assert float(sum(link.rate for link in machine.links if link.source in drams)) == ports
    assert dram_rate(machine, outgoing=True) == used
    assert shared_dram_rate(machine) == used
