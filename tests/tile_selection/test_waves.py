from dataclasses import replace
from itertools import groupby

import pytest

from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling
from spmilp.pipeline import solve
from spmilp.tile_selection.first_choice import choose_tilings
from spmilp.tile_selection.given_tiles import tilings_of
from spmilp.tile_selection.waves import batch_size, part_of_batch, waves_of_groups
from tests.lowering.builders import NetworkBuilder, star_machine


def network(batch: int = 8, *, wide: int = 16) -> Network:
    builder = NetworkBuilder()
    data = builder.conv(builder.input((batch, 3, 16, 16)), wide)
    data = builder.conv(data, wide, residual=data)
    return builder.network(builder.conv(builder.pool(data), 8))


def test_a_part_of_a_batch_is_the_same_network_on_fewer_examples() -> None:
    whole = network(8)
    part = part_of_batch(whole, 4)
    assert part is not None
    assert batch_size(whole) == 8
    assert batch_size(part) == 2
    for name, tensor in whole.tensors.items():
        shape = tensor.shape if tensor.data is not None else (2, *tensor.shape[1:])
        assert part.tensors[name].shape == shape


def test_a_batch_is_cut_into_equal_parts_only() -> None:
    assert part_of_batch(network(6), 4) is None


def test_networks_that_mix_examples_have_no_parts() -> None:
    builder = NetworkBuilder()
    data = builder.input((4, 6))
    turned = builder.group(builder.operator("Transpose", [data], perm=(1, 0)))
    mixing = builder.network(builder.group(builder.operator("MatMul", [data, turned])))
    assert part_of_batch(mixing, 2) is None


def test_waves_take_turns_from_group_to_group() -> None:
    tilings = {index: Tiling(counts=(4, 1, 1, 1), waves=2) for index in range(3)}
    tilings[3] = Tiling(counts=(4, 1, 1, 1))
    problem = lower(network(4), star_machine(), tilings)
    order = [
        (task.tile.of, task.tile.box[0][0] // 2) for task in problem.tasks if task.tile is not None
    ]
    names = [group.name for group in network(4).groups]
    expected = [(name, wave) for wave in range(2) for name in names[:3]]
    assert [key for key, _ in groupby(order)] == [*expected, (names[3], 0), (names[3], 1)]
    assert [task.index for task in problem.tasks] == list(problem.topological_order())
    assert tilings_of(problem, network(4)) == tilings


def test_waves_change_where_that_pays_for_the_move() -> None:
    whole = network(8)
    rates = machine_rates(star_machine(4, 1 << 14))
    assert waves_of_groups(whole, rates, {1: [100.0] * 4, 2: [40.0] * 4}) == [2, 2, 2, 2]
    assert waves_of_groups(whole, rates, {1: [100.0] * 4, 2: [60.0] * 4}) == [1, 1, 1, 1]
    dear = 1e9
    times = {1: [dear, 1.0, 1.0, 1.0], 2: [1.0, dear, dear, dear]}
    assert waves_of_groups(whole, rates, times) == [2, 1, 1, 1]


@pytest.mark.full
def test_a_large_batch_computes_in_waves_with_less_traffic() -> None:
    whole, machine = network(8), star_machine(4, 1 << 14)
    chosen = choose_tilings(whole, machine)
    assert max(tiling.waves for tiling in chosen.values()) > 1
    flat = {index: replace(tiling, waves=1) for index, tiling in chosen.items()}
    results = []
    for tilings in (chosen, flat):
        result = solve(
            lower(whole, machine, tilings),
            solver="greedy:locality/layer_by_layer",
            time_limit=None,
        )
        assert result.dram_traffic is not None
        results.append(result.dram_traffic)
    assert results[0] < results[1]
