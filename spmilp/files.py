"""Reading and writing of files so that a failure harms nothing and says what happened."""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from spmilp import amounts
from spmilp.commit import finish, place_of, replace_together, try_to_write
from spmilp.errors import FileError

READS = 100
"""Attempts to read files of one moment, while others write them."""


def read_bytes(path: Path | str) -> bytes:
    """Return the bytes of a file.

    Raises
    ------
    FileError
        If the file is missing, a folder or unreadable.
    """
    (content,) = read_together([Path(path)])
    return content


def read_together(paths: Sequence[Path]) -> list[bytes]:
    """Return the bytes of files as they were at one moment, whoever writes them meanwhile.

    What :func:`write_together` could not finish is finished first, where that can be done.

    Raises
    ------
    FileError
        If one is missing, a folder or unreadable.
    """
    for folder in {path.parent for path in paths}:
        with suppress(OSError, ValueError):
            finish(folder)
    for _ in range(READS):
        with ExitStack() as opened:
            files = [opened.enter_context(_opened(path)) for path in paths]
            if all(map(_is_still_at, files, paths)):
                return [_content(path, file) for path, file in zip(paths, files, strict=True)]
    raise FileError(f"{paths[0]}: cannot be read: another process writes it again and again")


def write_atomically(path: Path | str, content: str | bytes) -> None:
    """Write a file as a whole or not at all; an older one stays until the new one is complete.

    A missing folder is made. Text is written as UTF-8 with its line ends as they are.

    Raises
    ------
    FileError
        If the folder or the file cannot be written.
    """
    target = Path(path)
    write_together(target.parent, {target.name: content})


def write_together(folder: Path, contents: Mapping[str, str | bytes]) -> tuple[Path, ...]:
    """Write files of a folder by their names, all of them or none, and return their paths.

    Whatever ends the process, :func:`read_together` finds all of the new ones or all of the old
    ones. See :mod:`spmilp.commit`.

    Raises
    ------
    FileError
        If one of them cannot be written.
    """
    targets = tuple(folder / name for name in contents)
    where = targets[0] if len(targets) == 1 else folder
    try:
        _refuse_what_is_no_file(targets)
        replace_together(
            folder,
            {
                name: content.encode() if isinstance(content, str) else content
                for name, content in contents.items()
            },
        )
    except (OSError, ValueError) as error:
        raise FileError(f"{where}: cannot be written: {_reason(error)}") from error
    return targets


def require_room(folder: Path, names: Iterable[str] = (), size: int = 0) -> None:
    """Make sure that files can be written into a folder, which need not be there yet.

    Parameters
    ----------
    names
        Of the files.
    size
        Bytes that they are expected to have together.

    Raises
    ------
    FileError
        If the folder cannot be written, something else has a file's name, or there is less room.
    """
    try:
        _refuse_what_is_no_file(folder / name for name in names)
        try_to_write(folder)
        place = next(each for each in (folder, *folder.parents) if each.exists())
        free = shutil.disk_usage(place).free
    except (OSError, ValueError) as error:
        raise FileError(f"{folder}: cannot be written: {_reason(error)}") from error
    if free < size:
        raise FileError(
            f"{folder}: {amounts.size(free)} are free, and the files take about "
            f"{amounts.size(size)}; make room or choose another folder"
        )


def sha256_of(what: Path | str | bytes) -> str:
    """Return the SHA-256 of bytes, or of the bytes of the file at a path, in lower-case hex.

    Raises
    ------
    FileError
        If the file cannot be read.
    """
    data = what if isinstance(what, bytes) else read_bytes(what)
    return hashlib.sha256(data).hexdigest()


def _opened(path: Path) -> BinaryIO:
    if is_device(path):
        raise FileError(f"{path}: cannot be read: it is a device")
    try:
        try:
            return place_of(path).open("rb")
        except FileNotFoundError:  # perhaps moved to its place just now
            return path.open("rb")
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be read: {_reason(error)}") from error


def _refuse_what_is_no_file(targets: Iterable[Path]) -> None:
    for target in targets:
        if target.exists() and not target.is_file():
            # Renaming onto /dev/null or a pipe would put an ordinary file in its place.
            what = "Is a directory" if target.is_dir() else "is no ordinary file"
            raise FileError(f"{target}: cannot be written: {what}")


def is_device(path: Path) -> bool:
    """Whether a path leads to a device, which may have no end."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def _is_still_at(file: BinaryIO, path: Path) -> bool:
    """Whether a path still leads to the file that was opened by it."""
    try:
        return os.path.samestat(place_of(path).stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _content(path: Path, file: BinaryIO) -> bytes:
    try:
        return file.read()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
