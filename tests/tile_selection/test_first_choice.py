from dataclasses import replace
from math import prod

import pytest

from spmilp.frontend.graph import Network
from spmilp.lowering.limits import groups_that_do_not_fit, working_set
from spmilp.lowering.lower import lower
from spmilp.lowering.rates import machine_rates
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.machine.machine import CoreKind, Machine
from spmilp.machine.read import load_machine
from spmilp.solvers.schedule.portfolio import schedules_by
from spmilp.tile_selection.candidates import Candidate, CandidateMaker
from spmilp.tile_selection.coarse import tasks_of
from spmilp.tile_selection.estimate import CostParameters
from spmilp.tile_selection.first_choice import choose_tilings, first_choice
from spmilp.tile_selection.group_model import GroupModel
from tests.lowering.builders import NetworkBuilder, star_machine


def small_network() -> Network:
    builder = NetworkBuilder()
    data = builder.conv(builder.input((1, 3, 32, 32)), 16)
    shortcut = data
    data = builder.conv(builder.conv(data, 16), 16, residual=shortcut)
    return builder.network(builder.conv(builder.pool(data), 32, kernel=1))


def candidates_of(network: Network, machine: Machine, group: int = 0) -> tuple[Candidate, ...]:
    model = GroupModel(network, network.groups[group], machine)
    return CandidateMaker(machine, machine_rates(machine)).candidates(model, 0)


def test_candidates_follow_every_strategy() -> None:
    found = {one.split_axes for one in candidates_of(small_network(), star_machine(4, 1 << 20))}
    assert found == {(), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3)}


def test_only_cores_with_room_and_the_operators_count() -> None:
    lists_conv = CoreKind(
        index=0, name="a", lanes=(("float32", 1),), operators=frozenset({"Conv", "Relu"})
    )
    lists_pool = CoreKind(
        index=1, name="b", lanes=(("float32", 1),), operators=frozenset({"MaxPool"})
    )
    machine = star_machine(4, 1 << 20, kinds=[lists_conv, lists_pool])
    builder = NetworkBuilder()
    data = builder.pool(builder.conv(builder.input((1, 3, 8, 8)), 4))
    network = builder.network(data)
    assert {one.cores for one in candidates_of(network, machine, 0)} == {(0, 2)}
    assert {one.cores for one in candidates_of(network, machine, 1)} == {(1, 3)}


@pytest.mark.parametrize("spm", [1 << 13, 1 << 16, 1 << 20])
def test_chosen_tilings_give_tasks_that_fit(spm: int) -> None:
    network, machine = small_network(), star_machine(4, spm, dimensions=2)
    problem = lower(network, machine, choose_tilings(network, machine))
    assert groups_that_do_not_fit(problem) == {}
    needs = [working_set(task, problem.slices, problem.buffers, 4) for task in problem.tasks]
    assert max(needs) <= spm


def test_a_kind_whose_memories_are_too_small_for_a_task_does_not_run_it() -> None:
    lanes = (("float32", 1),)
    kinds = [CoreKind(index=i, name=f"k{i}", lanes=lanes) for i in range(2)]
    machine = star_machine(2, 1 << 11, kinds=kinds)
    home = machine.memories[machine.cores[0].memory]
    memories = list(machine.memories)
    memories[home.index] = replace(home, size=1 << 16)
    machine = replace(machine, memories=tuple(memories))
    builder = NetworkBuilder()
    network = builder.network(builder.relu(builder.input((1, 1024))))
    whole = lower(network, machine, {0: Tiling(counts=(1, 1))})
    assert [count is None for count in whole.tasks[0].cycles] == [False, True]
    halved = lower(network, machine, {0: Tiling(counts=(1, 4))})
    assert all(None not in task.cycles for task in halved.tasks)
    nowhere = lower(network, star_machine(2, 1 << 11, kinds=kinds), {0: Tiling(counts=(1, 1))})
    assert None not in nowhere.tasks[0].cycles


def test_a_large_product_is_added_up_in_place_while_its_weights_stream_past() -> None:
    # 16 MiB of weights, and 2 MiB of scratchpads: each weight should leave DRAM once all the same.
    machine = load_machine("mesh4x4").replace(spm="128KiB", dram_rate=16).machine
    builder = NetworkBuilder()
    network = builder.network(builder.matmul(builder.input((1, 64, 2048)), 2048))
    chosen = first_choice(network, machine)
    problem = chosen.lower(chosen.tilings)
    found = schedules_by(problem)
    traffic = min(schedule.score[:2] for schedule in found)[1]

    tiling = chosen.tilings[0]
    assert prod(tiling.counts) <= 2 * len(machine.cores)
    assert tiling.parts > 1
    assert traffic < 1.1 * 4 * (64 * 2048 + 2048 * 2048 + 64 * 2048)


def chain(batch: int = 1) -> Network:
    builder = NetworkBuilder()
    data = builder.conv(builder.input((batch, 3, 16, 16)), 16)
    for _ in range(4):
        data = builder.conv(data, 16, residual=data)
    return builder.network(builder.conv(builder.pool(data), 32, kernel=1))


def test_in_a_part_of_the_room_working_sets_are_as_small() -> None:
    machine = star_machine(4, 1 << 14)
    first = first_choice(chain(), machine)

    def largest(tilings: Tilings) -> int:
        problem = lower(chain(), machine, tilings)
        return max(working_set(one, problem.slices, problem.buffers, 4) for one in problem.tasks)

    found = first.with_parameters(CostParameters(room=0.4))

    assert found is not None
    assert largest(found.tilings) <= 0.4 * (1 << 14) < largest(first.tilings)


def test_where_tasks_would_be_short_there_are_fewer_for_a_part_of_the_cores() -> None:
    builder = NetworkBuilder()
    network = builder.network(builder.matmul(builder.matmul(builder.input((64, 8)), 64), 8))
    first = first_choice(network, star_machine(64, 1 << 16))
    found = first.with_parameters(CostParameters(cores=0.25))
    assert found is not None
    assert max(tasks_of({0: tiling}) for tiling in first.tilings.values()) >= 64
    assert max(tasks_of({0: tiling}) for tiling in found.tilings.values()) == 16
