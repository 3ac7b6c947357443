"""The sweeps find what comparing each with each finds; no mutated plan makes the checker fail."""

from dataclasses import fields, replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.worked_example import PLAN, PROBLEM
from spmilp.checker.check import check
from spmilp.checker.rules.sweeps import PlacedBox, Rectangle, overlapping_boxes, overlapping_pairs
from spmilp.plan.plan import Plan

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


def test_hundreds_of_rectangles_side_by_side_do_not_overlap() -> None:
    items = [Rectangle(2 * key, 2 * key + 2, key, 0, 10) for key in range(300)]
    assert list(overlapping_pairs(items)) == []


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


OPTIONAL = {
    ("placements", "scratch"),
    ("residencies", "slice"),
    ("residencies", "filled_by_task"),
    ("residencies", "filled_by_transfer"),
}
NUMBERS = st.one_of(st.integers(-2, 40), st.integers(40, 300), st.none())


@st.composite
def mutated(draw: st.DrawFn) -> Plan:
    """The worked example with a few numbers replaced by any others."""
    plan = PLAN
    for _ in range(draw(st.integers(1, 4))):
        table = draw(st.sampled_from(["placements", "residencies", "transfers"]))
        rows: list[Any] = list(getattr(plan, table))
        position = draw(st.integers(0, len(rows) - 1))
        name = draw(st.sampled_from([field.name for field in fields(rows[position])]))
        old, number = getattr(rows[position], name), draw(NUMBERS)
        if isinstance(old, tuple):
            new: Any = draw(st.lists(st.integers(-1, 25), max_size=3).map(tuple))
        elif number is None and (table, name) not in OPTIONAL:
            new = 0
        else:
            new = number
        rows[position] = replace(rows[position], **{name: new})
        plan = replace(plan, **{table: tuple(rows)})
    return plan


@settings(max_examples=400, deadline=None, derandomize=True)
@given(mutated())
def test_no_mutated_plan_makes_the_checker_fail(plan: Plan) -> None:
    assert all(violation.message for violation in check(PROBLEM, plan))
