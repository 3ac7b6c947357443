"""Cache a value on an immutable object."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

R = TypeVar("R")
P = ParamSpec("P")


class Cache:
    """Values computed from one object. Its copies, and what is unpickled, begin with none."""

    __slots__ = ("results",)

    def __init__(self) -> None:
        self.results: dict[tuple[object, ...], Any] = {}

    def __reduce__(self) -> tuple[type["Cache"], tuple[()]]:
        return Cache, ()


class HasCache(Protocol):
    """An object that never changes and has a cache."""

    @property
    def cache(self) -> Cache:
        """Values computed from it so far."""


K = TypeVar("K", bound=HasCache)


def cached(compute: Callable[Concatenate[K, P], R]) -> Callable[Concatenate[K, P], R]:
    """Call a function (or method) once for each object and further arguments; keep what it returns.

    All callers share the result, so nobody may change it. Threads that ask at the same time may
    each compute it.
    """

    @wraps(compute)
    def known(owner: K, /, *given: P.args, **named: P.kwargs) -> R:
        results, key = owner.cache.results, (compute, *given, *named.items())
        if key not in results:
            results[key] = compute(owner, *given, **named)
        found: R = results[key]
        return found

    return known
