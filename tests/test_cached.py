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


@cached
def scaled(square: Square, by: int, *, more: int = 0) -> int:
    asked.append(by)
    return square.side * by + more


@pytest.fixture(autouse=True)
def nothing_asked() -> None:
    asked.clear()


def test_it_is_made_once_for_each_object() -> None:
    one, other = Square(3), Square(3)
    assert (area(one), area(one), area(other)) == (9, 9, 9)
    assert asked == [3, 3]


def test_further_arguments_have_results_of_their_own() -> None:
    one = Square(3)
    assert [scaled(one, by) for by in (2, 5, 2)] == [6, 15, 6]
    assert (scaled(one, 2, more=1), scaled(one, 2, more=4)) == (7, 10)
    assert asked == [2, 5, 2, 2]


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
