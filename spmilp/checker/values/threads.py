"""Keeps the BLAS to one thread while tiles are computed."""

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which NumPy's matrix products use one thread.

    Products of tiles are small: on a busy machine several threads wait for each other many times
    longer than they work. Without threadpoolctl the BLAS keeps its own number of threads.
    """
    try:
        threadpoolctl = import_module("threadpoolctl")
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpoolctl.threadpool_limits(1, user_api="blas")
    return limits
