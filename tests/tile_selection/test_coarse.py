"""The quickest plan: how many pieces tasks read, and tilings under which they read few."""

from pathlib import Path

import pytest

from spmilp.errors import SpmilpError
from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower
from spmilp.lowering.tiling import Tiling, Tilings
from spmilp.machine.machine import Machine
from spmilp.solvers.common.clock import Clock
from spmilp.source import load
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.coarse import CoarseTilings, refuse_too_many_pieces
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.pieces import PieceCounts
from spmilp.tile_selection.settings import TileOptions, Tiles
from tests.lowering.builders import NetworkBuilder, star_machine

MODELS = Path(__file__).parents[2] / "models"


def two_convolutions() -> Network:
    builder = NetworkBuilder()
    first = builder.conv(builder.input((1, 8, 16, 16)), 8)
    return builder.network(builder.conv(first, 8))


def reads_of(network: Network, machine: Machine, tilings: Tilings) -> int:
    return sum(len(task.reads) for task in lower(network, machine, tilings).tasks)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Tiling(counts=(1, 1, 4, 1)), Tiling(counts=(1, 1, 4, 1))),
        (Tiling(counts=(1, 4, 1, 1)), Tiling(counts=(1, 1, 4, 1))),
        (Tiling(counts=(1, 1, 4, 4)), Tiling(counts=(1, 1, 4, 4))),
        (Tiling(counts=(1, 4, 1, 1)), Tiling(counts=(1, 1, 1, 1), parts=4)),
    ],
    ids=str,
)
def test_pieces_are_counted_as_they_will_be_where_tiles_follow_single_axes(
    first: Tiling, second: Tiling
) -> None:
    network, machine = two_convolutions(), star_machine(4, 1 << 16)
    tilings = {0: first, 1: second}
    counted = PieceCounts(network, machine).of_group(network.groups[1], tilings)
    tasks = lower(network, machine, tilings).tasks
    name = network.groups[1].name
    of_second = [task for task in tasks if task.tile is not None and task.tile.of == name]
    assert counted == sum(len(task.reads) for task in of_second)


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "preset"),
    [("mobilenetv2_f32", "epiphany3"), ("vit_tiny_f32", "gap9"), ("resnet8_int8", "xdna1")],
)
def test_pieces_of_networks_are_counted_within_a_fifth(model: str, preset: str) -> None:
    network, target = load(MODELS / f"{model}.onnx", preset)
    coarse = CoarseTilings(network, target.machine)
    tilings = next(iter(coarse))
    there = reads_of(network, target.machine, tilings)
    assert coarse.counts.of_all(tilings) == pytest.approx(there, rel=0.2)


def test_tiles_of_successive_groups_match_where_memory_is_tight() -> None:
    network, machine = two_convolutions(), star_machine(4, 1 << 13)
    first, second = next(iter(CoarseTilings(network, machine))).values()
    # As many tiles along rows and columns, and one of all channels or parts that match them.
    assert first.counts[2:] == second.counts[2:]
    assert second.parts == first.counts[1]


def test_a_plan_that_would_be_too_large_is_refused_with_the_group_that_makes_it_so() -> None:
    network, target = load("onnx:light_bvlc_alexnet", "epiphany3")
    with pytest.raises(SpmilpError, match=r"expected at most 1,000,000: group n12") as said:
        choose_tiles(
            NetworkOnMachine.of(network, target), TileOptions(how=Tiles.SEARCH), Clock(0.0)
        )
    assert "fits 32,512 B" in str(said.value)
    assert "--time-limit" in str(said.value)


def test_a_problem_that_would_be_too_large_is_refused_whatever_the_time() -> None:
    network, machine = two_convolutions(), star_machine(4, 1 << 13)
    coarse = CoarseTilings(network, machine)
    tilings = next(iter(coarse))
    pieces = coarse.counts.of_all(tilings)
    refuse_too_many_pieces(coarse.counts, tilings, pieces)
    with pytest.raises(SpmilpError, match=f"read {pieces:,} pieces"):
        refuse_too_many_pieces(coarse.counts, tilings, pieces - 1)
