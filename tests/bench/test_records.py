"""The file of records survives a kill."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.made import SETTING, record
from spmilp.bench.folder import read_runs, write_tables
from spmilp.bench.records import FILE, Record, Records, appending, read_records
from spmilp.errors import FileError, SpmilpError


def write(folder: Path, *records: Record) -> Records:
    with appending(folder) as file:
        kept = Records(folder)
        for each in records:
            kept.add(each, file)
    return kept


def test_what_was_written_is_read(tmp_path: Path) -> None:
    records = (record("x"), record("y", objective=None), record("z", statistics=None, history=()))
    write(tmp_path, *records)
    assert tuple(read_records(tmp_path)) == records


def test_a_line_that_a_kill_cut_off_is_dropped_and_written_over(tmp_path: Path) -> None:
    write(tmp_path, record("x"), record("y"))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-30])
    assert [each.instance for each in read_records(tmp_path)] == ["x"]

    write(tmp_path, record("z"))
    assert [each.instance for each in read_records(tmp_path)] == ["x", "z"]


def test_a_run_is_there_only_in_the_same_setting(tmp_path: Path) -> None:
    records = write(tmp_path, record("x", "list"))

    assert records.has(("x", "list", 0), SETTING)
    assert not records.has(("x", "list", 1), SETTING)
    assert not records.has(("x", "cpsat", 0), SETTING)
    for change in (
        {"row_sha256": "other"},
        {"version": "2"},
        {"time_limit": None},
        {"workers": 2},
        {"gap": 0.1},
    ):
        assert not records.has(("x", "list", 0), replace(SETTING, **change))


@pytest.mark.parametrize("status", ["skipped", "not made"])
def test_what_has_not_taken_place_is_tried_again(tmp_path: Path, status: str) -> None:
    records = write(tmp_path, record("x", "list", None, status=status))
    assert not records.has(("x", "list", 0), SETTING)


def test_the_last_record_of_a_run_counts(tmp_path: Path) -> None:
    write(tmp_path, record("x", objective=150), record("y"), record("x", objective=130))
    frame = read_runs(tmp_path)
    assert dict(zip(frame["instance"], frame["objective"], strict=True)) == {"y": 120, "x": 130}
    assert [each.objective for each in Records(tmp_path)] == [120, 130]


def test_tables_are_written_beside_the_records(tmp_path: Path) -> None:
    write_tables(write(tmp_path, record("x")))
    assert {path.name for path in tmp_path.iterdir()} == {
        *(FILE, "runs.csv", "progress.csv", "summary.md")
    }


def test_two_benchmarks_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        appending(tmp_path),
        pytest.raises(SpmilpError, match="another spmilp bench"),
        appending(tmp_path),
    ):
        pytest.fail("the folder was locked")


@pytest.mark.parametrize("line", [b"{}", b"[1]", b"nonsense", b'{"instance": 3}', b"\xff"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, line: bytes) -> None:
    (tmp_path / FILE).write_bytes(line + b"\n")
    with pytest.raises(FileError, match="line 1 is no record"):
        read_runs(tmp_path)


def test_a_folder_without_records_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no benchmark has been run there"):
        read_runs(tmp_path)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(FileError, match="cannot be written"), appending(tmp_path / "taken"):
        pytest.fail("there is no folder")
