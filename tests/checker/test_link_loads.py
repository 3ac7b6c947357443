"""A link is reported exactly when the rates of the transfers on it add up to more than its own."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checker.worked_example import MACHINE, PLAN, with_machine
from spmilp.checker.rules.case import Case
from spmilp.checker.rules.transfers import link_rates

pytestmark = pytest.mark.full

INTERVALS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 9), st.sampled_from([0, 0, 1])),
    min_size=1,
    max_size=6,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@example(intervals=[(10, 4, 0), (0, 10, 1), (5, 5, 1)], rate=Fraction(8))
@given(intervals=INTERVALS, rate=st.sampled_from([Fraction(4), Fraction(8), Fraction(17, 2)]))
def test_a_link_is_reported_exactly_when_the_rates_add_up_to_more(
    intervals: list[tuple[int, int, int]], rate: Fraction
) -> None:
    links = (replace(MACHINE.links[0], rate=rate), *MACHINE.links[1:])
    moves = tuple(
        replace(PLAN.transfers[0], index=index, start=start, sent=start + long, engine=engine)
        for index, (start, long, engine) in enumerate(intervals)
    )
    held = [min(MACHINE.engines[move.engine].rate, rate) for move in moves]
    loads = [
        sum(
            amount
            for move, amount in zip(moves, held, strict=True)
            if move.start + MACHINE.engines[move.engine].setup <= cycle < move.sent
        )
        for cycle in range(30)
    ]

    plan = replace(PLAN, residencies=(), transfers=moves)
    found = list(link_rates(Case(with_machine(links=links), plan)))

    assert bool(found) == (max(loads) > rate)
