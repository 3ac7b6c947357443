"""Compilation of the integer kernels, cached on disk between processes."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function with numba: cached, and without holding the interpreter lock.

    With ``NUMBA_DISABLE_JIT=1`` in the environment the same functions run as plain Python and give
    the same answers, slowly; the tests compare the two.
    """
    kernel: Callable[P, R] = njit(cache=True, nogil=True)(function)
    return kernel


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that makes no arrays: as ``compiled``, but arrays are not counted.

    Counting the references to forty arrays at each call between kernels took nine tenths of the
    search's time. Whoever calls from Python holds the arrays for the duration of the call.
    """
    # numba knows the option, its type stubs do not.
    options: dict[str, Any] = {"_nrt": False}
    bare: Callable[P, R] = njit(cache=True, nogil=True, **options)(function)
    return bare
