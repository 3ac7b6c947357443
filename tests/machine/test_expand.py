"""From templates to memories, cores, links and engines; networks of routers."""

from fractions import Fraction
from typing import Any

import networkx as nx
import pytest

from spmilp.machine.description import (
    AnyTopology,
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
)
from spmilp.machine.machine import MemoryKind
from tests.machine.small import content, described, index_of, with_field

WIRE: dict[str, Any] = {"rate": Fraction(8), "latency": 1}


def tree(*children: int) -> Tree:
    return Tree(levels=tuple(Level(children=count, **WIRE) for count in children))


def graph(topology: Topology) -> nx.DiGraph:
    return nx.DiGraph([(link.source, link.target) for link in topology.links])


@pytest.mark.parametrize(
    ("given", "sites", "links", "is_joined"),
    [
        (Mesh(columns=4, rows=3, **WIRE), 12, 2 * (3 * 3 + 4 * 2), True),
        (Mesh(columns=1, rows=1, **WIRE), 1, 0, False),
        (Torus(columns=4, rows=3, **WIRE), 12, 2 * (4 * 3 + 4 * 3), True),
        (Torus(columns=2, rows=3, **WIRE), 6, 2 * (3 + 2 * 3), True),
        (OpposedTori(columns=4, rows=3, **WIRE), 12, 2 * (4 * 3 + 4 * 3), False),
        (OpposedTori(columns=1, rows=3, **WIRE), 3, 2 * 3, False),
        (Ring(routers=5, **WIRE), 5, 10, True),
        (Ring(routers=2, **WIRE), 2, 2, True),
        (Ring(routers=1, **WIRE), 1, 0, False),
        (Bus(**WIRE), 1, 1, False),
        (Crossbar(**WIRE), 1, 0, False),
        (tree(2, 3), 6 + 3, 2 * (2 + 6), True),
        (Routers(routers=("a", "b")), 2, 0, False),
    ],
)
def test_a_topology_has_its_sites_and_links_each_once(
    given: AnyTopology, sites: int, links: int, is_joined: bool
) -> None:
    made = given.laid_out()
    assert len(made.sites) == sites
    assert len(made.links) == graph(made).number_of_edges() == links
    if is_joined:
        assert nx.is_strongly_connected(graph(made))
        assert frozenset(graph(made)) == made.routers


def test_cores_share_a_scratchpad() -> None:
    fields = content()
    fields["topology"] = {"type": "bus", "rate_bytes_per_cycle": 8}
    fields["core_kinds"]["helper"] = {}
    fields["scratchpads"][0].update(count=2, cores={"core": 3, "helper": 1})
    fields["dram"][0]["sites"] = ["bus"]
    machine = described(fields)
    assert [core.name for core in machine.cores] == [
        *("core_0_0", "core_0_1", "core_0_2", "helper_0"),
        *("core_1_0", "core_1_1", "core_1_2", "helper_1"),
    ]
    assert {core.memory for core in machine.cores[:4]} == {index_of(machine, "spm_0")}
    assert [machine.kinds[core.kind].name for core in machine.cores[2:4]] == ["core", "helper"]


def test_rates_are_exact() -> None:
    for given, rate in ((3, Fraction(3)), (23.5, Fraction(47, 2)), ("47/2", Fraction(47, 2))):
        machine = described(with_field(content(), "dram.0.rate_bytes_per_cycle", given))
        assert next(link for link in machine.links if link.source == "dram").rate == rate
    assert described(with_field(content(), "frequency_mhz", "1333/2")).frequency == 666_500_000


def test_patterns_choose_sites_in_the_order_of_the_topology() -> None:
    fields = with_field(content(), "scratchpads.0.sites", ["r_3_*", "r_[01]_0", "r_0_?"])
    names = [core.name.removeprefix("core_") for core in described(fields).cores]
    assert names == ["0_0", "1_0", "3_0", "0_1", "3_1", "0_2", "3_2"]


def test_shared_memories_stand_at_their_sites_and_engines_reach_what_they_name() -> None:
    fields = with_field(content(), "scratchpads.0.dma.0.reaches", ["dram", "spm_0_*"])
    fields["shared"] = [{"name": "tile", "sites": ["r_*_0"], "size_kib": 512}]
    machine = described(fields)
    shared = [memory.name for memory in machine.memories if memory.kind is MemoryKind.SHARED]
    assert shared == ["tile_0_0", "tile_1_0", "tile_2_0", "tile_3_0"]
    reached = [machine.memories[memory].name for memory in machine.engines[7].reaches or ()]
    assert reached == ["dram", "spm_0_0", "spm_0_1", "spm_0_2"]


def test_links_of_their_own_join_any_two_nodes() -> None:
    fields = content()
    fields["links"] = [
        {"source": "spm_0_0", "target": "spm_3_2", "rate_bytes_per_cycle": 1},
        {"source": "r_0_0", "target": "r_3_2", "rate_bytes_per_cycle": 1, "both_ways": False},
    ]
    ends = [(link.source, link.target) for link in described(fields).links[-3:]]
    assert ends == [("spm_0_0", "spm_3_2"), ("spm_3_2", "spm_0_0"), ("r_0_0", "r_3_2")]


def test_only_links_between_routers_have_the_energy_of_a_hop() -> None:
    for link in described(with_field(content(), "topology.energy_fj_per_byte", 5600)).links:
        between_routers = link.source.startswith("r_") and link.target.startswith("r_")
        assert link.energy_per_byte == (5600 if between_routers else None)
