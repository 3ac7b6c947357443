"""Routes, by hand on small machines."""

from fractions import Fraction

import pytest

from spmilp.machine.machine import Engine, Machine, Routing
from spmilp.machine.routes import (
    Route,
    Routes,
    multicast_route,
    transfer_cycles,
    transfer_rate,
)
from tests.machine.small import content, described, index_of, linked, nodes_between, small


def path(machine: Machine, source: str, destination: str) -> list[str]:
    route = Routes(machine).between(index_of(machine, source), index_of(machine, destination))
    return [] if route is None else nodes_between(machine, route.links)


def test_xy_goes_along_x_and_then_along_y() -> None:
    there = path(small(), "spm_0_0", "spm_2_1")
    assert there == ["spm_0_0", "r_0_0", "r_1_0", "r_2_0", "r_2_1", "spm_2_1"]
    back = path(small(), "spm_2_1", "spm_0_0")
    assert back == ["spm_2_1", "r_2_1", "r_1_1", "r_0_1", "r_0_0", "spm_0_0"]


def test_a_route_adds_latencies_and_has_the_rate_of_its_slowest_link() -> None:
    machine = small()
    route = Routes(machine).between(index_of(machine, "dram"), index_of(machine, "spm_2_0"))
    assert route is not None
    assert route.latency == 30 + 2 + 2
    assert route.rate == 6
    assert route.hops == 6


def test_a_torus_wraps_where_that_is_shorter() -> None:
    torus = small(type="torus", columns=5, rows=4)
    assert path(torus, "spm_0_0", "spm_4_3")[1:-1] == ["r_0_0", "r_4_0", "r_4_3"]
    assert path(torus, "spm_0_0", "spm_2_0")[1:-1] == ["r_0_0", "r_1_0", "r_2_0"]


def test_a_torus_goes_the_increasing_way_when_both_are_equally_long() -> None:
    torus = small(type="torus", columns=4, rows=4)
    assert path(torus, "spm_3_0", "spm_1_0")[1:-1] == ["r_3_0", "r_0_0", "r_1_0"]
    assert path(torus, "spm_0_1", "spm_0_3")[1:-1] == ["r_0_1", "r_0_2", "r_0_3"]


def test_opposed_tori_turn_from_x_to_y_and_from_y_to_x() -> None:
    tori = small(type="opposed_tori", columns=4, rows=4)
    assert path(tori, "spm_0_0", "spm_1_1")[1:-1] == ["n0_0_0", "n0_1_0", "n0_1_1"]
    assert path(tori, "spm_1_1", "spm_0_0")[1:-1] == ["n1_1_1", "n1_1_0", "n1_0_0"]


def test_a_ring_takes_the_shorter_way() -> None:
    ring = small("r_0", type="ring", routers=5)
    assert path(ring, "spm_0", "spm_2")[1:-1] == ["r_0", "r_1", "r_2"]
    assert path(ring, "spm_0", "spm_3")[1:-1] == ["r_0", "r_4", "r_3"]


def test_a_tree_climbs_to_the_common_ancestor_only() -> None:
    fields = content()
    level = {"rate_bytes_per_cycle": 8, "latency_cycles": 1}
    fields["topology"] = {
        "type": "tree",
        "levels": [{"children": 2, **level}, {"children": 3, **level}],
    }
    fields["dram"][0]["sites"] = ["t"]
    tree = described(fields)
    assert path(tree, "spm_0_0", "spm_0_2")[1:-1] == ["t_0_0", "t_0", "t_0_2"]
    assert path(tree, "spm_0_0", "spm_1_1")[1:-1] == ["t_0_0", "t_0", "t", "t_1", "t_1_1"]


def test_all_transfers_on_a_bus_share_one_link() -> None:
    fields = content()
    fields["topology"] = {"type": "bus", "rate_bytes_per_cycle": 8}
    fields["scratchpads"][0]["count"] = 3
    fields["dram"][0]["sites"] = ["bus"]
    machine = described(fields)
    routes = Routes(machine)
    shared = next(link.index for link in machine.links if link.source == "bus_in")
    for source in machine.memories:
        for destination in machine.memories:
            if source != destination:
                route = routes.between(source.index, destination.index)
                assert route is not None
                assert shared in route.links


def test_a_crossbar_is_crossed_with_one_latency() -> None:
    fields = content()
    fields["topology"] = {"type": "crossbar", "rate_bytes_per_cycle": 8, "latency_cycles": 5}
    fields["scratchpads"][0]["count"] = 3
    fields["dram"][0]["sites"] = ["xbar"]
    machine = described(fields)
    route = Routes(machine).between(index_of(machine, "spm_0"), index_of(machine, "spm_2"))
    assert route is not None
    assert (route.latency, route.hops, route.rate) == (5, 2, 8)


def test_reads_and_writes_of_a_dram_share_its_port_unless_it_is_full_duplex() -> None:
    fields = content()
    for full_duplex, expected in ((False, 1), (True, 0)):
        fields["dram"][0]["full_duplex"] = full_duplex
        machine = described(fields)
        routes, dram, spm = Routes(machine), index_of(machine, "dram"), index_of(machine, "spm_1_1")
        read, write = routes.between(dram, spm), routes.between(spm, dram)
        assert read is not None
        assert write is not None
        assert len(set(read.links) & set(write.links)) == expected


def test_a_dram_with_several_ports_uses_the_nearest() -> None:
    fields = content()
    fields["dram"][0]["sites"] = ["r_0_0", "r_3_2"]
    machine = described(fields)
    assert "r_0_0" in path(machine, "dram", "spm_1_0")
    assert "r_0_0" not in path(machine, "dram", "spm_3_1")


def test_no_path_leads_through_a_memory() -> None:
    machine = linked("a b c", [("a", "b", 8, 0), ("b", "c", 8, 0)])
    assert path(machine, "a", "b") == ["a", "b"]
    assert path(machine, "a", "c") == []


def test_no_xy_path_leads_through_a_memory_between_routers() -> None:
    machine = linked(
        "a b c",
        [
            *(("a", "r0", 8, 0), ("r1", "c", 8, 0), ("r0", "r1", 8, 9)),
            *(("r0", "b", 8, 0), ("b", "r1", 8, 0)),
        ],
        routing=Routing.XY,
        positions=(("r0", (0, 0)), ("r1", (1, 0))),
    )
    assert path(machine, "a", "c") == ["a", "r0", "r1", "c"]


def test_a_direct_link_beside_the_grid_is_taken_when_it_is_better() -> None:
    for latency, expected in ((1, ["a", "b"]), (7, ["a", "r0", "r1", "b"])):
        machine = linked(
            "a b",
            [("a", "b", 1, latency), ("a", "r0", 8, 0), ("r0", "r1", 8, 5), ("r1", "b", 8, 0)],
            routing=Routing.XY,
            positions=(("r0", (0, 0)), ("r1", (1, 0))),
        )
        assert path(machine, "a", "b") == expected


def test_a_pair_without_an_xy_path_takes_the_shortest_one() -> None:
    missing_turn = linked(
        "a b",
        [("a", "r00", 8, 0), ("r00", "r01", 8, 1), ("r01", "r11", 8, 1), ("r11", "b", 8, 0)],
        routing=Routing.XY,
        positions=(("r00", (0, 0)), ("r01", (0, 1)), ("r11", (1, 1))),
    )
    assert path(missing_turn, "a", "b") == ["a", "r00", "r01", "r11", "b"]


def test_shortest_prefers_latency_then_links_then_the_least_indices() -> None:
    slow_and_direct = linked("a b", [("a", "b", 8, 5), ("a", "r", 8, 2), ("r", "b", 8, 2)])
    assert path(slow_and_direct, "a", "b") == ["a", "r", "b"]
    equal = linked("a b", [("a", "r", 8, 2), ("r", "b", 8, 2), ("a", "b", 8, 4)])
    assert path(equal, "a", "b") == ["a", "b"]
    twins = linked("a b", [("q", "b", 8, 1), ("r", "b", 8, 1), ("a", "r", 8, 1), ("a", "q", 8, 1)])
    assert path(twins, "a", "b") == ["a", "r", "b"]


def test_of_links_side_by_side_the_quicker_is_used() -> None:
    machine = linked("a b", [("a", "b", 8, 5), ("a", "b", 4, 1), ("a", "b", 2, 1)])
    route = Routes(machine).between(0, 1)
    assert route == Route(links=(1,), latency=1, rate=Fraction(4))


def test_without_links_there_is_no_route_but_to_itself() -> None:
    routes = Routes(linked("a b", []))
    assert routes.between(0, 1) is None
    assert routes.between(0, 0) == Route(links=(), latency=0, rate=None)


def test_two_routers_at_one_position_are_an_error() -> None:
    machine = linked("a", [], routing=Routing.XY, positions=(("r", (0, 0)), ("q", (0, 0))))
    with pytest.raises(ValueError, match="two routers share a position"):
        Routes(machine)


def engine(**changes: object) -> Engine:
    usual = {"index": 0, "name": "dma", "owner": 0, "rate": Fraction(4), "setup": 10}
    return Engine(**{**usual, **changes})


def test_a_transfer_takes_setup_latency_and_its_bytes_rounded_up() -> None:
    route = Route(links=(0, 1), latency=7, rate=Fraction(8))
    assert transfer_cycles(engine(), route, 100) == 10 + 7 + 25
    assert transfer_cycles(engine(), route, 101) == 10 + 7 + 26
    assert transfer_cycles(engine(rate=Fraction(3, 2)), route, 10) == 10 + 7 + 7
    assert transfer_cycles(engine(rate=Fraction(100)), route, 100) == 10 + 7 + 13


def test_the_rate_is_the_lesser_of_engine_and_route() -> None:
    assert transfer_rate(engine(), Route(links=(0,), latency=0, rate=Fraction(3))) == 3
    assert transfer_rate(engine(), Route(links=(0,), latency=0, rate=Fraction(5))) == 4
    assert transfer_rate(engine(), Route(links=(), latency=0, rate=None)) == 4


def test_a_multicast_holds_each_link_of_its_tree_once() -> None:
    machine = small()
    routes = Routes(machine)
    source = index_of(machine, "spm_0_0")
    near, far = index_of(machine, "spm_2_0"), index_of(machine, "spm_2_1")
    both = multicast_route(routes, source, (near, far))
    single = [routes.between(source, near), routes.between(source, far)]
    assert both is not None
    assert single[0] is not None
    assert single[1] is not None
    assert both.links[: single[0].hops] == single[0].links
    assert set(both.links) == set(single[0].links) | set(single[1].links)
    assert len(both.links) == len(set(both.links)) == 6
    assert both.latency == single[1].latency
    assert both.rate == 8


def test_a_multicast_needs_a_route_to_each_destination() -> None:
    assert multicast_route(Routes(linked("a b c", [("a", "b", 8, 0)])), 0, (1, 2)) is None
