"""Sets of links that every route crosses."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.bounds.movement import least_rate
from spmilp.machine.machine import Link
from spmilp.machine.read import load_machine
from spmilp.machine.routes import Routes


def links_of(*ends: tuple[str, str, int]) -> list[Link]:
    """Return links with these ends and bytes per cycle."""
    return [
        Link(index=index, source=source, target=target, rate=Fraction(rate))
        for index, (source, target, rate) in enumerate(ends)
    ]


def rates_of(links: Sequence[Link]) -> list[Fraction]:
    """Return the whole rate of each link."""
    return [link.rate for link in links]


def test_a_fast_dram_is_held_up_by_the_links_behind_its_port() -> None:
    # DRAM sends 16 bytes per cycle to a router that passes on 3 to each of two neighbours.
    links = links_of(
        ("dram", "port", 16),
        ("port", "left", 3),
        ("port", "right", 3),
        *((side, f"spm_{side}{n}", 9) for side in ("left", "right") for n in (0, 1)),
    )
    routes = [(0, 1, 3), (0, 1, 4), (0, 2, 5), (0, 2, 6)]

    assert least_rate(links, rates_of(links), routes) == 6


def test_the_port_of_a_mesh_with_a_fast_dram_has_four_links_to_send_on() -> None:
    machine = load_machine("edge16").replace(dram_rate=8 * 16).machine
    routes = Routes(machine)
    dram = machine.drams[0].index
    others = (other.index for other in machine.memories if other.index != dram)
    found = [routes.between(dram, other) for other in others]

    some = [route.links for route in found if route]
    assert least_rate(machine.links, rates_of(machine.links), some) == 4 * 24


@pytest.mark.full
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rates=st.lists(st.integers(1, 9), min_size=6, max_size=6),
    chosen=st.sets(st.integers(0, 7), min_size=1),
)
def test_no_transfers_together_are_faster_than_the_least_rate(
    rates: list[int], chosen: set[int]
) -> None:
    # Two layers of two links each behind one of two first links: eight routes.
    links = links_of(
        ("dram", "a", rates[0]),
        ("dram", "b", rates[1]),
        ("a", "c", rates[2]),
        ("b", "c", rates[3]),
        ("c", "x", rates[4]),
        ("c", "y", rates[5]),
    )
    every = [(first, second, third) for first, second in ((0, 2), (1, 3)) for third in (4, 5)]
    routes = sorted({every[one % len(every)] for one in chosen})

    found = least_rate(links, rates_of(links), routes)

    used = sorted({link for route in routes for link in route})
    hitting = [
        some
        for size in range(1, len(used) + 1)
        for some in combinations(used, size)
        if all(set(some) & set(route) for route in routes)
    ]
    assert found in {sum((links[one].rate for one in some), Fraction(0)) for some in hitting}
