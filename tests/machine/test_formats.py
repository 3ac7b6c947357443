"""A machine as JSON, the published schema, sources of numbers, and other numbers."""

import json
import re
from fractions import Fraction
from hashlib import sha256
from importlib.resources import files
from inspect import cleandoc
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from msgspec import Struct

from spmilp.formats import decoded, encoded
from spmilp.machine.description import MachineDescription
from spmilp.machine.machine import Machine, machine_to_json
from spmilp.machine.read import as_machine_file, list_presets, load_machine, read_machine
from tests.machine.small import content

FOLDER = files("spmilp.machine")
PUBLISHED = FOLDER / "machine.schema.json"
RATE = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^\d+(/\d+|\.\d+)?$"}]}
MESH = load_machine("mesh4x4")


class Holder(Struct):
    """What has a machine."""

    machine: Machine


@pytest.mark.parametrize("name", list_presets())
def test_a_preset_follows_the_schema_and_is_read_back_from_json(name: str) -> None:
    text = (FOLDER / "presets" / f"{name}.yaml").read_text()
    jsonschema.validate(yaml.safe_load(text), json.loads(PUBLISHED.read_text()))
    file = load_machine(name)
    assert file.sha256 == sha256(text.encode()).hexdigest()
    assert (
        decoded(encoded({"machine": machine_to_json(file.machine)}), Holder).machine == file.machine
    )


def plain(schema: Any) -> Any:
    """Return a schema whose descriptions have no indents, which Python 3.13 removes itself."""
    if isinstance(schema, list):
        return [plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: cleandoc(value) if key == "description" and isinstance(value, str) else plain(value)
        for key, value in schema.items()
    }


def test_the_published_schema_is_that_of_the_fields() -> None:
    _, parts = msgspec.json.schema_components(
        [MachineDescription], schema_hook={Fraction: RATE}.get, ref_template="#/$defs/{name}"
    )
    schema = {**parts.pop("MachineDescription"), "$defs": parts, "title": "spmilp machine"}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    assert PUBLISHED.read_text() == json.dumps(plain(schema), indent=2, sort_keys=True) + "\n"
    with pytest.raises(jsonschema.ValidationError, match="topologie"):
        jsonschema.validate({**content(), "topologie": {}}, json.loads(PUBLISHED.read_text()))


def test_the_example_of_the_documentation_is_a_complete_machine() -> None:
    page = (Path(__file__).parents[2] / "docs" / "machines.md").read_text()
    example = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0]
    machine = read_machine(example.encode(), "machines.md").machine
    assert len(machine.cores) == 6
    assert "dram.dram.rate_bytes_per_cycle" not in machine.unverified
    assert "dram.dram.latency_cycles" in machine.unverified


def test_numbers_that_are_set_are_those_of_every_part() -> None:
    machine = MESH.replace(spm="64KiB", dma_channels=2, dma_rate=4, dram_rate=8).machine
    drams = {memory.name for memory in machine.drams}
    assert {spm.size for spm in machine.spms} == {64 * 1024}
    assert {(engine.channels, engine.rate) for engine in machine.engines} == {(2, Fraction(4))}
    assert {link.rate for link in machine.links if link.source in drams} == {Fraction(8)}
    assert machine.name == "mesh4x4-spm64KiB-dma_channels2-dma_rate4-dram_rate8"
    paths = {"topology.latency_cycles": 2, "core_kinds.*.launch_cycles": 10}
    changed = MESH.replace(fields=paths, name="slow").machine
    assert (changed.name, {kind.launch for kind in changed.kinds}) == ("slow", {10})
    assert [spm.size for spm in changed.spms] == [spm.size for spm in MESH.machine.spms]


@pytest.mark.parametrize(
    ("preset", "changes", "said"),
    [
        ("mesh4x4", {"spm": "64kb"}, "spm='64kb': '64kb' may count by 1000 or by 1024"),
        ("mesh4x4", {"dma_channels": 0}, "scratchpads.0.dma.0.channels: expected int >= 1; got 0"),
        ("mesh4x4", {"dram_rate": -1}, "dram_rate=-1: expected a positive number"),
        ("mesh4x4", {"fields": {"dram.x": 1}}, "dram.x=1: mesh4x4 has no such field"),
        (
            "mesh4x4",
            {"fields": {"topologi.x": 1}},
            "topologi.x=1: .* no such field; did you mean topology",
        ),
        ("gap9", {"spm": "4KiB"}, "spm4KiB: memory l1: reserved up to 131072 B > size 4096 B"),
    ],
)
def test_what_cannot_be_set_is_named_with_its_value(
    preset: str, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        load_machine(preset).replace(**changes)


def test_a_machine_that_comes_from_no_file_has_a_hash_of_its_own() -> None:
    made = as_machine_file(MESH.machine)
    assert made.sha256 not in ("", MESH.sha256)
    with pytest.raises(ValueError, match="comes from no file"):
        made.replace(spm="64KiB")
