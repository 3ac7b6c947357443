"""From templates to memories, cores, links and engines."""

from fractions import Fraction

from spmilp.machine.machine import ByteRange, MacArray, MemoryKind
from tests.machine.small import content, described, index_of, small


def test_a_template_is_written_out_on_every_site() -> None:
    machine = small()
    assert len(machine.cores) == len(machine.engines) == len(machine.spms) == 12
    core = machine.cores[5]
    assert (core.name, core.position) == ("core_1_1", (1, 1))
    assert machine.memories[core.memory].name == "spm_1_1"
    assert machine.engines[5].owner == core.memory
    assert machine.engines[5].name == "dma_1_1"


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


def test_sizes_are_given_in_one_of_three_units() -> None:
    for given, size in (
        ({"size_bytes": 1000}, 1000),
        ({"size_kib": 3}, 3072),
        ({"size_mib": 1}, 2**20),
    ):
        fields = content()
        del fields["scratchpads"][0]["size_kib"]
        fields["scratchpads"][0].update(given)
        assert described(fields).spms[0].size == size


def test_reserved_bytes_are_not_usable() -> None:
    fields = content()
    fields["scratchpads"][0]["reserved_byte_ranges"] = [[0, 256], [1024, 2048]]
    spm = described(fields).spms[0]
    assert spm.reserved == (ByteRange(0, 256), ByteRange(1024, 2048))
    assert spm.usable == 65536 - 256 - 1024


def test_a_dram_may_be_bounded_and_is_not_by_default() -> None:
    assert small().drams[0].size is None
    fields = content()
    fields["dram"][0]["size_mib"] = 32
    assert described(fields).drams[0].size == 2**25


def test_rates_are_exact() -> None:
    for given, rate in ((3, Fraction(3)), (23.5, Fraction(47, 2)), ("47/2", Fraction(47, 2))):
        fields = content()
        fields["dram"][0]["rate_bytes_per_cycle"] = given
        machine = described(fields)
        port = next(link for link in machine.links if link.source == "dram")
        assert port.rate == rate


def test_a_frequency_is_in_cycles_per_second() -> None:
    fields = content()
    fields["frequency_mhz"] = "1333/2"
    assert described(fields).frequency == 666_500_000


def test_arrays_leave_out_loops_that_they_do_not_spread() -> None:
    assert small().kinds[0].arrays == (MacArray(dtype="int8", unroll=(("K", 4),)),)
    assert small().kinds[0].operators is None


def test_patterns_choose_sites_in_the_order_of_the_topology() -> None:
    fields = content()
    fields["scratchpads"][0]["sites"] = ["r_3_*", "r_[01]_0", "r_0_?"]
    names = [core.name for core in described(fields).cores]
    assert names == [
        "core_0_0",
        "core_1_0",
        "core_3_0",
        "core_0_1",
        "core_3_1",
        "core_0_2",
        "core_3_2",
    ]


def test_shared_memories_stand_at_their_sites() -> None:
    fields = content()
    fields["shared"] = [{"name": "tile", "sites": ["r_*_0"], "size_kib": 512}]
    machine = described(fields)
    shared = [memory.name for memory in machine.memories if memory.kind is MemoryKind.SHARED]
    assert shared == ["tile_0_0", "tile_1_0", "tile_2_0", "tile_3_0"]


def test_links_of_their_own_join_any_two_nodes() -> None:
    fields = content()
    fields["links"] = [
        {"source": "spm_0_0", "target": "spm_3_2", "rate_bytes_per_cycle": 1},
        {"source": "r_0_0", "target": "r_3_2", "rate_bytes_per_cycle": 1, "both_ways": False},
    ]
    ends = [(link.source, link.target) for link in described(fields).links[-3:]]
    assert ends == [("spm_0_0", "spm_3_2"), ("spm_3_2", "spm_0_0"), ("r_0_0", "r_3_2")]


def test_engines_reach_the_memories_that_they_name() -> None:
    fields = content()
    fields["scratchpads"][0]["dma"][0]["reaches"] = ["dram", "spm_0_*"]
    machine = described(fields)
    expected = ["dram", "spm_0_0", "spm_0_1", "spm_0_2"]
    reached = machine.engines[7].reaches or ()
    assert [machine.memories[memory].name for memory in reached] == expected


def test_only_links_between_routers_have_the_energy_of_a_hop() -> None:
    fields = content()
    fields["topology"]["energy_fj_per_byte"] = 5600
    for link in described(fields).links:
        between_routers = link.source.startswith("r_") and link.target.startswith("r_")
        assert link.energy_per_byte == (5600 if between_routers else None)
