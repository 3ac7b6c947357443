"""What whole transfers can use of links."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.lowering.rates import dram_rate, shared_dram_rate
from spmilp.machine.read import load_machine
from spmilp.machine.routes import most_in_use


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    capacity=st.integers(0, 30),
    rates=st.sets(st.integers(1, 12), max_size=3),
    unit=st.sampled_from([Fraction(1), Fraction(1, 3), Fraction(5, 4)]),
)
def test_no_transfers_side_by_side_use_more_and_some_use_as_much(
    capacity: int, rates: set[int], unit: Fraction
) -> None:
    counts = product(*(range(capacity // rate + 1) for rate in rates))
    sums = {sum(n * rate for n, rate in zip(some, rates, strict=True)) for some in counts}

    found = most_in_use(capacity * unit, {rate * unit for rate in rates})

    assert found == max(each for each in sums if each <= capacity) * unit


def test_where_there_are_too_many_sums_only_the_common_divisor_counts() -> None:
    assert most_in_use(Fraction(10**9 + 5), {Fraction(6 * 10**8), Fraction(10)}) == 10**9


@pytest.mark.parametrize(
    ("name", "ports", "used"),
    [("wormhole", 6 * 48, 6 * 32), ("ipu_mk2", 15, 12), ("mesh4x4", 128, 128)],
)
def test_a_port_of_dram_carries_whole_transfers(name: str, ports: int, used: int) -> None:
    machine = load_machine(name).machine
    drams = {memory.name for memory in machine.drams}

    assert sum(link.rate for link in machine.links if link.source in drams) == ports
    assert dram_rate(machine, outgoing=True) == used
    assert shared_dram_rate(machine) == used
