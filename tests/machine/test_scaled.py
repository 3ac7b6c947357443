"""Machines with other DRAM rates and scratchpads than their files."""

from fractions import Fraction

import pytest
import yaml

from spmilp.errors import FileError
from spmilp.machine.changed import AS_IT_IS, Scale
from spmilp.machine.machine import ByteRange, Machine
from spmilp.machine.read import list_presets, load_machine, read_machine
from tests.machine.small import content

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def scaled(fields: dict, **factors: Fraction) -> Machine:
    data = yaml.safe_dump(fields, sort_keys=False).encode()
    return read_machine(data, "test.yaml", Scale(**factors)).machine


def rates_of_ports(machine: Machine) -> list[Fraction]:
    drams = {memory.name for memory in machine.drams}
    return [link.rate for link in machine.links if {link.source, link.target} & drams]


@pytest.mark.parametrize("name", list_presets())
def test_every_preset_can_have_half_the_bandwidth_and_half_the_memory(name: str) -> None:
    plain = load_machine(name)
    machine = load_machine(name, Scale(dram=HALF, spm=HALF)).machine

    assert machine.name == f"{name}-dram0.5-spm0.5"
    assert rates_of_ports(machine) == [rate / 2 for rate in rates_of_ports(plain.machine)]
    for before, after in zip(plain.machine.spms, machine.spms, strict=True):
        assert before.usable is not None
        assert after.usable is not None
        # Each gap between reserved ranges loses less than one alignment.
        lost = before.usable // 2 - after.usable
        assert 0 <= lost <= before.alignment * (len(before.reserved) + 1)
        assert len(after.reserved) == len(before.reserved)


def test_the_factor_one_changes_nothing() -> None:
    assert load_machine("edge16", Scale()) == load_machine("edge16")
    assert Scale().label == AS_IT_IS.label == ""


def test_another_scale_is_another_machine() -> None:
    found = {load_machine("edge16", Scale(dram=Fraction(n))).sha256 for n in (1, 2, 4)}
    assert len(found) == 3


def test_reserved_bytes_keep_their_size_and_their_ends() -> None:
    fields = content()
    pad = fields["scratchpads"][0]
    pad.update(alignment_bytes=16, reserved_byte_ranges=[[0, 256], [65024, 65536]])
    spm = scaled(fields, spm=QUARTER).spms[0]

    # A quarter of the 64768 B between them is 16192 B, which is aligned.
    assert spm.reserved == (ByteRange(0, 256), ByteRange(16448, 16960))
    assert (spm.size, spm.usable) == (16960, 16192)


def test_only_the_ports_of_the_dram_get_another_rate() -> None:
    plain, machine = scaled(content()), scaled(content(), dram=Fraction(3))
    changed = {
        (before.rate, after.rate)
        for before, after in zip(plain.links, machine.links, strict=True)
        if before != after
    }
    assert changed == {(Fraction(6), Fraction(18))}
    assert plain.engines == machine.engines


def test_nothing_left_of_a_scratchpad_is_an_error() -> None:
    fields = content()
    fields["scratchpads"][0]["alignment_bytes"] = 64
    with pytest.raises(FileError, match="leaves nothing to use"):
        scaled(fields, spm=Fraction(1, 2000))


def test_a_rate_that_gets_too_fine_is_an_error() -> None:
    with pytest.raises(FileError, match="too fine"):
        scaled(content(), dram=Fraction(1, 997 * 991))


@pytest.mark.parametrize("factor", [Fraction(0), Fraction(-1, 2)])
def test_a_factor_is_positive(factor: Fraction) -> None:
    with pytest.raises(ValueError, match="expected a number > 0"):
        Scale(spm=factor)


def test_labels_are_short_and_exact() -> None:
    assert Scale(dram=Fraction(2), spm=Fraction(1, 16)).label == "-dram2-spm0.0625"
    assert Scale(spm=Fraction(1, 3)).label == "-spm1of3"
