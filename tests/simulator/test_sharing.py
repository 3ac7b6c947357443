"""Bytes per cycle of transfers on the same links: by hand, and by what max-min fair means."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmilp.simulator.sharing import Sharing


def ends_of(
    capacity: list[float], links: list[list[int]], limit: list[float], size: list[int]
) -> dict[int, float]:
    """Return when each transfer has sent all, where all begin together."""
    sharing = Sharing(capacity, links, limit, size)
    for transfer in range(len(links)):
        sharing.begin(transfer)
    ends, now = dict[int, float](), 0.0
    while (cycles := sharing.shared()) < inf:
        now += cycles
        ends.update(dict.fromkeys(sharing.after(cycles), now))
    return ends


def test_what_one_cannot_use_is_for_the_others() -> None:
    # The first is as slow as its engine, 1 B per cycle; the others get 3.5 each, then 7.
    assert ends_of([8.0], [[0]] * 3, [1.0, 8.0, 8.0], [20, 35, 70]) == {1: 10.0, 2: 15.0, 0: 20.0}


def test_who_is_held_by_one_link_leaves_the_rest_of_another() -> None:
    # Links of 10 and of 4. The transfer over both and the one over the second get 2 each, so that
    # the one over the first gets 8.
    assert ends_of([10.0, 4.0], [[0, 1], [0], [1]], [99.0] * 3, [20, 80, 20]) == {
        0: 10.0,
        1: 10.0,
        2: 10.0,
    }


@given(st.data())
def test_nobody_can_get_more_without_one_that_has_no_more_getting_less(data: st.DataObject) -> None:
    links = data.draw(st.integers(1, 5))
    capacity = data.draw(st.lists(st.integers(1, 40), min_size=links, max_size=links))
    over = data.draw(st.lists(st.sets(st.integers(0, links - 1)), min_size=1, max_size=8))
    limit = [float(data.draw(st.integers(1, 30))) for _ in over]
    sharing = Sharing([*map(float, capacity)], [*map(sorted, over)], limit, [1000] * len(over))
    for transfer in range(len(over)):
        sharing.begin(transfer)
    sharing.shared()
    rate = [*sharing.traffic.rate]

    load = [sum(r for r, own in zip(rate, over, strict=True) if one in own) for one in range(links)]
    assert all(used <= most * (1 + 1e-6) for used, most in zip(load, capacity, strict=True))
    for own, mine, most in zip(over, rate, limit, strict=True):
        holding = [
            one
            for one in own
            if load[one] == pytest.approx(capacity[one])
            and all(r <= mine * (1 + 1e-6) for r, o in zip(rate, over, strict=True) if one in o)
        ]
        assert holding or mine == pytest.approx(most)
