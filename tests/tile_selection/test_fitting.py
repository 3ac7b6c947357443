"""Tiles cut anew: what estimates leave no room for still fits, or the error says why it cannot."""

from collections.abc import Sequence

import pytest

import spmilp
from spmilp.errors import DoesNotFitError, ExitCode
from spmilp.frontend.graph import Network
from spmilp.lowering.limits import groups_that_do_not_fit, working_set
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.machine.machine import Machine
from spmilp.tile_selection.coarse import tilings_that_fit
from spmilp.tile_selection.first_choice import NetworkOnMachine, choose_tilings
from spmilp.tile_selection.pieces import PieceCounts, WorkingSets
from tests.lowering.builders import NetworkBuilder, star_machine


def two_convolutions(channels: int = 16) -> Network:
    builder = NetworkBuilder("int8")
    first = builder.conv(builder.input((1, 8, 8, 8)), channels)
    return builder.network(builder.conv(first, channels))


def tight(size: int) -> Machine:
    """Padding to 64 B is most of what small tiles take."""
    return star_machine(4, size, alignment=64)


def fitted(
    network: Network, machine: Machine, start: Tilings, fixed: Sequence[int] = ()
) -> Tilings:
    subject = NetworkOnMachine(network=network, machine=machine)
    return tilings_that_fit(network, machine, [start], subject.lower, fixed=fixed)[0]


@pytest.mark.full
@pytest.mark.parametrize(("channels", "size"), [(16, 448), (16, 512), (32, 512)])
def test_where_padding_leaves_no_candidate_tiles_are_cut_anew_until_every_task_fits(
    channels: int, size: int
) -> None:
    network, machine = two_convolutions(channels), tight(size)
    problem = lower(network, machine, choose_tilings(network, machine))
    assert not groups_that_do_not_fit(problem)
    result = spmilp.solve(problem, solver="list")
    assert result.plan is not None
    assert not result.violations


def test_a_group_whose_operand_comes_in_too_many_pieces_gets_it_in_fewer() -> None:
    network, machine = two_convolutions(), tight(512)
    start = {0: Tiling(counts=(1, 16, 1, 1)), 1: Tiling(counts=(1, 16, 8, 8))}
    assert "t7" not in groups_that_do_not_fit(lower(network, machine, start))
    found = fitted(network, machine, start)
    # One tile of the second reads all channels: they must not be 16 pieces of 64 B.
    assert found != start
    assert found[0].counts[1] < 16 or found[1].parts > 1
    assert not groups_that_do_not_fit(lower(network, machine, found))


def test_a_group_that_is_pinned_stays_as_it_is() -> None:
    network, machine = two_convolutions(), tight(512)
    start = {0: Tiling(counts=(1, 1, 1, 1)), 1: Tiling(counts=(1, 4, 8, 2), parts=8)}
    found = fitted(network, machine, start, fixed=[1])
    assert found[1] == start[1]
    assert not groups_that_do_not_fit(lower(network, machine, found))


@pytest.mark.parametrize(
    "tilings",
    [
        {0: Tiling(counts=(1, 4, 4, 2)), 1: Tiling(counts=(1, 4, 8, 1))},
        {0: Tiling(counts=(1, 2, 8, 1)), 1: Tiling(counts=(1, 4, 4, 4), parts=4)},
        {0: Tiling(counts=(1, 16, 1, 1)), 1: Tiling(counts=(1, 1, 8, 1), parts=16)},
    ],
    ids=lambda tilings: " ".join(tiling.describe() for tiling in tilings.values()),
)
def test_working_sets_are_those_of_the_lowered_tasks(tilings: Tilings) -> None:
    network, machine = two_convolutions(), tight(1 << 16)
    problem = lower(network, machine, tilings)
    group = network.groups[1]
    there = max(
        working_set(task, problem.slices, problem.buffers, 64)
        for task in problem.tasks
        if task.tile is not None and task.tile.of == group.name
    )
    assert WorkingSets(PieceCounts(network, machine)).of_group(group, tilings) == there


def test_a_smallest_tile_that_just_fits_is_not_refused() -> None:
    builder = NetworkBuilder("int8")
    network = builder.network(builder.relu(builder.input((64,))))
    # The result is written over the operand, so that 64 B are enough.
    problem = lower(network, tight(64), choose_tilings(network, tight(64)))
    assert spmilp.solve(problem, solver="list").plan is not None
    with pytest.raises(DoesNotFitError, match=r"needs 64 B .* holds 63 B: 1 B over") as caught:
        choose_tilings(network, tight(63))
    assert caught.value.exit_code == ExitCode.INFEASIBLE


def test_what_is_not_found_is_not_called_impossible() -> None:
    network, machine = two_convolutions(), tight(320)
    with pytest.raises(DoesNotFitError, match="no tiles were found that fit") as caught:
        choose_tilings(network, machine)
    assert caught.value.exit_code == ExitCode.LIMIT_WITHOUT_PLAN
