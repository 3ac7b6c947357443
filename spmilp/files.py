"""Reading and writing of files so that a failure harms nothing and says what happened."""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from secrets import token_hex

from spmilp.errors import FileError

STAGED = ".spmilp-staged-"
"""How names begin of files that are not complete yet."""


def read_bytes(path: Path | str) -> bytes:
    """Return the bytes of a file.

    Raises a ``FileError`` if the file is missing, a folder, a device or unreadable.
    """
    try:
        if is_device(Path(path)):
            raise FileError(f"{path}: cannot be read: it is a device")
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be read: {_reason(error)}") from error


def write_atomically(path: Path | str, content: str | bytes) -> None:
    """Write a file as a whole or not at all; an older one stays until the new one is complete.

    A missing folder is made. Text is written as UTF-8 with its line ends as they are.

    Raises a ``FileError`` if the folder or the file cannot be written.
    """
    target = Path(path)
    write_together(target.parent, {target.name: content})


def write_together(folder: Path, contents: Mapping[str, str | bytes]) -> tuple[Path, ...]:
    """Write files of a folder by their names, and return their paths.

    All of them are complete on the disk before the first one gets its name; then they get their
    names in the given order. A process that is killed in between leaves the first ones new and the
    others old, each as a whole.

    Raises a ``FileError`` if one of them cannot be written; then the folder holds what it held.
    """
    targets = tuple(folder / name for name in contents)
    where = targets[0] if len(targets) == 1 else folder
    staged = [folder / f"{STAGED}{token_hex(8)}" for _ in targets]
    try:
        _refuse_what_is_no_file(targets)
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in zip(staged, contents.values(), strict=True):
            with path.open("xb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
        for path, target in zip(staged, targets, strict=True):
            path.replace(target)
    except (OSError, ValueError) as error:
        raise FileError(f"{where}: cannot be written: {_reason(error)}") from error
    finally:
        for path in staged:
            if os.path.lexists(path):
                path.unlink()
    return targets


def require_room(folder: Path, names: Iterable[str] = ()) -> None:
    """Make sure that files can be written into a folder, which need not be there yet.

    Raises a ``FileError`` if the folder cannot be written, or something else has one of the files'
    ``names``.
    """
    try:
        _refuse_what_is_no_file(folder / name for name in names)
        place = next(each for each in (folder, *folder.parents) if each.exists())
        tried = place / f"{STAGED}{token_hex(8)}"
        tried.write_bytes(b"")
        tried.unlink()
    except (OSError, ValueError) as error:
        raise FileError(f"{folder}: cannot be written: {_reason(error)}") from error


def sha256_of(what: Path | str | bytes) -> str:
    """Return the SHA-256 of bytes, or of the bytes of the file at a path, in lower-case hex.

    Raises a ``FileError`` if the file cannot be read.
    """
    data = what if isinstance(what, bytes) else read_bytes(what)
    return hashlib.sha256(data).hexdigest()


def is_device(path: Path) -> bool:
    """Whether a path leads to a device, which may have no end."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def _refuse_what_is_no_file(targets: Iterable[Path]) -> None:
    for target in targets:
        if target.exists() and not target.is_file():
            # Renaming onto /dev/null or a pipe would put an ordinary file in its place.
            what = "Is a directory" if target.is_dir() else "is no ordinary file"
            raise FileError(f"{target}: cannot be written: {what}")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
