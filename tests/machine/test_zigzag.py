"""Hardware files of Stream as machines, against the preset made by hand; wrong files."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from spmilp.errors import FileError
from spmilp.machine.machine import Machine
from spmilp.machine.read import load_machine

SHARED = next((p / "shared" for p in Path(__file__).parents if (p / "shared").is_dir()), Path("no"))
STREAM = SHARED / "data" / "stream"

NAMES = {
    "tpu_like_sram_2MB": "tpu_sram",
    "pooling_sram_128KB": "pooling_sram",
    "simd_sram_128KB_2rw": "simd_sram",
    "tpu_like": "tpu",
}
"""What the preset calls the same."""


def plain(machine: Machine) -> str:
    """Return all of a machine but for its name, in the preset's words; operators apart."""
    kinds = tuple(replace(kind, operators=None) for kind in machine.kinds)
    text = repr(replace(machine, name="", description="", kinds=kinds, unverified=()))
    for theirs, ours in NAMES.items():
        text = text.replace(theirs, ours)
    return text


@pytest.mark.parametrize(("version", "lacking"), [("1.13.14", {"Cast"}), ("2.1.1", set())])
def test_streams_quad_core_is_the_preset_made_by_hand(version: str, lacking: set[str]) -> None:
    file = STREAM / version / "hardware" / "tpu_like_quad_core.yaml"
    if not file.exists():
        pytest.skip(f"{file} is not there: Stream's files are not part of the project")
    machine, preset = load_machine(file).machine, load_machine("stream_quad").machine
    assert plain(machine) == plain(preset)
    operators = [kind.operators for kind in machine.kinds]
    assert operators[:2] == [kind.operators for kind in preset.kinds[:2]]
    # Silu, of which ONNX has no operator, is left out there.
    assert operators[2] == (preset.kinds[2].operators or set()) - lacking | {"Silu"}


def core(name: str, size: int, sizes: list[int], **more: Any) -> dict[str, Any]:
    def level(bits: int) -> dict[str, Any]:
        ports = [
            {"name": "r", "type": "read", "bandwidth_min": 8, "bandwidth_max": 64},
            {"name": "w", "type": "write", "bandwidth_min": 8, "bandwidth_max": 32},
        ]
        return {"size": bits, "r_cost": 2, "w_cost": 3, "area": 0, "latency": 5, "ports": ports}

    array = {"unit_energy": 0.5, "unit_area": 1, "dimensions": ["D1", "D2"], "sizes": sizes}
    memories = {"rf": level(16), "sram": level(size)}
    return {"name": name, "memories": memories, "operational_array": array, **more}


def written(folder: Path, **changes: Any) -> Path:
    """Write a machine of two cores on a bus with a DRAM, and a link between them."""
    hardware = {
        "name": "pair",
        "cores": {0: "big.yaml", 1: "small.yaml", 2: "outside.yaml"},
        "offchip_core_id": 2,
        "unit_energy_cost": 2,
        "core_connectivity": [
            {"type": "link", "cores": [0, 1], "bandwidth": 12},
            {"type": "bus", "cores": [0, 1, 2], "bandwidth": 100},
        ],
    }
    cores = {
        "big": core("big", 65536, [16, 8, 2]),
        "small": core("small", 8192, [4], operator_types=["Add"]),
        "outside": core("outside", 10**10, [0, 0]),
    }
    for name, content in {**cores, "hw": hardware}.items():
        fields = {**content, **changes.get(name, {})}
        kept = {field: value for field, value in fields.items() if value is not None}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(kept, sort_keys=False))
    return folder / "hw.yaml"


def test_bits_become_bytes_and_costs_femtojoules(tmp_path: Path) -> None:
    given = load_machine(written(tmp_path))
    machine = given.machine
    dram, big, small = machine.memories
    assert (dram.size, big.size, small.size) == (None, 8192, 1024)
    assert [kind.arrays[0].unroll for kind in machine.kinds] == [
        (("K", 16), ("C", 8), ("X", 2)),
        (("K", 4),),
    ]
    assert [dict(kind.lanes)["int8"] for kind in machine.kinds] == [16, 4]
    assert [dict(kind.mac_energy)["int8"] for kind in machine.kinds] == [500, 500]
    # 3 pJ for 4 bytes written are more than 2 pJ for 8 bytes read.
    assert big.energy_per_byte == 750
    links = {(link.source, link.target): link for link in machine.links}
    between = links["big_sram", "small_sram"]
    assert (between.rate * 8, between.energy_per_byte) == (12, round(2000 * 8 / 12))
    assert links["bus_in", "bus_out"].rate * 8 == 100
    assert (links["dram", "bus_in"].rate * 8, links["dram", "bus_in"].latency) == (32, 5)
    assert {engine.rate * 8 for engine in machine.engines} == {100}
    assert machine.unverified == tuple(one.field for one in given.provenance if not one.verified)
    assert "scratchpads.big_sram.dma.dma.channels" in machine.unverified


WRONG = [
    (
        {"hw": {"cores": {0: "none.yaml", 2: "outside.yaml"}}},
        "core_connectivity.0.cores: 0, 1; exp",
    ),
    ({"hw": {"cores": {0: "no.yaml", 1: "no.yaml", 2: "outside.yaml"}}}, "no.yaml: cannot be read"),
    ({"hw": {"offchip_core_id": 7}}, "hw.yaml: offchip_core_id: 7; the cores are 0, 1, 2"),
    ({"hw": {"offchip_core_id": None}}, "hw.yaml: offchip_core_id: is missing"),
    (
        {"hw": {"core_connectivity": [{"type": "ring"}]}},
        "core_connectivity.0.type: expected one of",
    ),
    ({"hw": {"core_memory_sharing": ["0, 1"]}}, "hw.yaml: core_memory_sharing: is not read; a m"),
    ({"big": core("big", 65536, [4, 0])}, "operational_array.sizes of big: got 0; expected 1 or"),
    ({"big": {"name": "small"}}, "hw.yaml: cores: two files have the name small"),
    ({"big": {"memories": None}}, "big.yaml: memories: is missing"),
    ({"big": core("big", 65537, [16, 8])}, "memories.sram.size of big: 65537 bit; expected a mult"),
    ({"big": core("big", 2**16, [16, "8"])}, "big.yaml: operational_array.sizes.1: expected int"),
    ({"big": core("big", 2**16, [2, 2, 2, 2, 2])}, "sizes: expected array of length <= 4; got"),
]


@pytest.mark.parametrize(("changes", "said"), WRONG, ids=range(len(WRONG)))
def test_wrong_files_are_named_by_field(changes: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=f"^{re.escape(str(tmp_path))}.*{re.escape(said)}"):
        load_machine(written(tmp_path, **changes))


def test_a_core_alone_is_no_machine(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(FileError, match="a core alone; give the file that lists it under cores"):
        load_machine(tmp_path / "big.yaml")
