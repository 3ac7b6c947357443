"""A machine as JSON, where its numbers come from, and the published schemas."""

import copy
import json
from fractions import Fraction
from hashlib import sha256
from importlib.resources import files
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from msgspec import Struct

from spmilp.formats import decoded, encoded
from spmilp.machine.changed import provenance_of
from spmilp.machine.description import MachineDescription, ProvenanceFields
from spmilp.machine.machine import Machine, machine_to_json
from spmilp.machine.read import list_presets, load_machine
from tests.machine.small import content, small

PUBLISHED = files("spmilp.machine") / "machine.schema.json"
RATE = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^\d+(/\d+|\.\d+)?$"}]}


def published() -> dict[str, Any]:
    """Return the schema that the fields of a machine file make."""
    _, parts = msgspec.json.schema_components(
        [MachineDescription], schema_hook={Fraction: RATE}.get, ref_template="#/$defs/{name}"
    )
    own = parts.pop("MachineDescription")
    return {**own, "$defs": parts}


class Holder(Struct):
    """What has a machine."""

    machine: Machine


@pytest.mark.parametrize("name", list_presets())
def test_a_machine_read_back_from_json_is_equal(name: str) -> None:
    original = load_machine(name).machine
    content = encoded({"machine": machine_to_json(original)})
    assert decoded(content, Holder).machine == original


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda j: j["memories"][3].update(size=-1), "machine.memories.3.size: expected int"),
        (lambda j: j["links"][0].update(rate="x"), "machine.links.0.rate: expected a positive"),
        (lambda j: j["cores"][0].update(kind=7), "no kind 7"),
        (lambda j: j["cores"][1].update(index=5), "core 5 stands at position 1"),
        (lambda j: j.pop("engines"), None),
        (lambda j: j.update(cache={}), "cache: is no part of a file"),
        (lambda j: j["kinds"][0].update(measured={}), "measured: is no part of a file"),
    ],
)
def test_a_broken_json_machine_is_told(change, expected: str | None) -> None:
    broken = copy.deepcopy(machine_to_json(small()))
    change(broken)
    content = json.dumps({"machine": broken}).encode()
    if expected is None:  # readers of problems notice
        decoded(content, Holder)
        return
    with pytest.raises(ValueError, match=expected):
        decoded(content, Holder)


def test_the_published_schema_is_current() -> None:
    schema = published()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "spmilp machine"
    assert PUBLISHED.read_text() == json.dumps(schema, indent=2, sort_keys=True) + "\n"


@pytest.mark.parametrize("name", list_presets())
def test_presets_follow_the_published_schema(name: str) -> None:
    text = (files("spmilp.machine") / "presets" / f"{name}.yaml").read_text()
    jsonschema.validate(yaml.safe_load(text), json.loads(PUBLISHED.read_text()))


def test_the_published_schema_refuses_a_misspelt_field() -> None:
    wrong = {**content(), "topologie": {}}
    with pytest.raises(jsonschema.ValidationError, match="topologie"):
        jsonschema.validate(wrong, json.loads(PUBLISHED.read_text()))


def test_the_hash_is_that_of_the_files_bytes() -> None:
    data = (files("spmilp.machine") / "presets" / "edge16.yaml").read_bytes()
    assert load_machine("edge16").sha256 == sha256(data).hexdigest()


def entry(*paths: str, source: str, verified: bool = True) -> ProvenanceFields:
    return ProvenanceFields(fields=paths, source=source, verified=verified)


def test_the_longest_path_says_where_a_number_comes_from() -> None:
    found = provenance_of(
        content(),
        [
            entry("*", source="guess", verified=False),
            entry("topology", source="sheet"),
            entry("scratchpads.*.dma.*.channels", source="manual"),
        ],
    )
    by_field = {origin.field: origin for origin in found}
    assert by_field["topology.columns"].source == "sheet"
    assert by_field["scratchpads.spm.dma.dma.channels"].source == "manual"
    assert by_field["scratchpads.spm.dma.dma.channels"].value == "2"
    assert by_field["scratchpads.spm.size_kib"].source == "guess"
    assert not by_field["scratchpads.spm.size_kib"].verified


def test_what_is_no_number_counts_when_it_is_named() -> None:
    everything = entry("*", source="guess")
    fields = {origin.field for origin in provenance_of(content(), [everything])}
    assert "topology.columns" in fields
    assert "topology.type" not in fields
    named = provenance_of(content(), [everything, entry("topology.type", source="photo")])
    assert ("topology.type", "photo") in {(origin.field, origin.source) for origin in named}


def test_a_number_without_an_entry_is_unverified() -> None:
    found = provenance_of(content(), [entry("topology", source="sheet")])
    dram = next(origin for origin in found if origin.field == "dram.dram.rate_bytes_per_cycle")
    assert (dram.source, dram.verified) == ("", False)


def test_a_file_without_provenance_has_nothing_unverified() -> None:
    assert provenance_of(content(), []) == ()
    assert small().unverified == ()
