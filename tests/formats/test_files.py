"""Files are written as a whole or not at all."""

import os
from pathlib import Path

import pytest

from spmilp.errors import FileError
from spmilp.files import write_atomically


def test_an_older_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file", "old")
    write_atomically(tmp_path / "file", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "new"


def test_an_older_file_survives_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    write_atomically(tmp_path / "file", "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="file: cannot be written: No space left on device"):
        write_atomically(tmp_path / "file", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(FileError, match="taken: cannot be written"):
        write_atomically(tmp_path / "taken", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_new_files_have_the_usual_permissions(tmp_path: Path) -> None:
    write_atomically(tmp_path / "ours", "x")
    (tmp_path / "usual").write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="no ordinary file"):
        write_atomically(tmp_path / "pipe", "x")
    assert (tmp_path / "pipe").is_fifo()
