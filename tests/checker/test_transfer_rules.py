"""Rules about transfers, one test for each way to break one in the worked example."""

from dataclasses import replace
from fractions import Fraction

import pytest

from checker.worked_example import (
    CORE_DMA,
    DRAM_DMA,
    L2_DMA,
    MACHINE,
    PLAN,
    PROBLEM,
    X0,
    X1,
    X1_TOP,
    C,
    broken,
    changed,
    with_engine,
    with_machine,
)
from spmilp.checker.rules.case import Case
from spmilp.machine.machine import Link
from spmilp.problem.problem import Slice


def test_the_source_holds_the_slice() -> None:
    found = broken(changed(transfers={3: {"source": 1}}))
    assert found == {
        "transfer_data": [
            "transfer 3 of slice 9 (x1): its source residency 1 (x0 in l2) holds slice 0 (x0)"
        ]
    }


def test_a_part_of_the_slice_is_no_source() -> None:
    found = broken(changed(residencies={12: {"slice": 8}}))
    assert "holds slice 8 (x0)" in found["transfer_data"][0]


def test_scratch_is_no_source() -> None:
    found = broken(changed(transfers={12: {"source": 9}}))
    assert "holds scratch" in found["transfer_data"][0]


def test_the_source_is_valid_when_the_transfer_starts() -> None:
    found = broken(
        changed(transfers={5: {"start": 93, "end": 107}}, residencies={14: {"start": 93}})
    )
    assert found == {
        "transfer_data": [
            "transfer 5 of slice 5 (c): its source residency 13 (c in l2) is valid from cycle "
            "94 > 93, its start"
        ]
    }


def test_the_source_stays_until_the_transfer_ends() -> None:
    found = broken(changed(residencies={1: {"end": 40}, 0: {"end": 49}}))
    assert found == {
        "transfer_data": [
            "transfer 1 of slice 0 (x0): its source residency 1 (x0 in l2) ends at cycle 40 < 49, "
            "its end"
        ]
    }


def test_the_destination_is_of_the_slice() -> None:
    found = broken(changed(residencies={6: {"slice": 8}}))
    assert found["transfer_data"] == [
        "transfer 3 of slice 9 (x1): its destination residency 6 (x0 in spm1) holds slice 8 (x0)"
    ]


def test_the_destination_exists_until_the_transfer_ends() -> None:
    found = broken(changed(residencies={22: {"end": 60}}))
    assert found["transfer_data"] == [
        "transfer 12 of slice 2 (w): its destination residency 22 (w in spm1) ends at cycle 60 < "
        "68, its end"
    ]


def test_two_destinations_lie_in_different_memories() -> None:
    found = broken(changed(residencies={2: {"memory": 3, "offset": 320}}))
    assert found["transfer_data"] == [
        "transfer 1 of slice 0 (x0): it has 2 destinations in spm1, expected 1 at most"
    ]


def test_an_engine_moves_data_only_where_it_reaches() -> None:
    found = broken(changed(transfers={12: {"engine": L2_DMA, "channel": 1, "end": 84}}))
    assert (
        found["transfer_route"]
        == ["transfer 12 of slice 2 (w): engine l2_dma does not move data from spm0 to spm1"]
        or "engine l2_dma does not move data from spm0 to spm1" in found["transfer_route"][0]
    )


def test_an_engine_that_does_not_store_stores_not() -> None:
    found = broken(PLAN, with_engine(CORE_DMA, stores=False))
    assert found == {
        "transfer_route": [
            "transfer 12 of slice 2 (w): engine core_dma does not move data from spm0 to spm1"
        ]
    }


def test_a_transfer_takes_the_machines_route() -> None:
    found = broken(changed(transfers={12: {"route": (6, 5)}}))
    assert found == {
        "transfer_route": ["transfer 12 of slice 2 (w): it takes the links [6, 5], expected [5, 6]"]
    }


def test_a_multicast_takes_each_link_once() -> None:
    found = broken(changed(transfers={1: {"route": (2, 4, 2, 6)}}))
    assert found["transfer_route"] == [
        "transfer 1 of slice 0 (x0): it takes the links [2, 4, 2, 6], expected [2, 4, 6]"
    ]


def test_a_transfer_needs_a_route() -> None:
    links = list(MACHINE.links)
    links[0] = Link(index=0, source="dram", target="elsewhere", rate=Fraction(8), latency=4)
    found = broken(PLAN, with_machine(links=tuple(links)))
    assert found["transfer_route"] == [
        "transfer 0 of slice 0 (x0): no route leads from dram to l2",
        "transfer 2 of slice 9 (x1): no route leads from dram to l2",
        "transfer 6 of slice 5 (c): no route leads from dram to l2",
    ]


def test_only_an_engine_that_can_multicast_has_several_destinations() -> None:
    assert broken(PLAN, with_engine(L2_DMA, multicast=False)) == {
        "transfer_route": [
            "transfer 1 of slice 0 (x0): 2 destinations > 1: engine l2_dma cannot multicast"
        ]
    }


def test_a_transfer_lasts_as_long_as_the_machine_says() -> None:
    found = broken(changed(transfers={12: {"end": 67}}))
    assert found == {
        "transfer_route": [
            "transfer 12 of slice 2 (w): it lasts [49, 67) = 18 cycles, expected 19 for 64 B by "
            "engine core_dma"
        ]
    }


def test_a_transfer_is_no_longer_than_its_engine_can() -> None:
    assert broken(PLAN, with_engine(CORE_DMA, longest=63)) == {
        "transfer_limits": [
            "transfer 12 of slice 2 (w): 64 B > 63 B, the longest transfer of core_dma"
        ]
    }


def test_a_copy_has_no_more_nested_strides_than_a_descriptor() -> None:
    """The halves of y are four runs each at a distance of 16 B."""
    assert broken(PLAN, with_engine(DRAM_DMA, dimensions=1)) == {
        "transfer_limits": [
            "transfer 9 of slice 6 (y0): its copy to residency 18 (y0 in dram) has 2 dimensions > "
            "1 of dram_dma",
            "transfer 11 of slice 7 (y1): its copy to residency 21 (y1 in dram) has 2 dimensions > "
            "1 of dram_dma",
        ]
    }


def test_a_slice_of_its_parents_residency_is_copied_with_strides() -> None:
    """x0's left half lies in rows of 16 B in a residency of x0."""
    problem = with_engine(L2_DMA, dimensions=1)
    plan = changed(transfers={3: {"slice": 8, "source": 1}}, residencies={6: {"slice": 8}})
    assert broken(plan, problem)["transfer_limits"] == [
        "transfer 3 of slice 8 (x0): its copy to residency 6 (x0 in spm1) has 2 dimensions > 1 of "
        "l2_dma"
    ]


def test_source_and_destination_are_congruent_where_the_engine_demands_it() -> None:
    assert broken(changed(residencies={22: {"offset": 272}}))["transfer_limits"] == [
        "transfer 12 of slice 2 (w): source address 128 and destination address 272 differ modulo "
        "32 B: 0 and 16"
    ]


def test_congruent_addresses_need_not_be_multiples() -> None:
    plan = changed(residencies={7: {"offset": 400}, 22: {"offset": 272}})
    assert broken(plan, with_engine(CORE_DMA, congruence=64)).keys() == {"claims"}


def test_addresses_that_differ_by_an_odd_number_are_not_congruent_modulo_2() -> None:
    plan = changed(residencies={22: {"offset": 257}})
    problem = with_engine(CORE_DMA, congruence=2, dimensions=None)
    assert "transfer_limits" in broken(plan, problem)


def test_a_transfer_of_what_its_source_does_not_hold_has_no_addresses() -> None:
    assert "transfer_limits" not in broken(changed(transfers={12: {"source": 8}}))


def test_limits_hold_behind_a_destination_of_another_slice() -> None:
    plan = changed(residencies={2: {"slice": X1}, 3: {"offset": 80}})
    found = broken(plan, with_engine(L2_DMA, congruence=64))
    assert {"transfer_data", "transfer_limits"} <= found.keys()


@pytest.mark.parametrize("slice_", [X0, X1_TOP])
def test_a_destination_of_another_slice_has_no_limits(slice_: int) -> None:
    found = broken(changed(residencies={22: {"slice": slice_}}))
    assert "transfer_data" in found
    assert "transfer_limits" not in found


def test_congruence_counts_from_the_slices_first_byte() -> None:
    problem = with_engine(L2_DMA, congruence=64)
    plan = changed(transfers={3: {"slice": 10, "source": 1}}, residencies={6: {"slice": 10}})
    right = replace(PROBLEM.slices[8], index=10, start=(0, 8))
    problem = replace(problem, slices=(*problem.slices, right))
    assert (
        "transfer 3 of slice 10 (x0): source address 8 and destination address 128 differ modulo "
        "64 B: 8 and 0"
    ) in broken(plan, problem)["transfer_limits"]


def test_a_channel_is_one_of_its_engine() -> None:
    assert broken(changed(transfers={12: {"channel": 1}})) == {
        "channels": ["transfer 12 uses channel 1 of engine core_dma, which has 1, numbered from 0"]
    }


@pytest.mark.parametrize("channel", [-1, 2, 7])
def test_a_channel_below_0_or_far_too_high_is_none_of_its_engine(channel: int) -> None:
    assert broken(changed(transfers={12: {"channel": channel}})).keys() == {"channels"}


def test_a_slice_lies_in_its_parents_residency_behind_what_comes_before_it() -> None:
    """Offset and distance have bits in common."""
    last_row = Slice(index=10, buffer=C, start=(3, 0), extent=(1, 16), bytes=16)
    problem = replace(PROBLEM, slices=(*PROBLEM.slices, last_row))
    plan = changed(residencies={12: {"offset": 240}})
    assert Case(problem, plan).where(10, 12) == (240 + 48, (16, 1))


def test_a_channel_carries_one_transfer_at_a_time() -> None:
    assert broken(changed(transfers={3: {"channel": 0}})) == {
        "channels": [
            "channel 0 of engine l2_dma starts transfer 3 at cycle 24 < 49, the end of transfer 1"
        ]
    }


def test_a_link_carries_no_more_than_its_rate() -> None:
    """Two transfers of 2 B/cycle fill the links to spm1 in [24, 43); a link of 7/2 is too slow."""
    links = list(MACHINE.links)
    links[2] = replace(links[2], rate=Fraction(7, 2))
    assert broken(PLAN, with_machine(links=tuple(links))) == {
        "link_rates": [
            "link l2 -> r carries 4 B/cycle > 7/2 B/cycle at cycle 24 (transfer 1, transfer 3)"
        ]
    }


def test_exact_thirds_fill_a_link() -> None:
    """Rates are exact: three times a third is one, not a little more."""
    links = list(MACHINE.links)
    links[2] = replace(links[2], rate=Fraction(4, 3) * 3)
    problem = with_machine(links=tuple(links))
    assert broken(PLAN, problem) == {}


def test_a_transfer_from_a_residency_that_ends_while_a_copy_lives_is_not_a_lost_value() -> None:
    found = broken(changed(residencies={13: {"end": 100}, 12: {"end": 109}}))
    assert found == {
        "transfer_data": [
            "transfer 5 of slice 5 (c): its source residency 13 (c in l2) ends at cycle 100 < 108, "
            "its end"
        ]
    }
    assert PLAN.transfers[5].slice == C
