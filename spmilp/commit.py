"""Files of one folder that change together: all of them or none, whatever ends the process.

New contents are written into a folder of their own beside their targets and sent to the disk.
Renaming that folder to ``.spmilp-committed`` is the one step that counts: from then on what lies in
it holds, and a file of the folder itself only where it has none of that name. Then its files are
moved to their names. Where the process ends before that, readers take them from there, and the next
reader or writer that may do so moves them. Each step can be done again, by anybody, at any time: no
file is in the folder before it is complete, and none leaves it for another place.

Writers of a folder wait for each other where the file system has locks. Without locks each of them
first finishes what the other has begun.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from time import monotonic, sleep

from spmilp.interruptible import signals_wait

COMMITTED = ".spmilp-committed"
STAGED = ".spmilp-staged-"

ATTEMPTS = 100
"""To commit before others do, where there are no locks."""

LONGEST_WAIT = 60.0
"""Seconds for another writer to finish; then we go on as where there are no locks."""

NOT_FOR_FOLDERS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP)
"""What file systems say that cannot lock a folder or send its entries to the disk."""


def replace_together(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files of a folder, all of them or none; what is there already is left in its place.

    Parameters
    ----------
    folder
        Is made where it is missing.
    contents
        By file name. Each target is an ordinary file, or there is none.

    Raises
    ------
    OSError
        If they cannot be written. Then the folder holds what it held.
    """
    _make(folder)
    with _only_writer(folder) as alone:
        finish(folder)
        changed = contents
        if alone:
            for left_over in folder.glob(f"{STAGED}*"):
                shutil.rmtree(left_over, ignore_errors=True)
            changed = {
                name: content
                for name, content in contents.items()
                if not _has_already(folder / name, content)
            }
        if not changed:
            return
        staged = folder / f"{STAGED}{token_hex(8)}"
        try:
            os.mkdir(staged)
            for name, content in changed.items():
                _write(staged / name, content)
            _send_to_disk(staged)
            with signals_wait():
                _commit(folder, staged)
        finally:
            shutil.rmtree(staged, ignore_errors=True)


def try_to_write(folder: Path) -> None:
    """Write something into a folder, or where it would be made, and remove it again.

    Raises
    ------
    OSError
        If that cannot be done.
    """
    place = next(each for each in (folder, *folder.parents) if each.exists())
    with _only_writer(place):
        tried = place / f"{STAGED}{token_hex(8)}"
        try:
            os.mkdir(tried)
            _write(tried / "tried", bytes(4096))
        finally:
            shutil.rmtree(tried, ignore_errors=True)


def finish(folder: Path) -> None:
    """Move what has been committed, and not moved yet, to its place."""
    committed = folder / COMMITTED
    if not _is_ours(committed):
        return
    try:
        names = sorted(os.listdir(committed))
    except FileNotFoundError:
        return
    for name in names:
        with suppress(FileNotFoundError):  # somebody else has moved it
            os.replace(committed / name, folder / name)
    _send_to_disk(folder)
    # It is gone when somebody else has finished, and full when somebody has committed again.
    with suppress(OSError):
        os.rmdir(committed)


def place_of(path: Path) -> Path:
    """Return where the content of a file lies: it may be committed and not moved yet."""
    committed = path.parent / COMMITTED
    return (
        committed / path.name if _is_ours(committed) and (committed / path.name).exists() else path
    )


def _is_ours(committed: Path) -> bool:
    """Whether a folder was committed by this user or by who owns the folder around it.

    A link would lead to files that are somebody's own; another user's folder (in ``/tmp``) would
    put other files in the place of ours.
    """
    try:
        found, around = committed.lstat(), committed.parent.stat()
    except OSError:
        return False
    who = {around.st_uid, os.getuid()} if hasattr(os, "getuid") else {found.st_uid}
    return stat.S_ISDIR(found.st_mode) and found.st_uid in who


def _commit(folder: Path, staged: Path) -> None:
    """Make a staged folder the one that holds, with a single rename, and finish."""
    names = os.listdir(staged)
    if len(names) == 1:
        os.replace(staged / names[0], folder / names[0])
        _send_to_disk(folder)
        return
    for attempt in range(ATTEMPTS):
        try:
            os.rename(staged, folder / COMMITTED)
            break
        except OSError as error:
            # Only where there are no locks: another writer has committed and not finished.
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY) or attempt == ATTEMPTS - 1:
                raise
            finish(folder)
    _send_to_disk(folder)
    finish(folder)


def _has_already(target: Path, content: bytes) -> bool:
    """Whether a file has this content; it then counts as written now, as its time tells."""
    try:
        if target.stat().st_size != len(content) or target.read_bytes() != content:
            return False
        os.utime(target)
    except OSError:
        return False
    return True


def _make(folder: Path) -> None:
    """Make a folder and those above it, and send their entries to the disk."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        _send_to_disk(made.parent)


def _write(path: Path, content: bytes) -> None:
    """Write a new file, and send it to the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    finally:
        os.close(file)


def _send_to_disk(folder: Path) -> None:
    """Make sure that the entries of a folder survive a loss of power, where that can be done."""
    with _descriptor(folder) as opened:
        if opened is not None:
            _unless_not_for_folders(os.fsync, opened)


@contextmanager
def _only_writer(folder: Path) -> Iterator[bool]:
    """Wait for other writers of a folder; False where there are no locks."""
    try:
        import fcntl
    except ImportError:
        yield False
        return
    with _descriptor(folder) as opened:
        if opened is None:
            yield False
            return
        locked = _unless_not_for_folders(_lock_in_time, opened)
        try:
            yield locked
        finally:
            if locked:
                fcntl.flock(opened, fcntl.LOCK_UN)  # child processes may have the descriptor, too


def _lock_in_time(opened: int) -> None:
    """Wait for a lock of a folder, but not for ever: anybody who may read it can hold one.

    Raises
    ------
    OSError
        If there are no locks, or somebody holds this one for too long.
    """
    import fcntl

    ends = monotonic() + LONGEST_WAIT
    while True:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if monotonic() > ends:
                raise OSError(errno.ENOLCK, "the lock is held for too long") from error
            sleep(0.01)


@contextmanager
def _descriptor(folder: Path) -> Iterator[int | None]:
    """Open a folder; None where folders cannot be opened, or this one not read."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except PermissionError:
        yield None
        return
    try:
        yield opened
    finally:
        os.close(opened)


def _unless_not_for_folders(call: Callable[..., object], *arguments: int) -> bool:
    """Call a service of the file system; False if it does not have it for folders."""
    try:
        call(*arguments)
    except OSError as error:
        if error.errno not in NOT_FOR_FOLDERS:
            raise
        return False
    return True
