"""Tilings by what tasks read: for quickest plans, and until every task fits, or an error says."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import spmilp
from spmilp.errors import DoesNotFitError, ExitCode, SpmilpError
from spmilp.frontend.graph import Network
from spmilp.lowering.limits import groups_that_do_not_fit, working_set
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.machine.machine import Machine
from spmilp.solvers.common.clock import Clock
from spmilp.source import load
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.coarse import CoarseTilings, refuse_too_many_pieces, tilings_that_fit
from spmilp.tile_selection.first_choice import NetworkOnMachine, choose_tilings
from spmilp.tile_selection.pieces import PieceCounts, WorkingSets
from spmilp.tile_selection.settings import TileOptions, Tiles
from tests.lowering.builders import NetworkBuilder, star_machine

MODELS = Path(__file__).parents[2] / "models"


def two_convolutions(channels: int = 16, dtype: str = "int8") -> Network:
    builder = NetworkBuilder(dtype)
    first = builder.conv(builder.input((1, 8, 8, 8)), channels)
    return builder.network(builder.conv(first, channels))


def tight(size: int) -> Machine:
    """Padding to 64 B is most of what small tiles take."""
    return star_machine(4, size, alignment=64)


TILINGS = (
    {0: Tiling(counts=(1, 4, 4, 2)), 1: Tiling(counts=(1, 4, 8, 1))},
    {0: Tiling(counts=(1, 1, 4, 1)), 1: Tiling(counts=(1, 1, 4, 1))},
    {0: Tiling(counts=(1, 2, 8, 1)), 1: Tiling(counts=(1, 4, 4, 4), parts=4)},
    {0: Tiling(counts=(1, 16, 1, 1)), 1: Tiling(counts=(1, 1, 8, 1), parts=16)},
)


@pytest.mark.parametrize("tilings", TILINGS, ids=lambda one: " ".join(map(str, one.values())))
def test_pieces_and_working_sets_are_those_of_the_lowered_tasks(tilings: Tilings) -> None:
    network, machine = two_convolutions(), tight(1 << 16)
    problem, group = lower(network, machine, tilings), network.groups[1]
    tasks = [one for one in problem.tasks if one.tile is not None and one.tile.of == group.name]
    counts = PieceCounts(network, machine)
    largest = max(working_set(one, problem.slices, problem.buffers, 64) for one in tasks)
    assert WorkingSets(counts).of_group(group, tilings) == largest
    assert counts.of_group(group, tilings) == sum(len(task.reads) for task in tasks)


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "preset"),
    [("vit_tiny_f32", "gap9"), ("resnet8_int8", "xdna1")],
)
def test_pieces_of_networks_are_counted_within_a_fifth(model: str, preset: str) -> None:
    network, target = load(MODELS / f"{model}.onnx", preset)
    coarse = CoarseTilings(network, target.machine)
    tilings = next(iter(coarse))
    there = sum(len(task.reads) for task in lower(network, target.machine, tilings).tasks)
    assert coarse.counts.of_all(tilings) == pytest.approx(there, rel=0.2)


def test_tiles_of_successive_groups_match_where_memory_is_tight() -> None:
    builder = NetworkBuilder()
    data = builder.conv(builder.input((1, 8, 16, 16)), 8)
    network = builder.network(builder.conv(data, 8))
    first, second = next(iter(CoarseTilings(network, star_machine(4, 1 << 13)))).values()
    # As many tiles along rows and columns, and one of all channels or parts that match them.
    assert first.counts[2:] == second.counts[2:]
    assert second.parts == first.counts[1]


def test_a_plan_that_would_be_too_large_is_refused_with_the_group_that_makes_it_so() -> None:
    subject = NetworkOnMachine.of(*load("onnx:light_bvlc_alexnet", "epiphany3"))
    with pytest.raises(SpmilpError, match=r"expected at most 1,000,000: group n12") as said:
        choose_tiles(subject, TileOptions(how=Tiles.SEARCH), Clock(0.0))
    assert "fits 32,512 B" in str(said.value)
    assert "--time-limit" in str(said.value)


def test_a_problem_that_would_be_too_large_is_refused_whatever_the_time() -> None:
    coarse = CoarseTilings(two_convolutions(), star_machine(4, 1 << 11))
    tilings = next(iter(coarse))
    pieces = coarse.counts.of_all(tilings)
    refuse_too_many_pieces(coarse.counts, tilings, pieces)
    with pytest.raises(SpmilpError, match=f"read {pieces:,} pieces"):
        refuse_too_many_pieces(coarse.counts, tilings, pieces - 1)


@pytest.mark.full
def test_where_padding_leaves_no_candidate_tiles_are_cut_anew_until_every_task_fits() -> None:
    network, machine = two_convolutions(32), tight(512)
    problem = lower(network, machine, choose_tilings(network, machine))
    assert not groups_that_do_not_fit(problem)
    result = spmilp.solve(problem, solver="list")
    assert result.plan is not None
    assert not result.violations


def fitted(start: Tilings, fixed: Sequence[int] = ()) -> Tilings:
    """Return tilings of two convolutions in 512 B that fit."""
    network, machine = two_convolutions(), tight(512)
    subject = NetworkOnMachine(network=network, machine=machine)
    found, problem = tilings_that_fit(network, machine, [start], subject.lower, fixed=fixed)
    assert problem == lower(network, machine, found)
    assert not groups_that_do_not_fit(problem)
    return found


def test_a_group_whose_operand_comes_in_too_many_pieces_gets_it_in_fewer() -> None:
    found = fitted({0: Tiling(counts=(1, 16, 1, 1)), 1: Tiling(counts=(1, 16, 8, 8))})
    # One tile of the second reads all channels: they must not be 16 pieces of 64 B.
    assert found[0].counts[1] < 16 or found[1].parts > 1


def test_a_group_that_is_pinned_stays_as_it_is() -> None:
    start = {0: Tiling(counts=(1, 1, 1, 1)), 1: Tiling(counts=(1, 4, 8, 2), parts=8)}
    assert fitted(start, fixed=[1])[1] == start[1]


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
    with pytest.raises(DoesNotFitError, match="no tiles were found that fit") as caught:
        choose_tilings(two_convolutions(), tight(320))
    assert caught.value.exit_code == ExitCode.LIMIT_WITHOUT_PLAN
