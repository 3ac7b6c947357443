"""What kernels need to run as C and as Python.

A kernel is a module of plain Python that Cython compiles when the package is built: the ``.pxd``
beside it says the types in C. Without a C compiler the same module runs as Python and gives the
same answers, some hundred times slower; so it does where ``SPMILP_UNCOMPILED`` is in the
environment (:mod:`spmilp.uncompiled`).

A function that Python calls turns what it is given into what kernels take: ``address(array)``, and
``address(in_c(tables))`` of a named tuple of arrays, numbers and further tuples, which must live
until the kernel ends. In C that is a struct of pointers with the fields in the same order, each of
eight bytes. What C calls a pointer to a row is the row itself in Python.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cython
import numpy as np

from spmilp.errors import SpmilpError

IS_COMPILED: bool = cython.compiled
"""Whether kernels are machine code."""

SLOW = (
    "the inner loops are not compiled and run as Python, some hundred times slower. Install a C "
    "compiler and Python's headers (on Debian gcc, libc6-dev and python3-dev), and then spmilp "
    "again, in a checkout with pip install -e ."
)

OLD = (
    "{} was compiled from other sources than those in this checkout; build it again: "
    "pip install -e ."
)
PACKAGE = Path(__file__).parent

_said: set[str] = set()


def warn_if_slow(warn: Callable[[str], None]) -> None:
    """Say, once in a process, that kernels are not compiled, unless that is wanted.

    Raises a ``SpmilpError`` if they are older than their sources: they might read tables as these
    were once.
    """
    if IS_COMPILED and (PACKAGE.parent / "setup.py").exists():
        require_current(PACKAGE)
    if not (IS_COMPILED or SLOW in _said or os.environ.get("SPMILP_UNCOMPILED")):
        _said.add(SLOW)
        warn(SLOW)


def require_current(package: Path) -> None:
    """Raise a ``SpmilpError`` for machine code that is older than its source or any struct."""
    structs = max(file.stat().st_mtime for file in package.rglob("*.pxd"))
    for code in sorted(package.rglob("*.so")):
        source = code.with_name(f"{code.name.partition('.')[0]}.py").stat().st_mtime
        if code.stat().st_mtime < max(structs, source):
            raise SpmilpError(OLD.format(code.relative_to(package.parent)))


def in_c(value: Any) -> Any:
    """Return a tuple of arrays and numbers as C sees it, which refers to the arrays."""
    if not IS_COMPILED:
        return value
    words: list[int] = []
    _add_words(words, value)
    return np.array(words, np.int64)


def _add_words(words: list[int], value: Any) -> None:
    """Append the eight bytes of each field, as integers."""
    if isinstance(value, tuple):
        for field in value:
            _add_words(words, field)
    elif isinstance(value, np.ndarray):
        words.append(address(value))
    elif isinstance(value, float):
        words.append(int(np.float64(value).view(np.int64)))
    else:
        words.append(int(value))


def address(array: Any) -> Any:
    """Return where the items of an array begin, for C; the array itself, for Python.

    Raises a ``ValueError`` if its items do not lie one behind the other.
    """
    if not IS_COMPILED:
        return array
    if not array.flags.c_contiguous:
        raise ValueError(f"an array of {array.dtype}, {array.strides}, is not what kernels take")
    return first_byte(array)


if cython.compiled:
    pass  # they are macros of compiled.pxd
else:

    def first_byte(array: Any) -> Any:
        """Return the address of an array, for which there is a quicker way in C."""
        return array.__array_interface__["data"][0]

    def whole(value: Any) -> Any:
        """Return an integer, which is one of C's there."""
        return value

    def longs_at(address: Any) -> Any:
        """Return an array of integers."""
        return address
