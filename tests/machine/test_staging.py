"""Which engines move data, and through which memories data gets where none does."""

import pytest

from spmilp.machine.machine import Machine
from spmilp.machine.routes import Routes
from tests.machine.small import content, described, index_of, small


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


def test_an_engine_that_only_loads_serves_one_direction() -> None:
    fields = content()
    rate = {"rate_bytes_per_cycle": 4}
    fields["scratchpads"][0]["dma"] = [
        {"name": "in", "stores": False, **rate},
        {"name": "out", "loads": False, "reaches": ["dram"], **rate},
    ]
    machine = described(fields)
    routes, a, b = Routes(machine), index_of(machine, "spm_0_0"), index_of(machine, "spm_1_0")
    dram = index_of(machine, "dram")
    assert [machine.engines[e].name for e in routes.engines_for(a, b)] == ["in_1_0"]
    assert [machine.engines[e].name for e in routes.engines_for(a, dram)] == ["out_0_0"]


def test_a_central_engine_serves_what_it_reaches() -> None:
    fields = content()
    fields["scratchpads"][0]["dma"] = []
    fields["engines"] = [{"name": "mover", "channels": 4, "rate_bytes_per_cycle": 8}]
    machine = described(fields)
    routes = Routes(machine)
    spm = index_of(machine, "spm_3_2")
    assert routes.engines_for(index_of(machine, "dram"), spm) == (0,)
    assert routes.staging_path(index_of(machine, "spm_0_0"), spm) == (1, spm)


def test_without_a_route_no_engine_serves() -> None:
    fields = content()
    fields["topology"] = {"type": "links", "routers": ["hub"]}
    fields["scratchpads"][0]["link"] = {"rate_bytes_per_cycle": 8}
    fields["shared"] = [{"name": "island", "sites": [], "size_kib": 1}]
    fields["dram"][0]["sites"] = ["hub"]
    machine = described(fields)
    routes = Routes(machine)
    assert machine.engines[0].serves(index_of(machine, "island"), index_of(machine, "spm"))
    assert routes.engines_for(index_of(machine, "island"), index_of(machine, "spm")) == ()
    assert routes.staging_path(index_of(machine, "island"), index_of(machine, "spm")) is None


def test_one_transfer_is_preferred_to_two() -> None:
    machine = small()
    dram, spm = index_of(machine, "dram"), index_of(machine, "spm_3_2")
    assert Routes(machine).staging_path(dram, spm) == (dram, spm)
    assert Routes(machine).staging_path(spm, spm) == (spm,)


@pytest.mark.parametrize(
    ("source", "destination", "expected"),
    [
        ("dram", "spm_1", ["dram", "l2_0", "spm_1"]),
        ("dram", "spm_2", ["dram", "l2_0", "spm_2"]),
        ("spm_2", "dram", ["spm_2", "l2_0", "dram"]),
        ("spm_1", "spm_2", ["spm_1", "l2_2", "spm_2"]),
    ],
)
def test_data_is_staged_where_the_latency_is_least(
    source: str, destination: str, expected: list[str]
) -> None:
    machine = two_levels()
    found = Routes(machine).staging_path(index_of(machine, source), index_of(machine, destination))
    latencies = [
        sum(
            route.latency
            for a, b in ((index_of(machine, source), stop), (stop, index_of(machine, destination)))
            if (route := Routes(machine).between(a, b)) is not None
        )
        for stop in (index_of(machine, "l2_0"), index_of(machine, "l2_2"))
    ]
    assert names(machine, found)[0::2] == expected[0::2]
    stop = names(machine, found)[1]
    assert stop == ("l2_0" if latencies[0] <= latencies[1] else "l2_2")


def test_a_second_level_is_preferred_to_another_scratchpad() -> None:
    fields = content()
    fields["topology"] = {"type": "ring", "routers": 3, "rate_bytes_per_cycle": 8}
    fields["topology"]["latency_cycles"] = 3
    rate = {"rate_bytes_per_cycle": 4}
    fields["dram"][0]["sites"] = ["r_0"]
    fields["shared"] = [
        {"name": "l2", "sites": ["r_2"], "size_kib": 1, "dma": [{"reaches": ["dram"], **rate}]}
    ]
    near = {"name": "near", "sites": ["r_0"], "cores": {"core": 1}, "size_kib": 1}
    far = {"name": "far", "sites": ["r_1"], "cores": {"core": 1}, "size_kib": 1}
    near["dma"] = [{"reaches": ["dram"], **rate}]
    far["dma"] = [{"reaches": ["near_*", "l2"], **rate}]
    fields["scratchpads"] = [near, far]
    machine = described(fields)
    path = Routes(machine).staging_path(index_of(machine, "dram"), index_of(machine, "far_1"))
    assert names(machine, path) == ["dram", "l2", "far_1"]
