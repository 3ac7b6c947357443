"""Tiles for streams: what a search keeps, when it ends, and that it is the same each time."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import spmilp
from spmilp.checker.check import check
from spmilp.lowering.tiling import Tilings
from spmilp.pipeline import of_period
from spmilp.source import load
from spmilp.tile_selection.choose import choose_tiles
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.given_tiles import tilings_still_there
from spmilp.tile_selection.settings import TileOptions, Tiles
from spmilp.tile_selection.tiled_problem import TiledProblem

MODELS = Path(__file__).parents[2] / "models"


@pytest.fixture(scope="module")
def subject() -> NetworkOnMachine:
    return NetworkOnMachine.of(*load(MODELS / "resnet8_int8.onnx", "xdna1"))


def chosen(subject: NetworkOnMachine, period: int) -> tuple[TiledProblem, list[int]]:
    """Return the choice, and the periods that were told of behind the tiles of one inference."""
    said: list[tuple[int, int]] = []

    def note(value: int, tasks: int) -> None:
        said.append((value, tasks))

    options = TileOptions(how=Tiles.SEARCH, problems=4, on_better=note)
    before = len(said) if choose_tiles(subject, options) else 0
    said.clear()
    found = choose_tiles(subject, replace(options, period=period))
    return found, [value for value, _ in said[before:]]


def test_the_best_stream_is_kept_and_shorter_than_that_of_tiles_for_one_inference(
    subject: NetworkOnMachine,
) -> None:
    found, said = chosen(subject, 1)
    assert found.stream is not None
    assert not check(of_period(found.problem), found.stream)
    assert all(one > other for one, other in pairwise(said))
    # The first one is that of tiles for one inference.
    assert found.stream.claim.period == said[-1] < 0.95 * said[0]


def test_a_search_ends_with_a_period_that_is_short_enough(subject: NetworkOnMachine) -> None:
    found, said = chosen(subject, 1_000_000)
    assert found.stream is not None
    assert len(said) == 1


@pytest.mark.full
def test_pinned_tiles_stay(subject: NetworkOnMachine) -> None:
    free = chosen(subject, 1)[0].problem
    one: Tilings = {0: tilings_still_there(free, subject.network)[0]}
    other = {0: replace(one[0], counts=(1, 1, *one[0].counts[2:]))}
    found, _ = chosen(replace(subject, pinned=other), 1)
    assert tilings_still_there(found.problem, subject.network)[0] == other[0]


@pytest.mark.full
def test_the_same_effort_gives_the_same_stream() -> None:
    def plan() -> spmilp.Result:
        return spmilp.solve(
            MODELS / "ds_cnn_int8.onnx", "edge16", objective="period", effort=4, time_limit="9m"
        )

    one, other = plan(), plan()
    assert one.plan is not None
    assert (one.plan, one.problem) == (other.plan, other.problem)
