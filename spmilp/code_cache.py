"""Machine code of compiled functions, kept between processes and never used when it is stale.

numba's own cache looks at the file of a function and not at the files of the functions it calls:
after an edit to one of those the old machine code would stay in use. Here the folder of a module's
machine code has a hash in its name: of every source file of the package that the module imports,
directly or not, and of the versions and the processor that the code was made with. So what is found
in a folder was made from exactly these sources, and processes with other sources (another branch,
an older version) use other folders beside it.

The folders are in ``spmilp`` in the folder that ``NUMBA_CACHE_DIR`` names, else in the user's cache
folder (on Linux ``XDG_CACHE_HOME`` or ``~/.cache``). Where nothing can be written each process
compiles anew. The rest of numba's cache (index, file names, atomic writes) is used as it is.
"""

import ast
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.misc.appdirs import AppDirs

PACKAGE = Path(__file__).parent
FOLDERS_KEPT = 4
"""Of each module: switching between a few versions of the sources compiles nothing anew."""


def keep_between_processes(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Let a function that numba has been told to compile use the cache, if there can be one."""
    # numba says with a RuntimeError that there is no folder to write to.
    with suppress(RuntimeError, OSError):
        dispatcher._cache = _Cache(function)


def folder_for(module: str, source: Path) -> Path:
    """Return the folder for the machine code of a module, whose file is ``source``."""
    return _all_folders() / f"{module.removeprefix(f'{PACKAGE.name}.')}-{hash_of_sources(source)}"


@cache
def hash_of_sources(source: Path) -> str:
    """Return a hash of a source file, all of the package that it imports, and what compiles it."""
    versions = (
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
        platform.python_version(),
        os.environ.get("NUMBA_CPU_NAME") or llvmlite.binding.get_host_cpu_name(),
    )
    digest = sha256(repr(versions).encode())
    for file in sorted(_with_all_imports(source)):
        digest.update(file.name.encode() + sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


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
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # What is imported from a folder may be a module.
            names.extend([node.module, *(f"{node.module}.{alias.name}" for alias in node.names)])
    return tuple(file for name in names for file in _files_of(name))


def _files_of(module: str) -> Iterator[Path]:
    package, *inside = module.split(".")
    if package == PACKAGE.name:
        place = PACKAGE.joinpath(*inside)
        yield from filter(Path.is_file, (place.with_suffix(".py"), place / "__init__.py"))


def _all_folders() -> Path:
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    if wanted:
        return Path(wanted, PACKAGE.name)
    return Path(AppDirs(PACKAGE.name, appauthor=False).user_cache_dir)


@cache
def _can_be_written(folder: Path) -> bool:
    """Make a folder, and mark it as in use by setting its time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _remove_older(folder: Path) -> None:
    """Remove the folders of the same module that have not been in use for longest."""
    module = folder.name.rpartition("-")[0]
    siblings = [other for other in folder.parent.glob(f"{module}-*") if other != folder]
    siblings.sort(key=lambda other: other.stat().st_mtime, reverse=True)
    for old in siblings[FOLDERS_KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)


class _Locator(_CacheLocator):
    """Tells numba in which folder the machine code of a function is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Locator | None":
        """Return the folder of a function; None if it cannot be written."""
        folder = folder_for(py_func.__module__, Path(py_file))
        return cls(folder) if _can_be_written(folder) else None

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return the same for all: the folder's name tells versions of the sources apart."""
        return ""

    def get_disambiguator(self) -> str:
        """Return the same for all: no two functions in a folder have the same name."""
        return "code"


class _Files(CompileResultCacheImpl):
    """Makes numba ask this locator alone where the files of a function are."""

    def __init__(self, function: Any) -> None:
        locators: list[Any] = [_Locator]
        self._locator_classes = locators
        super().__init__(function)


class _Cache(FunctionCache):
    """numba's cache of one function; trouble with its files means no cache, never an error."""

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature; None when there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            # A damaged file may raise anything. An empty index takes its place.
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the machine code for a signature, and remove what has not been used for long."""
        with suppress(OSError):
            super().save_overload(sig, data)
            _remove_older(Path(self.cache_path))
