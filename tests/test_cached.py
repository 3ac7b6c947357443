"""What is made of an object that never changes is made once, and belongs to that very object."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace

import pytest

from spmilp.cached import Cache, cached


@dataclass(frozen=True, slots=True)
class Square:
    side: int
    cache: Cache = field(default_factory=Cache, init=False, repr=False, compare=False)


asked: list[int] = []


@cached
def area(square: Square) -> int:
    asked.append(square.side)
    return square.side**2


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    asked.clear()


def test_it_is_made_once_for_each_object() -> None:
    one, other = Square(3), Square(3)
    assert (area(one), area(one), area(other)) == (9, 9, 9)
    assert asked == [3, 3]


@pytest.mark.parametrize(
    "copied", [lambda one: pickle.loads(pickle.dumps(one)), deepcopy, lambda one: replace(one)]
)
def test_copies_are_equal_and_begin_without(copied: Callable[[Square], Square]) -> None:
    first = Square(3)
    assert area(first) == 9
    second = copied(first)
    assert second == first
    assert hash(second) == hash(first)
    assert second.cache.results == {}
    assert area(second) == 9
    assert asked == [3, 3]
