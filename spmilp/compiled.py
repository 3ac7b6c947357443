"""Compilation of integer kernels with numba, which is imported only where there is need.

A function that Python calls is ``compiled`` (or a ``kernel``, when it makes no arrays, or
``standalone``, when it shall run in processes that do without numba); one that only such functions
call is a ``part``. With ``NUMBA_DISABLE_JIT=1`` in the environment the same functions run as plain
Python and give the same answers, slowly; the tests compare the two.
"""

import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from spmilp.machine_code import Standalone

P = ParamSpec("P")
R = TypeVar("R")

_waiting: list[Callable[..., object]] = []
"""Parts that the compiler does not know yet, because it has not been imported."""


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls: cached, and without holding the interpreter lock."""
    from spmilp.compiler import with_cache

    _make_parts()
    return with_cache(function, {})


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that makes no arrays: as ``compiled``, but arrays are not counted.

    Counting the references to forty arrays at each call between functions can take most of the
    time. The caller in Python holds the arrays for the duration of the call.
    """
    from spmilp.compiler import with_cache

    _make_parts()
    # numba knows the option, its types do not.
    return with_cache(function, {"_nrt": False})


def standalone(function: Callable[P, R]) -> Standalone[P, R]:
    """Compile a kernel whose machine code other processes load without numba, and sooner.

    Its arguments are whole numbers and arrays of one dimension, alone or in named tuples; it
    returns a whole number or nothing.
    """
    return Standalone(function, _object_code, kernel)


def part(function: Callable[P, R]) -> Callable[P, R]:
    """Let compiled functions call a function, which for Python stays as it is.

    It becomes machine code only inside the functions that Python calls. By default numba would also
    make machine code of it alone, with all that it calls: time that grows with the square of the
    depth of calls.
    """
    _waiting.append(function)
    if "spmilp.compiler" in sys.modules:
        _make_parts()
    return function


def seconds_of_compiling() -> float:
    """Return how long this process has compiled code, or loaded what was compiled before."""
    compiler = sys.modules.get("spmilp.compiler")
    return 0.0 if compiler is None else float(compiler.STOPWATCH.seconds)


def _make_parts() -> None:
    from spmilp.compiler import make_part

    while _waiting:
        make_part(_waiting.pop(0))


def _object_code(
    function: Callable[..., object], arguments: tuple[object, ...]
) -> tuple[str, bytes] | None:
    from spmilp.compiler import object_code

    _make_parts()
    return object_code(function, arguments)
