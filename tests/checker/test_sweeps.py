"""The sweeps find what comparing each with each finds; no mutated plan makes the checker fail."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.checker.rules.sweeps import PlacedBox, Rectangle, overlapping_boxes, overlapping_pairs

pytestmark = pytest.mark.full

FEW = settings(max_examples=150, deadline=None, derandomize=True)


@st.composite
def rectangles(draw: st.DrawFn) -> list[Rectangle]:
    count = draw(st.integers(0, 12))
    found = []
    for key in range(count):
        low, start = draw(st.integers(0, 12)), draw(st.integers(0, 12))
        size, cycles = draw(st.integers(1, 6)), draw(st.integers(1, 6))
        found.append(Rectangle(low, low + size, key, start, start + cycles))
    return found


@FEW
@given(rectangles())
def test_the_sweep_finds_exactly_the_pairs_that_overlap(items: list[Rectangle]) -> None:
    expected = {
        frozenset((a.key, b.key))
        for a, b in combinations(items, 2)
        if a.low < b.high and b.low < a.high and a.start < b.end and b.start < a.end
    }
    found = list(overlapping_pairs(items))
    assert {frozenset(pair) for pair in found} == expected
    assert len(found) == len(expected)


@st.composite
def placed(draw: st.DrawFn) -> list[PlacedBox]:
    """Boxes of a tensor of 4 x 4 elements: there at cycle 0, or written."""
    found = []
    for key in range(draw(st.integers(1, 7))):
        lows = [draw(st.integers(0, 3)) for _ in range(2)]
        box = tuple((low, draw(st.integers(low + 1, 4))) for low in lows)
        start, written = draw(st.integers(0, 6)), draw(st.booleans())
        found.append(PlacedBox(box, key, start, start + draw(st.integers(1, 6)), written))
    return found


@FEW
@given(placed())
def test_boxes_are_compared_element_by_element(items: list[PlacedBox]) -> None:
    def elements(item: PlacedBox) -> set[tuple[int, int]]:
        rows, columns = item.box
        return {(i, j) for i in range(*rows) for j in range(*columns)}

    expected = {
        frozenset((one.key, other.key))
        for one, other in combinations(items, 2)
        if elements(one) & elements(other)
        and one.start < other.end
        and other.start < one.end
        and (one.written or other.written)
    }
    found = list(overlapping_boxes(items))
    assert {frozenset(pair) for pair in found} == expected
    assert len(found) == len(expected)
