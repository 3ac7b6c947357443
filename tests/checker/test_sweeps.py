"""The sweep finds what comparing each with each finds."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.checker.rules.sweeps import Rectangle, overlapping_pairs

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
