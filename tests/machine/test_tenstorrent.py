"""SoC descriptors as machines: tiles and sizes of the file, rates of the preset, wrong files."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from spmilp.errors import FileError
from spmilp.machine.machine import MemoryKind
from spmilp.machine.read import MachineFile, load_machine, read_machine

DESCRIPTOR = """
grid: {x_size: 10, y_size: 12}
arc: [ 0-10 ]
dram: [[0-0, 0-1, 0-11], [5-2, 5-9, 5-10], [5-3, 5-4]]
eth: [ 9-0, 1-0 ]
functional_workers:
  [
   1-1, 2-1, 6-1,
   1-2, 2-2, 6-2,
  ]
harvested_workers: [ 1-2 ]
router_only: [ 0-2 ]
worker_l1_size: 1048576
dram_bank_size: 2147483648
eth_l1_size: 262144
arch_name: WORMHOLE_B0
features: {unpacker: {version: 2}}
"""


def of(**changes: Any) -> MachineFile:
    fields = {**yaml.safe_load(DESCRIPTOR), **changes}
    kept = {name: value for name, value in fields.items() if value is not None}
    return read_machine(yaml.safe_dump(kept).encode(), "chips/wh_5.yaml")


def test_tiles_and_sizes_are_the_files_and_rates_the_presets() -> None:
    given = of()
    machine = given.machine
    assert machine.name == "wh_5"
    assert [spm.name for spm in machine.spms] == [
        f"l1_{at}" for at in ("1_1", "2_1", "6_1", "2_2", "6_2")
    ]
    assert {spm.size for spm in machine.spms} == {1 << 20}
    (dram,) = machine.drams
    assert dram.size == 3 << 31
    ports = {link.target for link in machine.links if link.source.endswith("_out")}
    at = ("0_1", "0_11", "5_2", "5_9", "5_3")
    assert {each for each in ports if each.startswith("n0")} == {f"n0_{tile}" for tile in at}
    says = {one.field: one.source for one in given.provenance}
    assert says["scratchpads.l1.size_bytes"] == says["topology.rows"] == "The SoC descriptor."
    assert says["topology.rate_bytes_per_cycle"].startswith("tenstorrent/tt-npe")


def test_a_whole_wormhole_is_the_preset() -> None:
    rows = (1, 2, 3, 4, 5, 7, 8, 9, 10, 11)
    workers = [f"{x}-{y}" for y in rows for x in (1, 2, 3, 4, 6, 7, 8, 9)]
    dram = [["0-0", "0-1", "0-11"], ["0-5", "0-6", "0-7"], ["5-0", "5-1", "5-11"]]
    dram += [["5-2", "5-9", "5-10"], ["5-3", "5-4", "5-8"], ["5-5", "5-6", "5-7"]]
    given = of(functional_workers=workers, harvested_workers=[], dram=dram, worker_l1_size=1499136)
    preset = load_machine("wormhole").machine
    sized, *others = given.machine.memories
    assert sized.size == 12 << 30
    memories = (replace(sized, size=None), *others)
    named = {"name": preset.name, "description": preset.description}
    alike = replace(given.machine, memories=memories, unverified=preset.unverified, **named)
    assert alike == preset


def test_a_chip_of_another_layout_has_a_port_at_each_channel() -> None:
    changed = {"grid": {"x_size": 2, "y_size": 2}, "functional_workers": ["1-1"]}
    machine = of(**changed, dram=[["0-0"], ["1-0"]], arch_name="blackhole").machine
    assert len(machine.cores) == 1
    (dram,) = [memory for memory in machine.memories if memory.kind is MemoryKind.DRAM]
    assert dram.alignment == 64
    assert {link.target for link in machine.links} >= {"n0_0_0", "n0_1_0"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"arch_name": "QUASAR"}, "arch_name: got 'quasar'; rates are known of wormhole, worm"),
        ({"arch_name": None}, "arch_name: got ''"),
        ({"grid": None}, "grid: is missing"),
        ({"grid": {"x_size": "ten", "y_size": 2}}, "grid.x_size: expected int; got 'ten'"),
        ({"grid": {"x_size": 5, "y_size": 12}}, "tile 6-1 is outside of the grid of 5 x 12; give"),
        ({"functional_workers": ["18-18"]}, "tile 18-18 is outside of the grid of 10 x 12"),
        ({"functional_workers": [[1, 1]]}, r"functional_workers.0: expected str; got \[1, 1\]"),
        ({"functional_workers": ["1-2"]}, "functional_workers: all are harvested_workers"),
        ({"dram": ["0-0"]}, "dram.0: expected array; got '0-0'"),
        ({"worker_l1_size": "1M"}, "worker_l1_size: expected int; got '1M'"),
        ({"worker_l1_size": 100_000}, "worker_l1_size: 100000 B, of which .* takes 103712 B"),
    ],
)
def test_wrong_descriptors_are_named_by_field(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(FileError, match=rf"^chips/wh_5\.yaml: .*{said}"):
        of(**changes)


def test_broken_yaml_is_named_by_line() -> None:
    with pytest.raises(FileError, match=r"wh\.yaml: no valid YAML at line 3"):
        read_machine(b"arch_name: WORMHOLE_B0\ngrid: [\n}", "wh.yaml")
