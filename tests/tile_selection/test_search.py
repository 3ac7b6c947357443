"""Tile sizes are searched, and evaluated by the list scheduler."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from spmilp.checker.check import check
from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower
from spmilp.machine.read import MachineFile
from spmilp.solvers.schedule.portfolio import Found, least_value
from spmilp.source import load
from spmilp.tile_selection import choose, evaluation
from spmilp.tile_selection.choose import choose_tiles, search_tilings
from spmilp.tile_selection.first_choice import FirstChoice, NetworkOnMachine, first_choice
from spmilp.tile_selection.settings import SEARCH, TileOptions, Tiles
from spmilp.tile_selection.tiled_problem import TiledProblem

Loaded: TypeAlias = tuple[Network, MachineFile]

MODEL = Path(__file__).parents[2] / "models" / "resnet8_int8.onnx"


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load(MODEL, "mesh4x4")


@pytest.fixture(scope="module")
def first(loaded: Loaded) -> FirstChoice:
    return first_choice(loaded[0], loaded[1].machine)


def search(loaded: Loaded, first: FirstChoice, limits: TileOptions) -> TiledProblem:
    return search_tilings(first, limits)


@pytest.mark.full
def test_the_tiles_found_are_better_than_the_first_and_as_good_as_was_said(
    loaded: Loaded, first: FirstChoice
) -> None:
    network, machine = loaded[0], loaded[1].machine
    said: list[tuple[int, int]] = []
    limits = TileOptions(
        how=Tiles.SEARCH, tasks=30_000, on_better=lambda *better: said.append(better)
    )
    found = search(loaded, first, limits)

    values = [value for value, _ in said]
    assert values == sorted(values, reverse=True)
    assert values[0] <= (least_value(lower(network, machine, first.tilings)) or 0)
    assert values[-1] < values[0]
    assert (found.value, len(found.problem.tasks)) == said[-1]
    assert (least_value(found.problem) or 0) >= values[-1]


def test_without_time_the_first_tiles_stay(loaded: Loaded, first: FirstChoice) -> None:
    found = search(loaded, first, TileOptions(how=Tiles.SEARCH, time_limit=0.0))
    assert found.schedule is None
    assert found.problem == lower(loaded[0], loaded[1].machine, first.tilings)


@pytest.mark.full
def test_an_interrupt_keeps_the_best_schedule_so_far(loaded: Loaded, first: FirstChoice) -> None:
    said: list[int] = []

    def interrupt(value: int, tasks: int) -> None:
        said.append(value)
        if len(said) == 4:
            raise KeyboardInterrupt

    found = search(loaded, first, TileOptions(how=Tiles.SEARCH, on_better=interrupt))
    assert len(said) == 4
    assert found.value == said[-1]
    assert found.interrupted
    result = found.result()
    assert result is not None
    assert result.interrupted
    assert result.plan is not None
    assert result.plan.claim.makespan == found.value
    assert result.bound <= said[-1]
    assert check(found.problem, result.plan) == ()


def test_an_interrupt_before_the_first_schedule_passes_on(
    loaded: Loaded, first: FirstChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Iterator[Found]:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation, "promising_schedules", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search(loaded, first, TileOptions(how=Tiles.SEARCH))


def test_the_same_search_finds_the_same_tiles(loaded: Loaded, first: FirstChoice) -> None:
    some, again = (
        search(loaded, first, TileOptions(how=Tiles.SEARCH, tasks=2_000)) for _ in range(2)
    )
    assert some.problem == again.problem


def test_an_interrupt_of_the_first_choice_leaves_a_plan_with_fast_initial_tiles(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[int] = []
    limits = TileOptions(how=Tiles.SEARCH, on_better=lambda value, tasks: said.append(value))

    def interrupted(*_: object, **__: object) -> FirstChoice:
        raise KeyboardInterrupt

    monkeypatch.setattr(choose, "SEARCH", replace(SEARCH, soon_compared=0))
    monkeypatch.setattr(choose, "first_choice_of", interrupted)
    tiled = choose_tiles(NetworkOnMachine.of(*loaded), limits)

    plan = tiled.plan()
    assert plan is not None
    assert check(tiled.problem, plan) == ()
    assert [tiled.value] == said
