"""Reading and writing of files so that a failure harms nothing and says what happened."""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from spmilp.errors import FileError


def read_bytes(path: Path | str) -> bytes:
    """Return the bytes of a file.

    Raises
    ------
    FileError
        If the file is missing, a folder or unreadable.
    """
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be read: {_reason(error)}") from error


def write_atomically(path: Path | str, content: str | bytes) -> None:
    """Write a file as a whole or not at all; an older one stays until the new one is complete.

    The bytes go to a temporary file in the same folder, to the disk, and are then renamed. A
    missing folder is made. Text is written as UTF-8 with its line ends as they are.

    Raises
    ------
    FileError
        If the folder or the file cannot be written.
    """
    write_all_atomically({Path(path): content})


def write_all_atomically(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files, each as in :func:`write_atomically`, all of them or none.

    The first is renamed only when the bytes of all are on the disk, so that no lack of room or of
    rights leaves a part of them.

    Raises
    ------
    FileError
        If one of them cannot be written.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        for target, content in contents.items():
            temporary = _temporary_beside(target)
            staged.append((temporary, target))
            _fill(temporary, target, content)
        for temporary, target in staged:
            _rename(temporary, target)
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)


def sha256_of(what: Path | str | bytes) -> str:
    """Return the SHA-256 of bytes, or of the bytes of the file at a path, in lower-case hex.

    Raises
    ------
    FileError
        If the file cannot be read.
    """
    data = what if isinstance(what, bytes) else read_bytes(what)
    return hashlib.sha256(data).hexdigest()


def _temporary_beside(target: Path) -> Path:
    """Make an empty file beside a target that can be written."""
    try:
        if target.exists() and not target.is_file():
            # Renaming onto /dev/null or a pipe would put an ordinary file in its place.
            what = "Is a directory" if target.is_dir() else "is no ordinary file"
            raise FileError(f"{target}: cannot be written: {what}")
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
    except (OSError, ValueError) as error:
        raise FileError(f"{target}: cannot be written: {_reason(error)}") from error
    return Path(name)


def _fill(temporary: Path, target: Path, content: str | bytes) -> None:
    try:
        with temporary.open("wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode_of_new_files())
    except OSError as error:
        raise FileError(f"{target}: cannot be written: {_reason(error)}") from error


def _rename(temporary: Path, target: Path) -> None:
    try:
        temporary.replace(target)
    except OSError as error:
        raise FileError(f"{target}: cannot be written: {_reason(error)}") from error


def _mode_of_new_files() -> int:
    """Return the permissions of an ordinary new file; temporary ones are private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
