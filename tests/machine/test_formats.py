"""A machine as JSON, where its numbers come from, and the published schemas."""

import copy
import json
from dataclasses import fields, replace
from fractions import Fraction
from hashlib import sha256
from importlib.resources import files

import jsonschema
import pytest
import yaml

from spmilp.errors import FileError
from spmilp.machine import convert, machine
from spmilp.machine.convert import MachineModel, machine_from_json, machine_to_json
from spmilp.machine.description import ProvenanceFields
from spmilp.machine.provenance import provenance_of
from spmilp.machine.read import list_presets, load_machine
from spmilp.machine.schema import PUBLISHED, machine_schema
from tests.machine.small import content, small


@pytest.mark.parametrize("name", list_presets())
def test_a_machine_read_back_from_json_is_equal(name: str) -> None:
    original = load_machine(name).machine
    text = json.dumps(machine_to_json(original), sort_keys=True)
    assert machine_from_json(json.loads(text)) == original


def test_a_machine_without_engines_is_read_back_too() -> None:
    bare = replace(
        small(),
        engines=(),
        remote=machine.RemoteReads(cycles_per_byte_hop=Fraction(0), longest_route=2),
    )
    assert machine_from_json(machine_to_json(bare)) == bare


@pytest.mark.parametrize(
    ("model", "cls"),
    [
        (convert.MachineModel, machine.Machine),
        (convert.MemoryModel, machine.Memory),
        (convert.ByteRangeModel, machine.ByteRange),
        (convert.KindModel, machine.CoreKind),
        (convert.ArrayModel, machine.MacArray),
        (convert.CoreModel, machine.Core),
        (convert.LinkModel, machine.Link),
        (convert.EngineModel, machine.Engine),
        (convert.RemoteModel, machine.RemoteReads),
    ],
)
def test_a_model_has_every_field_of_its_object(model: type, cls: type) -> None:
    # What does not count in comparisons is no part of a machine's description.
    kept = [field.name for field in fields(cls) if field.compare]
    assert list(model.model_fields) == kept


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda j: j["memories"][3].update(size=-1), "memories.3.size"),
        (lambda j: j["links"][0].update(rate="x"), "links.0.rate"),
        (lambda j: j["cores"][0].update(kind=7), "no kind 7"),
        (lambda j: j["cores"][1].update(index=5), "core 5 stands at position 1"),
        (lambda j: j.update(speed=1), "speed: unknown field"),
        (lambda j: j.pop("engines"), "engines: is missing"),
    ],
)
def test_a_broken_json_machine_is_told(change, expected: str) -> None:
    broken = copy.deepcopy(machine_to_json(small()))
    change(broken)
    with pytest.raises(FileError, match=f"machine: .*{expected}"):
        machine_from_json(broken)


def test_the_published_schema_is_current() -> None:
    assert PUBLISHED.read_text() == machine_schema()


@pytest.mark.parametrize("name", list_presets())
def test_presets_follow_the_published_schema(name: str) -> None:
    text = (files("spmilp.machine") / "presets" / f"{name}.yaml").read_text()
    jsonschema.validate(yaml.safe_load(text), json.loads(PUBLISHED.read_text()))


def test_the_published_schema_refuses_a_misspelt_field() -> None:
    wrong = {**content(), "topologie": {}}
    with pytest.raises(jsonschema.ValidationError, match="topologie"):
        jsonschema.validate(wrong, json.loads(PUBLISHED.read_text()))


def test_an_expanded_machine_follows_its_schema() -> None:
    jsonschema.validate(machine_to_json(small()), MachineModel.model_json_schema())


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
