"""Cache a value on an immutable object."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class Cache:
    """Values computed from one object. Its copies, and what is unpickled, begin with none."""

    __slots__ = ("results",)

    def __init__(self) -> None:
        self.results: dict[Callable[..., Any], Any] = {}

    def __reduce__(self) -> tuple[type["Cache"], tuple[()]]:
        return Cache, ()


class HasCache(Protocol):
    """An object that never changes and has a cache."""

    @property
    def cache(self) -> Cache:
        """Values computed from it so far."""


K = TypeVar("K", bound=HasCache)


def cached(compute: Callable[[K], R]) -> Callable[[K], R]:
    """Call a function (or method) once for each object, and keep the result with the object.

    All callers share the result, so nobody may change it. Threads that ask at the same time may
    each compute it.
    """

    @wraps(compute)
    def known(owner: K) -> R:
        results = owner.cache.results
        if compute not in results:
            results[compute] = compute(owner)
        found: R = results[compute]
        return found

    return known
