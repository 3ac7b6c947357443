"""The machines that ship with the package."""

from importlib.resources import files
from itertools import pairwise

import pytest
import yaml

from spmilp.machine.machine import Machine, MemoryKind
from spmilp.machine.read import list_presets, load_machine
from spmilp.machine.routes import Routes
from tests.machine.small import index_of

PRESETS = list_presets()
DTYPES = {"float32", "float16", "int8"}


@pytest.fixture(scope="module", params=PRESETS)
def preset(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def machine(preset: str) -> Machine:
    return load_machine(preset).machine


def test_the_presets_that_are_promised_exist() -> None:
    assert set(PRESETS) == {
        *("mesh4x4", "epiphany3", "epiphany4", "sw26010_cg", "cell_be", "gap8", "gap9"),
        *("occamy", "wormhole", "ipu_mk2", "xdna1", "coolidge", "edge16", "stream_quad"),
        *("set_8x8", "vdla"),
    }


def test_a_preset_is_named_like_its_file_and_computes_in_three_data_types(
    preset: str, machine: Machine
) -> None:
    assert machine.name == preset
    assert machine.description
    assert preset == "mesh4x4" or machine.unverified
    assert any(kind.operators is None for kind in machine.kinds)
    for kind in machine.kinds:
        assert {array.dtype for array in kind.arrays} == DTYPES
        assert {dtype for dtype, _ in kind.lanes} == DTYPES


def test_every_core_is_filled_and_drained(machine: Machine) -> None:
    routes = Routes(machine)
    dram = machine.drams[0].index
    for core in machine.cores:
        for path in (
            routes.staging_path(dram, core.memory),
            routes.staging_path(core.memory, dram),
        ):
            assert path is not None
            for source, destination in pairwise(path):
                assert routes.engines_for(source, destination)
                assert routes.between(source, destination) is not None


def test_every_number_has_a_source(preset: str) -> None:
    file = load_machine(preset)
    assert [entry.field for entry in file.provenance if not entry.source] == []
    stated = {entry.field for entry in file.provenance if not entry.verified}
    assert set(file.machine.unverified) == stated


def numbers_in(value: object) -> list[str]:
    """Return the numbers of a part of a file as they are written."""
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers_in(part)]
    if isinstance(value, list):
        return [number for part in value for number in numbers_in(part)]
    if isinstance(value, bool):
        return []
    return [str(value)] if str(value).replace("/", "").isdecimal() else []


def test_the_provenance_covers_the_numbers_of_the_file(preset: str) -> None:
    text = (files("spmilp.machine") / "presets" / f"{preset}.yaml").read_text()
    content = yaml.safe_load(text)
    parts = [value for field, value in content.items() if field != "provenance"]
    listed = [entry.value.split(", ") for entry in load_machine(preset).provenance]
    assert sorted(numbers_in(parts)) == sorted(numbers_in(listed))


@pytest.mark.parametrize(
    ("name", "cores", "spm", "dram_rate"),
    [
        ("mesh4x4", 16, 512 * 1024, 32),
        ("epiphany3", 16, 32 * 1024, 8),
        ("epiphany4", 64, 32 * 1024, 8),
        ("sw26010_cg", 64, 64 * 1024, 23.5),
        ("cell_be", 8, 256 * 1024, 8),
        ("gap8", 8, 64 * 1024, 1),
        ("gap9", 8, 128 * 1024, 1),
        ("occamy", 384, 128 * 1024, 410),
        ("wormhole", 80, 1_499_136, 48),
        ("ipu_mk2", 64, 638_976, 15),
        ("xdna1", 20, 64 * 1024, 8),
        ("coolidge", 80, 4 * 1024 * 1024, 128 / 3),
        ("edge16", 16, 1024 * 1024, 16),
        ("stream_quad", 6, 16_777_216 // 8, 8),
        ("set_8x8", 64, 1024 * 1024, 16),
    ],
)
def test_a_preset_has_the_published_size(name: str, cores: int, spm: int, dram_rate: float) -> None:
    machine = load_machine(name).machine
    assert len(machine.cores) == cores
    assert machine.spms[0].size == spm
    port = next(link for link in machine.links if link.source == machine.drams[0].name)
    assert float(port.rate) == pytest.approx(dram_rate)


@pytest.mark.parametrize("name", ["gap8", "gap9"])
def test_data_for_a_cluster_is_staged_in_its_second_level(name: str) -> None:
    machine = load_machine(name).machine
    routes, dram, l1 = Routes(machine), index_of(machine, "dram"), index_of(machine, "l1")
    assert routes.engines_for(dram, l1) == ()
    assert routes.staging_path(dram, l1) == (dram, index_of(machine, "l2"), l1)


def test_several_transfers_of_the_default_machine_share_a_dram_port() -> None:
    machine = load_machine("mesh4x4").machine
    port = next(link for link in machine.links if link.source == "dram")
    assert all(engine.rate < port.rate for engine in machine.engines)
    assert all(engine.channels >= 2 for engine in machine.engines)


def test_the_energies_of_the_edge_machine_are_the_published_ones() -> None:
    machine = load_machine("edge16").machine
    hop = next(link for link in machine.links if link.source == "r_0_0" and link.target == "r_1_0")
    assert hop.energy_per_byte == 0.7e3 * 8
    assert machine.drams[0].energy_per_byte == 7.5e3 * 8
    assert dict(machine.kinds[0].mac_energy)["int8"] == 18


def test_memory_tiles_stand_between_ddr_and_the_tiles_of_xdna() -> None:
    machine = load_machine("xdna1").machine
    tiles = [memory for memory in machine.memories if memory.kind is MemoryKind.SHARED]
    assert [tile.size for tile in tiles] == [512 * 1024] * 5
    routes = Routes(machine)
    tile, spm = index_of(machine, "memtile_2_1"), index_of(machine, "spm_2_3")
    assert routes.engines_for(tile, spm)
    assert routes.engines_for(machine.drams[0].index, tile)
