"""What is made of an object that never changes, when it is first asked for, and kept with it."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class Made:
    """What was made of one object. Copies and what is unpickled begin without."""

    __slots__ = ("results",)

    def __init__(self) -> None:
        self.results: dict[Callable[..., Any], Any] = {}

    def __reduce__(self) -> tuple[type["Made"], tuple[()]]:
        return Made, ()


class Keeper(Protocol):
    """An object that never changes, and has a place for what is made of it."""

    @property
    def made(self) -> Made:
        """What was made of it so far."""


K = TypeVar("K", bound=Keeper)


def made_once(make: Callable[[K], R]) -> Callable[[K], R]:
    """Call a function, or method, of an object only once; later return the same result again.

    It is for all who ask, so nobody may change it. Threads that ask at one time may each make it.
    """

    @wraps(make)
    def known(owner: K) -> R:
        results = owner.made.results
        if make not in results:
            results[make] = make(owner)
        found: R = results[make]
        return found

    return known
