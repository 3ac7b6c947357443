"""The machines that ship with the package."""

from importlib.resources import files
from itertools import pairwise

import pytest
import yaml

from spmilp.machine.machine import Machine
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


@pytest.mark.parametrize("name", ["gap8", "gap9"])
def test_data_for_a_cluster_is_staged_in_its_second_level(name: str) -> None:
    machine = load_machine(name).machine
    routes, dram, l1 = Routes(machine), index_of(machine, "dram"), index_of(machine, "l1")
    assert routes.engines_for(dram, l1) == ()
    assert routes.staging_path(dram, l1) == (dram, index_of(machine, "l2"), l1)
