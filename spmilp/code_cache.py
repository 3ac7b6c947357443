"""Machine code of compiled functions, kept between processes and never used when it is stale.

numba's own cache looks at the file of a function and not at the files of the functions it calls:
after an edit to one of those the old machine code would stay in use. Here the folder of a module's
machine code has a hash in its name: of every source file of the package that the module imports,
directly or not, and of the versions and the processor that the code was made with. So what is found
in a folder was made from exactly these sources, and processes with other sources (another branch,
an older version) use other folders beside it.

The folders are in ``spmilp`` in the folder that ``NUMBA_CACHE_DIR`` names, else in the user's cache
folder (on Linux ``XDG_CACHE_HOME`` or ``~/.cache``). Where nothing can be written each process
compiles anew.
"""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding

PACKAGE = Path(__file__).parent
IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+)?import\s+(?:\(([^)]*)\)|([^\n#;]+))", re.MULTILINE)
"""An import; to parse the sources takes ten times as long."""
FOLDERS_KEPT = 4
"""Folders of each module: to switch between a few versions of the sources compiles nothing."""


def folder_for(module: str, source: Path) -> Path:
    """Return the folder for the machine code of a module, whose file is ``source``."""
    return _all_folders() / f"{module.removeprefix(f'{PACKAGE.name}.')}-{hash_of_sources(source)}"


@cache
def hash_of_sources(source: Path) -> str:
    """Return a hash of a source file, all of the package that it imports, and what compiles it."""
    versions = (
        platform.python_version(),
        os.environ.get("NUMBA_CPU_NAME") or llvmlite.binding.get_host_cpu_name(),
    )
    digest = sha256(repr(versions).encode())
    # The files that state the versions are read; to import the libraries would take long.
    for library in ("numba/_version.py", "llvmlite/_version.py", "numpy/version.py"):
        digest.update(_file_of_library(library).read_bytes())
    digest.update(_content_of_imports(source))
    return digest.hexdigest()[:16]


def _content_of_imports(source: Path) -> bytes:
    files = sorted(_with_all_imports(source))
    return b"".join(file.name.encode() + sha256(file.read_bytes()).digest() for file in files)


def _with_all_imports(source: Path) -> set[Path]:
    found: set[Path] = set()
    waiting = [source]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting.extend(_imports(file))
    return found


@cache
def _imports(source: Path) -> tuple[Path, ...]:
    """Return the files of the package that a file imports."""
    names: list[str] = []
    for module, bracketed, bare in IMPORT.findall(source.read_text(encoding="utf-8")):
        # What is imported from a folder may be a module.
        members = re.findall(r"[\w.]+", bracketed or bare)
        names += [module, *(f"{module}.{member}" for member in members)] if module else members
    return tuple(file for name in names for file in _files_of(name))


def _file_of_library(name: str) -> Path:
    library, _, file = name.partition("/")
    found = find_spec(library)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"{library} is not installed")
    return Path(found.origin).parent / file


def _files_of(module: str) -> Iterator[Path]:
    package, *inside = module.split(".")
    if package == PACKAGE.name:
        place = PACKAGE.joinpath(*inside)
        yield from filter(Path.is_file, (place.with_suffix(".py"), place / "__init__.py"))


def _all_folders() -> Path:
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    return Path(wanted, PACKAGE.name) if wanted else _users_cache_folder() / PACKAGE.name


def _users_cache_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@cache
def can_be_written(folder: Path) -> bool:
    """Make a folder and set its time, which marks it as in use; say whether it can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def remove_older(folder: Path) -> None:
    """Keep the :data:`FOLDERS_KEPT` folders of a module that were used last; remove the others."""
    module = folder.name.rpartition("-")[0]
    siblings = [other for other in folder.parent.glob(f"{module}-*") if other != folder]
    siblings.sort(key=lambda other: other.stat().st_mtime, reverse=True)
    for old in siblings[FOLDERS_KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
