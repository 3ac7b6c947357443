"""All files of a call, or none; the same bytes each time; and nothing that names can steer."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from checker.worked_example import PLAN, with_machine
from export.subjects import lowered, subject, with_hostile_names
from spmilp.errors import FileError
from spmilp.export.errors import ExportError
from spmilp.export.formats import FORMATS, MANIFEST, export
from spmilp.files import sha256_of

WITHOUT_MODEL = [name for name, each in FORMATS.items() if not each.needs_model]


def test_names_from_the_model_never_become_names_of_files() -> None:
    plain = export(subject(), [], WITHOUT_MODEL)
    hostile = export(with_hostile_names(), [], WITHOUT_MODEL)
    assert set(plain.files) == set(hostile.files)
    assert all("/" not in name and "\\" not in name for name in hostile.files)


def test_the_manifest_lists_every_file_with_format_version_and_hash() -> None:
    made = export(subject(), [], WITHOUT_MODEL)
    manifest = json.loads(made.files[MANIFEST])
    listed = {entry["file"]: entry for entry in manifest["files"]}
    assert {*listed, MANIFEST} == set(made.files)
    for name, entry in listed.items():
        assert entry["sha256"] == sha256_of(made.files[name])
        assert entry["bytes"] == len(made.files[name])
        assert entry["format_version"]
    assert manifest["model_sha256"] == "ab" * 32
    assert manifest["plan_sha256"] == subject().origin["plan_sha256"]
    assert manifest["network"] in made.files["allocation.csv"].decode()
    assert manifest["machine"] == subject().problem.machine.name


def test_constants_without_values_keep_only_the_formats_out_that_need_them() -> None:
    given = lowered("ds_cnn_int8", 5, 1)
    tensors = {
        name: replace(each, data=None, fill=None) for name, each in given.network.tensors.items()
    }
    bare = replace(given, network=replace(given.network, tensors=tensors))
    made = export(bare, [], list(FORMATS))
    assert {name for name, _ in made.left_out} >= {"c", "c-code", "player"}
    assert {"allocation.csv", "trace.json", "dma.csv"} <= set(made.files)


def test_when_one_file_cannot_be_written_none_is(tmp_path: Path) -> None:
    made = export(subject(), ["csv", "dma", "perfetto"])
    (tmp_path / "trace.json").mkdir()
    (tmp_path / "allocation.csv").write_text("older")
    with pytest.raises(FileError, match=r"trace\.json: cannot be written"):
        made.write(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["allocation.csv", "trace.json"]
    assert (tmp_path / "allocation.csv").read_text() == "older"


def test_a_format_that_cannot_take_the_plan_says_so_and_the_others_are_made() -> None:
    problem = with_machine(events=1, event_maximum=1)
    given = subject(problem, replace(PLAN, problem_sha256=""))
    reasons = dict(export(given, ["csv"], WITHOUT_MODEL).left_out)
    assert set(reasons) >= {"commands"}
    assert "the plan needs 16 events" in reasons["commands"]
    named = export(given, ["csv", "commands"])
    assert "allocation.csv" in named.files
    with pytest.raises(ExportError, match=r"16 events .* \(the other formats are written\)"):
        named.require_all()
