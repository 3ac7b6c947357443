"""A machine can be changed by a few numbers, and says so."""

from fractions import Fraction

import pytest

from spmilp.machine.machine import MemoryKind
from spmilp.machine.read import as_machine_file, load_machine

MESH = load_machine("mesh4x4")


def test_numbers_that_are_set_are_those_of_every_part() -> None:
    machine = MESH.replace(spm="64KiB", dma_channels=2, dma_rate=4, dram_rate=8).machine

    assert {spm.size for spm in machine.spms} == {64 * 1024}
    assert {(engine.channels, engine.rate) for engine in machine.engines} == {(2, Fraction(4))}
    drams = {memory.name for memory in machine.memories if memory.kind is MemoryKind.DRAM}
    assert {link.rate for link in machine.links if link.source in drams} == {Fraction(8)}
    assert machine.name == "mesh4x4-spm64KiB-dma_channels2-dma_rate4-dram_rate8"


def test_what_is_left_out_stays() -> None:
    changed = MESH.replace(dram_rate="47/2", name="fast").machine
    assert changed.name == "fast"
    assert [spm.size for spm in changed.spms] == [spm.size for spm in MESH.machine.spms]


def test_the_hash_is_another_one_and_depends_on_the_numbers_alone() -> None:
    hashes = {MESH.replace(spm=spm).sha256 for spm in ("64KiB", 65536, "0x10000")}
    assert len(hashes) == 1
    assert MESH.sha256 not in hashes
    assert MESH.replace(spm="32KiB").sha256 not in hashes


def test_no_source_confirms_a_number_that_was_set() -> None:
    changed = MESH.replace(spm="64KiB")
    (entry,) = (each for each in changed.provenance if each.field.startswith("scratchpads.spm.siz"))

    assert (entry.field, entry.value, entry.verified) == (
        "scratchpads.spm.size_bytes",
        "65536",
        False,
    )
    assert set(changed.machine.unverified) == {*MESH.machine.unverified, entry.field}


@pytest.mark.parametrize(
    ("preset", "field", "value", "said"),
    [
        ("mesh4x4", "spm", "64kb", "spm='64kb': '64kb' may count by 1000 or by 1024"),
        (
            "mesh4x4",
            "dma_channels",
            0,
            "dma_channels0: scratchpads.0.dma.0.channels: expected int >= 1; got 0",
        ),
        ("mesh4x4", "dram_rate", -1, "dram_rate=-1: expected a positive number"),
        (
            "gap9",
            "spm",
            "4KiB",
            "spm4KiB: memory l1: reserved up to 131072 B > size 4096 B",
        ),
    ],
)
def test_what_cannot_be_set_is_named_with_its_value(
    preset: str, field: str, value: object, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        load_machine(preset).replace(**{field: value})


def test_a_machine_that_comes_from_no_file_has_a_hash_of_its_own() -> None:
    made = as_machine_file(MESH.machine)
    assert made.sha256 not in ("", MESH.sha256)
    with pytest.raises(ValueError, match="comes from no file"):
        made.replace(spm="64KiB")
