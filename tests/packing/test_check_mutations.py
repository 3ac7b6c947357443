"""The check finds each kind of wrong offset, and agrees with a definition of a few lines."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.packing import Item, PackingProblem, check_packing


def item(
    size: int, *lifetimes: tuple[int, int], alignment: int = 1, offset: int | None = None
) -> Item:
    return Item(size=size, lifetimes=lifetimes, alignment=alignment, offset=offset)


PROBLEM = PackingProblem(
    items=(
        item(8, (0, 4)),
        item(8, (4, 8)),  # under the first one, later
        item(4, (0, 2), (6, 8), alignment=8),
        item(4, (2, 6)),  # in the gap of the one before
        item(4, (0, 8), offset=12),
        item(2, (0, 8)),
        item(2, (0, 8)),  # an update in place of the one before
        item(2, (20, 21)),
    ),
    capacity=28,
    reserved=((16, 24),),
    together=((5, 6),),
)
VALID = (0, 0, 8, 8, 12, 24, 24, 26)


def rules_broken(problem: PackingProblem, offsets: tuple[int, ...]) -> set[tuple[str, ...]]:
    found = check_packing(problem, offsets)
    return {(violation.rule, *map(str, violation.items)) for violation in found}


def test_a_packing_at_every_limit_is_valid() -> None:
    assert check_packing(PROBLEM, VALID) == []


MUTATIONS = [
    (0, -1, ("inside", "0")),
    (7, 27, ("inside", "7")),
    (2, 4, ("aligned", "2")),
    (4, 13, ("where_fixed", "4")),
    (3, 14, ("outside_reserved", "3")),
    (7, 23, ("outside_reserved", "7")),
    (6, 26, ("together", "5", "6")),
    (0, 1, ("disjoint", "0", "2")),
    (1, 1, ("disjoint", "1", "2")),
    (3, 7, ("disjoint", "0", "3")),
    (3, 9, ("disjoint", "3", "4")),
    (3, 10**30, ("inside", "3")),
    (3, -(10**30), ("inside", "3")),
]


@pytest.mark.parametrize(("moved", "to", "broken"), MUTATIONS)
def test_each_kind_of_violation_is_caught(moved: int, to: int, broken: tuple[str, ...]) -> None:
    offsets = (*VALID[:moved], to, *VALID[moved + 1 :])
    assert broken in rules_broken(PROBLEM, offsets)


def test_the_message_says_how_many_bytes_and_for_how_long() -> None:
    both = PackingProblem(items=(item(4, (0, 5)), item(4, (2, 9))), capacity=None)
    (violation,) = check_packing(both, (0, 3))
    assert violation.message == "items 0 and 1 share 1 B for 3 units of time"


def test_there_must_be_an_offset_for_each_item() -> None:
    with pytest.raises(ValueError, match="7 offsets for 8 items"):
        check_packing(PROBLEM, VALID[:-1])


def occupied(one: Item, offset: int) -> set[tuple[int, int]]:
    return {
        (time, byte)
        for start, end in one.lifetimes
        for time in range(start, end)
        for byte in range(offset, offset + one.size)
    }


@st.composite
def placed_items(draw: st.DrawFn) -> tuple[PackingProblem, tuple[int, ...]]:
    items = []
    for _ in range(draw(st.integers(1, 7))):
        times = draw(st.lists(st.integers(0, 9), min_size=2, max_size=4, unique=True))
        times = sorted(times)[: len(times) // 2 * 2]
        lifetimes = tuple(zip(times[::2], times[1::2], strict=True))
        items.append(item(draw(st.integers(1, 4)), *lifetimes))
    offsets = tuple(draw(st.integers(0, 12)) for _ in items)
    return PackingProblem(items=tuple(items), capacity=12), offsets


@pytest.mark.full
@settings(max_examples=300, deadline=None, derandomize=True)
@given(placed_items())
def test_cell_by_cell_gives_the_same_verdict(
    placed: tuple[PackingProblem, tuple[int, ...]],
) -> None:
    problem, offsets = placed
    cells = [occupied(one, offset) for one, offset in zip(problem.items, offsets, strict=True)]
    expected = {
        ("disjoint", str(i), str(j))
        for i in range(len(cells))
        for j in range(i + 1, len(cells))
        if cells[i] & cells[j]
    } | {("inside", str(i)) for i, one in enumerate(problem.items) if offsets[i] + one.size > 12}
    assert rules_broken(problem, offsets) == expected
