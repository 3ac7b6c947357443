"""Files are written by a copy of the process, all of them or none."""

import os
import signal
from pathlib import Path

import pytest

from spmilp.beside import written_beside


def test_the_copy_writes_what_this_process_knew_and_leaves_nothing_else(tmp_path: Path) -> None:
    knows = ["before"]
    with written_beside(lambda folder: (folder / "it").write_text(knows[0]), tmp_path) as writing:
        knows[0] = "after"
        assert writing is not None
        folder = writing.finished()
        assert folder is not None
        assert (folder / "it").read_text() == "before"
        (folder / "it").replace(tmp_path / "it")
    assert [path.name for path in tmp_path.iterdir()] == ["it"]


@pytest.mark.parametrize("fails", [OSError("no room"), KeyboardInterrupt()])
def test_what_could_not_be_written_is_none(fails: BaseException, tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        raise fails

    with written_beside(write, tmp_path) as writing:
        assert writing is not None
        assert writing.finished() is None
    assert list(tmp_path.iterdir()) == []


def test_the_copy_ends_with_the_block(tmp_path: Path) -> None:
    numbers, write_end = os.pipe()

    def write(folder: Path) -> None:
        os.write(write_end, str(os.getpid()).encode())
        signal.pause()

    with written_beside(write, tmp_path):
        copy = int(os.read(numbers, 20))
    with pytest.raises(ProcessLookupError):
        os.kill(copy, 0)
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_nothing_is_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with written_beside(lambda folder: None, file) as writing:
        assert writing is None
