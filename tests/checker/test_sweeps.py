"""The sweeps find what comparing each with each finds; no mutated plan makes the checker fail."""

from dataclasses import fields, replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.worked_example import MACHINE, PLAN, PROBLEM
from spmilp.checker.check import check
from spmilp.checker.rules.case import Case
from spmilp.checker.rules.memory import Rectangle, overlapping_boxes, overlapping_pairs
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Buffer, BufferKind, DramTensor, Place, Problem, Slice, Task

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
def placed(draw: st.DrawFn) -> tuple[Problem, Plan]:
    """Residencies of boxes of one tensor: there at cycle 0 or, as it were, written by task 0."""
    buffers, residencies = [], []
    for index in range(draw(st.integers(1, 7))):
        start = tuple(draw(st.integers(0, 3)) for _ in range(2))
        shape = tuple(draw(st.integers(1, 4 - first)) for first in start)
        written = draw(st.booleans())
        buffers.append(
            Buffer(
                index=index, name=f"b{index}", kind=BufferKind.INPUT, shape=shape,
                starts_in=0, place=Place(0, start),
            )
        )  # fmt: skip
        first = draw(st.integers(0, 6))
        residencies.append(
            Residency(
                index=index, slice=index, memory=0, offset=0, bytes=buffers[-1].bytes,
                start=first, end=first + draw(st.integers(1, 6)),
                filled_by_task=0 if written else None,
            )
        )  # fmt: skip
    problem = Problem(
        name="boxes",
        machine=MACHINE,
        tensors=(
            DramTensor(
                index=0, name="t", kind=BufferKind.INPUT, memory=0, shape=(4, 4), item=1
            ),
        ),
        buffers=tuple(buffers),
        slices=tuple(
            Slice(index=b.index, buffer=b.index, start=(0, 0), extent=b.shape, bytes=b.bytes)
            for b in buffers
        ),
        tasks=(Task(index=0, name="t", cycles=(1, 1)),),
    )  # fmt: skip
    placement = replace(PLAN.placements[0], reads=(), writes=(), scratch=None)
    plan = replace(
        PLAN, placements=(placement,), residencies=tuple(residencies), transfers=(), tensors=(0,)
    )
    return problem, plan


@FEW
@given(placed())
def test_boxes_are_compared_element_by_element(case: tuple[Problem, Plan]) -> None:
    problem, plan = case

    def elements(residency: Residency) -> set[tuple[int, ...]]:
        buffer = problem.buffers[residency.index]
        place = buffer.place
        if place is None:
            return set()
        (a, b), (n, m) = place.start, buffer.shape
        return {(i, j) for i in range(a, a + n) for j in range(b, b + m)}

    expected = {
        frozenset((one.index, other.index))
        for one, other in combinations(plan.residencies, 2)
        if elements(one) & elements(other)
        and one.start < other.end
        and other.start < one.end
        and (one.filled_by_task is not None or other.filled_by_task is not None)
    }
    found = list(overlapping_boxes(Case(problem, plan)))
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
