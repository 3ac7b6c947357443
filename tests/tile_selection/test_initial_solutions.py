"""Estimates that lean differently, and what they choose."""

from dataclasses import asdict
from itertools import pairwise

import pytest

from spmilp.frontend.graph import Network
from spmilp.lowering.fit import groups_that_do_not_fit
from spmilp.lowering.lower import lower
from spmilp.machine.machine import Machine
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.initial_solutions import Starts
from spmilp.tile_selection.parameters import LADDERS, OTHERS, USUAL, Leaning
from tests.lowering.builders import NetworkBuilder, star_machine


def starts_of(network: Network, machine: Machine) -> Starts:
    first = first_choice(network, machine)
    return Starts(network, machine, first, lambda tilings: lower(network, machine, tilings))


def chain(batch: int = 1) -> Network:
    builder = NetworkBuilder()
    data = builder.conv(builder.input((batch, 3, 16, 16)), 16)
    for _ in range(4):
        data = builder.conv(data, 16, residual=data)
    return builder.network(builder.conv(builder.pool(data), 32, kernel=1))


def test_the_usual_estimate_chooses_what_is_chosen_first() -> None:
    starts = starts_of(chain(), star_machine(4, 1 << 14))
    usual = starts.leaning(Leaning())
    assert usual is not None
    assert usual.tilings == starts.first.tilings


def test_other_estimates_choose_other_tilings_that_fit() -> None:
    network, machine = chain(), star_machine(4, 1 << 14)
    starts = starts_of(network, machine)
    found = [choice.tilings for choice in map(starts.leaning, OTHERS) if choice is not None]
    assert len(found) == len(OTHERS)
    assert len({tuple(tilings.items()) for tilings in [starts.first.tilings, *found]}) >= 4
    for tilings in found:
        assert groups_that_do_not_fit(lower(network, machine, tilings)) == {}


def test_asking_for_one_estimate_leaves_the_others_as_they_were() -> None:
    starts = starts_of(chain(), star_machine(4, 1 << 14))
    before = starts.leaning(OTHERS[0])
    for leaning in OTHERS[1:]:
        starts.leaning(leaning)
    again = starts.leaning(OTHERS[0])
    assert before is not None
    assert again is not None
    assert before.tilings == again.tilings


@pytest.mark.parametrize("leaning", [USUAL, *OTHERS])
def test_nearby_estimates_differ_by_one_step_of_one_parameter(leaning: Leaning) -> None:
    steps = [set(pairwise(ladder)) for ladder in LADDERS.values()]
    for other in leaning.nearby():
        pairs = zip(asdict(leaning).values(), asdict(other).values(), strict=True)
        (pair,) = [pair for pair in pairs if pair[0] != pair[1]]
        assert any({pair, pair[::-1]} & some for some in steps)
        assert leaning in other.nearby()


def test_each_estimate_is_known_as_tried() -> None:
    starts = starts_of(chain(), star_machine(4, 1 << 20))
    assert starts.has_tried(USUAL)
    assert not starts.has_tried(OTHERS[0])
    starts.leaning(OTHERS[0])
    assert starts.has_tried(OTHERS[0])


def test_a_batch_may_compute_in_equally_many_waves_throughout() -> None:
    starts = starts_of(chain(batch=8), star_machine(4, 1 << 14))
    numbers = [{tiling.waves for tiling in one.tilings.values()} for one in starts.in_waves()]
    assert len(numbers) == len(starts.first.landscapes) > 1
    assert numbers == [{number} for number in starts.first.landscapes]


def test_without_a_large_batch_there_is_one_wave() -> None:
    assert list(starts_of(chain(), star_machine(4, 1 << 14)).in_waves()) == []
