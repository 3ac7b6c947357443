"""Tile sizes are searched with the list scheduler as the judge."""

from pathlib import Path

import pytest

from spmilp.lowering.choose import choose_tilings
from spmilp.lowering.lower import lower
from spmilp.pipeline import Loaded, load, lower_network
from spmilp.problem.objective import Quantity
from spmilp.solvers.list_scheduler.judge import Judge
from spmilp.tile_search import TileSearch, search_tilings

MODEL = Path(__file__).parents[1] / "models" / "resnet8_int8.onnx"


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load(MODEL, "mesh4x4")


def test_the_tiles_found_are_better_than_the_first_and_as_good_as_was_said(loaded: Loaded) -> None:
    network, machine = loaded.network, loaded.target.machine
    said: list[tuple[int, int]] = []
    limits = TileSearch(tasks=3_000, on_better=lambda *better: said.append(better))
    first = choose_tilings(network, machine)
    found = search_tilings(network, machine, first, Quantity.MAKESPAN, limits)

    values = [value for value, _ in said]
    assert len(values) > 1
    assert values == sorted(values, reverse=True)
    judge, problem = Judge(machine), lower(network, machine, found)
    assert judge(lower(network, machine, first)) == values[0]
    assert (judge(problem), len(problem.tasks)) == said[-1]


def test_the_objective_is_what_is_judged(loaded: Loaded) -> None:
    said: list[int] = []
    limits = TileSearch(tasks=400, on_better=lambda value, tasks: said.append(value))
    problem = lower_network(loaded, Quantity.DRAM_TRAFFIC, limits)

    assert problem.objective.first is Quantity.DRAM_TRAFFIC
    assert said
    assert min(said) == Judge(problem.machine)(problem)


def test_without_time_the_first_tiles_stay(loaded: Loaded) -> None:
    network, machine = loaded.network, loaded.target.machine
    first = choose_tilings(network, machine)

    assert (
        search_tilings(network, machine, first, Quantity.MAKESPAN, TileSearch(seconds=0.0)) == first
    )


def test_an_interrupt_keeps_the_best_tiles_so_far(loaded: Loaded) -> None:
    network, machine = loaded.network, loaded.target.machine
    said: list[int] = []

    def interrupt(value: int, tasks: int) -> None:
        said.append(value)
        if len(said) == 2:
            raise KeyboardInterrupt

    limits = TileSearch(on_better=interrupt)
    first = choose_tilings(network, machine)
    found = search_tilings(network, machine, first, Quantity.MAKESPAN, limits)

    assert len(said) == 2
    assert Judge(machine)(lower(network, machine, found)) in said
