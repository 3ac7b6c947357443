"""Estimates with other parameters, and what they choose."""

import pytest

from spmilp.bounds.resources import WorkingSets
from spmilp.frontend.graph import Network
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tilings, tile_grid
from spmilp.tile_selection.estimate import (
    ALTERNATIVES,
    CostParameters,
)
from spmilp.tile_selection.first_choice import FirstChoice, first_choice
from tests.lowering.builders import NetworkBuilder, star_machine

MACHINE = star_machine(4, 1 << 14)


def chain(batch: int = 1) -> Network:
    builder = NetworkBuilder()
    data = builder.conv(builder.input((batch, 3, 16, 16)), 16)
    for _ in range(4):
        data = builder.conv(data, 16, residual=data)
    return builder.network(builder.conv(builder.pool(data), 32, kernel=1))


@pytest.fixture(scope="module")
def first() -> FirstChoice:
    return first_choice(chain(), MACHINE)


@pytest.mark.full
def test_other_estimates_choose_other_tilings_that_fit(first: FirstChoice) -> None:
    found = [one.tilings for one in map(first.with_parameters, ALTERNATIVES) if one is not None]
    assert len(found) == len(ALTERNATIVES)
    assert len({tuple(tilings.items()) for tilings in [first.tilings, *found]}) >= 4
    for tilings in found:
        assert groups_that_do_not_fit(lower(chain(), MACHINE, tilings)) == {}


def test_in_a_part_of_the_room_working_sets_are_as_small(first: FirstChoice) -> None:
    def largest(tilings: Tilings) -> int:
        problem = lower(chain(), MACHINE, tilings)
        working_sets = WorkingSets(problem)
        return max(sum(working_sets.pieces(task)) for task in problem.tasks)

    found = first.with_parameters(CostParameters(room=0.4))

    assert found is not None
    assert largest(found.tilings) <= 0.4 * (1 << 14) < largest(first.tilings)


def test_a_batch_may_compute_in_equally_many_waves_throughout() -> None:
    first = first_choice(chain(batch=8), MACHINE)
    numbers = [{one.waves for one in found.tilings.values()} for found in first.in_equal_waves()]
    assert len(numbers) == len(first.spaces) > 1
    assert numbers == [{number} for number in first.spaces]


def test_where_tasks_would_be_short_there_are_fewer_for_a_part_of_the_cores() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.matmul(builder.matmul(builder.input((64, 8)), 64), 8))
    first = first_choice(network, star_machine(64, 1 << 16))
    found = first.with_parameters(CostParameters(cores=0.25))
    assert found is not None
    assert max(tiles_of(network, first.tilings)) == 64
    assert max(tiles_of(network, found.tilings)) == 16


def tiles_of(network: Network, tilings: Tilings) -> set[int]:
    return {
        tile_grid(tilings[group.index], network.tensors[group.output].shape, 1).tiles
        for group in network.groups
    }
