"""Files that change together do so whatever ends the process, and whoever else writes or reads."""

import errno
import fcntl
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from spmilp import commit
from spmilp.errors import FileError
from spmilp.files import read_together, write_atomically, write_together

pytestmark = pytest.mark.full

OLD = {"a.json": b"old a", "b.json": b"old b"}
NEW = {"a.json": b"the new a", "b.json": b"the new b"}
CALLS = ("mkdir", "open", "write", "fsync", "rename", "replace", "rmdir", "close")


def _pair(folder: Path) -> Mapping[str, bytes]:
    return dict(zip(OLD, read_together([folder / name for name in OLD]), strict=True))


def _fail_at(number: int, then: Callable[[str], None], patch: pytest.MonkeyPatch) -> list[str]:
    """Let the system call of that number do something else; return the names of all calls."""
    seen: list[str] = []

    def patched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            seen.append(name)
            if len(seen) == number + 1:
                then(name)
            return real(*given, **named)

        return call

    for name in CALLS:
        patch.setattr(os, name, patched(name, getattr(os, name)))
    return seen


def _calls_of_a_write(folder: Path, patch: pytest.MonkeyPatch, old: Mapping[str, bytes]) -> int:
    with patch.context() as inside:
        write_together(folder, old)
        seen = _fail_at(-2, lambda name: None, inside)
        write_together(folder, NEW)
        return len(seen)


SAME_A = {"a.json": NEW["a.json"], "b.json": b"old b"}


@pytest.mark.parametrize("old", [OLD, SAME_A], ids=["both change", "one changes"])
def test_a_kill_at_any_system_call_leaves_the_old_files_or_the_new_ones(
    old: Mapping[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = _calls_of_a_write(tmp_path / "counted", monkeypatch, old)
    found = []
    for number in range(count):
        folder = tmp_path / f"kill{number}"
        write_together(folder, old)
        child = os.fork()
        if child == 0:
            _fail_at(number, lambda name: os._exit(9), monkeypatch)
            write_together(folder, NEW)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        # Somebody who may not write sees the same as somebody who may.
        there = {name: commit.place_of(folder / name).read_bytes() for name in OLD}
        assert _pair(folder) == there
        assert there in (old, NEW)
        found.append(there == NEW)
        assert {name: (folder / name).read_bytes() for name in OLD} == there

        write_together(folder, OLD)
        assert _pair(folder) == OLD
        assert sorted(path.name for path in folder.iterdir()) == sorted(OLD)
    assert True in found
    assert found == sorted(found)


@pytest.mark.parametrize("wrong", [errno.ENOSPC, errno.EIO])
def test_an_error_at_any_system_call_leaves_the_old_files_or_the_new_ones(
    wrong: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise OSError(wrong, os.strerror(wrong))

    for number in range(_calls_of_a_write(tmp_path / "counted", monkeypatch, OLD)):
        folder = tmp_path / f"error{number}"
        write_together(folder, OLD)
        with monkeypatch.context() as inside:
            _fail_at(number, fail, inside)
            try:
                write_together(folder, NEW)
                said = ""
            except FileError as error:
                said = str(error)
        assert os.strerror(wrong) in said or _pair(folder) == NEW
        assert _pair(folder) in (OLD, NEW)
        write_together(folder, OLD)
        assert sorted(path.name for path in folder.iterdir()) == sorted(OLD)


def test_a_file_that_stays_the_same_is_not_replaced(tmp_path: Path) -> None:
    write_together(tmp_path, OLD)
    before = (tmp_path / "a.json").stat()
    os.utime(tmp_path / "a.json", (1, 1))
    write_together(tmp_path, SAME_A | {"a.json": b"old a"})
    after = (tmp_path / "a.json").stat()

    assert after.st_ino == before.st_ino
    assert after.st_mtime > 1


def test_what_a_kill_has_left_over_is_swept_by_the_next_writer(tmp_path: Path) -> None:
    left_over = tmp_path / f"{commit.STAGED}0123"
    left_over.mkdir(parents=True)
    (left_over / "a.json").write_bytes(b"half")
    write_atomically(tmp_path / "other", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_writers_at_the_same_time_leave_the_files_of_one_of_them(tmp_path: Path) -> None:
    versions = [{name: bytes([65 + v]) * 50_000 for name in OLD} for v in range(4)]
    write_together(tmp_path, versions[0])
    stop, wrong = Event(), []

    def read_all_the_time() -> None:
        while not stop.is_set():
            a, b = read_together([tmp_path / name for name in OLD])
            if a != b:
                wrong.append((a[:1], b[:1]))

    def write_often(version: Mapping[str, bytes]) -> None:
        for _ in range(20):
            write_together(tmp_path, version)

    reader = Thread(target=read_all_the_time)
    writers = [Thread(target=write_often, args=(version,)) for version in versions]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()

    assert wrong == []
    assert _pair(tmp_path) in versions
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(OLD)


def test_without_locks_writers_still_leave_the_files_of_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*given: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    test_writers_at_the_same_time_leave_the_files_of_one_of_them(tmp_path)


def test_a_signal_in_the_middle_of_a_commit_waits_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_together(tmp_path, OLD)
    real = os.rename

    def interrupted(*given: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        real(*given)

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_together(tmp_path, NEW)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == NEW


def test_files_are_read_where_they_are_if_they_may_not_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    write_together(tmp_path, OLD)
    (tmp_path / commit.COMMITTED).mkdir()
    (tmp_path / commit.COMMITTED / "b.json").write_bytes(b"the new b")
    monkeypatch.setattr(os, "replace", refuse)
    assert _pair(tmp_path) == {"a.json": b"old a", "b.json": b"the new b"}
    assert (tmp_path / "b.json").read_bytes() == b"old b"


def test_a_file_that_cannot_be_moved_to_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / commit.COMMITTED).mkdir()
    (tmp_path / commit.COMMITTED / "b.json").write_bytes(b"the new b")
    (tmp_path / "b.json").mkdir()
    with pytest.raises(FileError, match=r"c\.json: cannot be written: Is a directory"):
        write_atomically(tmp_path / "c.json", "x")


def test_a_lock_that_is_held_for_too_long_is_gone_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "LONGEST_WAIT", 0.1)
    write_together(tmp_path, OLD)
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        write_together(tmp_path, NEW)
    finally:
        os.close(held)
    assert _pair(tmp_path) == NEW


def test_a_link_in_the_place_of_what_was_committed_leads_nowhere(tmp_path: Path) -> None:
    own, folder = tmp_path / "own", tmp_path / "folder"
    write_together(own, {"b.json": b"somebody's own", "diary": b"dear"})
    write_together(folder, OLD)
    (folder / commit.COMMITTED).symlink_to(own)
    assert _pair(folder) == OLD
    assert {path.name for path in own.iterdir()} == {"b.json", "diary"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_what_another_user_has_put_there_does_not_count(tmp_path: Path) -> None:
    write_together(tmp_path, OLD)
    (tmp_path / commit.COMMITTED).mkdir()
    (tmp_path / commit.COMMITTED / "b.json").write_bytes(b"a stranger's")
    os.chown(tmp_path / commit.COMMITTED, 65534, 65534)
    assert _pair(tmp_path) == OLD
    with pytest.raises(FileError, match="cannot be written: Directory not empty"):
        write_together(tmp_path, NEW)
    assert _pair(tmp_path) == OLD
