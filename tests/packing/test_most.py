"""As much as fits: offsets inside the capacity for some items, none for the others."""

import pytest

from spmilp.packing import Item, PackingProblem, check_packing
from spmilp.packing.most import pack_most


def of_sizes(*sizes: int, capacity: int | None) -> PackingProblem:
    """Return items that all live at once; the length of their lives is 10."""
    items = tuple(Item(size=size, lifetimes=((0, 10),)) for size in sizes)
    return PackingProblem(items=items, capacity=capacity)


def test_all_items_are_packed_where_first_fit_finds_room_for_them() -> None:
    problem = of_sizes(3, 4, 5, capacity=12)

    offsets = pack_most(problem)

    assert None not in offsets
    assert not check_packing(problem, [offset or 0 for offset in offsets])


def test_the_least_bytes_are_left_over() -> None:
    assert [offset is None for offset in pack_most(of_sizes(6, 3, 5, capacity=11))] == [
        False,
        True,
        False,
    ]


def test_items_at_fixed_offsets_stay_and_others_go_next_to_them() -> None:
    fixed = Item(size=4, lifetimes=((0, 10),), offset=4)
    other = Item(size=4, lifetimes=((5, 15),))
    problem = PackingProblem(items=(fixed, other, other), capacity=8)

    assert sorted(pack_most(problem), key=str) == [0, 4, None]


def test_items_that_lie_together_are_left_over_together() -> None:
    first, second = (Item(size=6, lifetimes=((t, t + 5),)) for t in (0, 4))
    large = Item(size=8, lifetimes=((0, 30),))
    problem = PackingProblem(items=(large, first, second), capacity=10, together=((1, 2),))

    assert pack_most(problem) == (0, None, None)


def test_without_a_capacity_there_is_nothing_to_fill() -> None:
    with pytest.raises(ValueError, match="no capacity"):
        pack_most(of_sizes(1, capacity=None))
