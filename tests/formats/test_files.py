"""Files are written as a whole or not at all."""

import os
from pathlib import Path

import pytest

from spmilp.errors import FileError
from spmilp.files import read_bytes, sha256_of, write_atomically

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_text_and_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new" / "text", "a\r\nä\n")
    write_atomically(tmp_path / "bytes", b"\x00\xff")
    assert (tmp_path / "new" / "text").read_bytes() == "a\r\nä\n".encode()
    assert read_bytes(tmp_path / "bytes") == b"\x00\xff"


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


def test_the_hash_is_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert (
        sha256_of(b"abc") == sha256_of(tmp_path / "abc") == sha256_of(str(tmp_path / "abc")) == ABC
    )


def test_a_path_with_a_null_byte_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        read_bytes("a\0b")
    with pytest.raises(FileError, match="cannot be written"):
        write_atomically(f"{tmp_path}/a\0b", "x")


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="no ordinary file"):
        write_atomically(tmp_path / "pipe", "x")
    assert (tmp_path / "pipe").is_fifo()
