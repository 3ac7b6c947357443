"""Tile sizes are searched, and evaluated by the list scheduler."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from spmilp.checker.check import check
from spmilp.frontend.graph import Network
from spmilp.lowering.lower import lower
from spmilp.machine.read import MachineFile
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.list_scheduler.portfolio import Found
from spmilp.solvers.list_scheduler.rules import EVALUATION_RULES
from spmilp.solvers.list_scheduler.schedules import Rule, least_value, promising_schedules
from spmilp.source import load, lower_network
from spmilp.tile_selection import evaluation
from spmilp.tile_selection import search as tile_search
from spmilp.tile_selection.coarse import CoarseTilings
from spmilp.tile_selection.evaluation import RULES_WHEN_OPEN
from spmilp.tile_selection.first_choice import FirstChoice, NetworkOnMachine, first_choice
from spmilp.tile_selection.search import TileSearch, fast_initial_problem, search_tilings
from spmilp.tile_selection.tiled_problem import TiledProblem

Loaded: TypeAlias = tuple[Network, MachineFile]

MODEL = Path(__file__).parents[2] / "models" / "resnet8_int8.onnx"


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load(MODEL, "mesh4x4")


@pytest.fixture(scope="module")
def first(loaded: Loaded) -> FirstChoice:
    return first_choice(loaded[0], loaded[1].machine)


def search(loaded: Loaded, first: FirstChoice, limits: TileSearch) -> TiledProblem:
    return search_tilings(first, limits)


def test_the_tiles_found_are_better_than_the_first_and_as_good_as_was_said(
    loaded: Loaded, first: FirstChoice
) -> None:
    network, machine = loaded[0], loaded[1].machine
    said: list[tuple[int, int]] = []
    limits = TileSearch(tasks=30_000, on_better=lambda *better: said.append(better))
    found = search(loaded, first, limits)

    values = [value for value, _ in said]
    assert values == sorted(values, reverse=True)
    assert values[0] <= (least_value(lower(network, machine, first.tilings)) or 0)
    assert values[-1] < values[0]
    assert (found.value, len(found.problem.tasks)) == said[-1]
    assert (least_value(found.problem) or 0) >= values[-1]


def test_the_objective_is_what_is_evaluated(loaded: Loaded) -> None:
    said: list[int] = []
    limits = TileSearch(tasks=1_200, on_better=lambda value, tasks: said.append(value))
    problem = lower_network(*loaded, Quantity.DRAM_TRAFFIC, limits).problem

    assert problem.objective.first is Quantity.DRAM_TRAFFIC
    assert said
    assert min(said) == least_value(problem)


def test_without_time_the_first_tiles_stay(loaded: Loaded, first: FirstChoice) -> None:
    found = search(loaded, first, TileSearch(seconds=0.0))
    assert found.schedule is None
    assert found.problem == lower(loaded[0], loaded[1].machine, first.tilings)


def test_an_interrupt_keeps_the_best_schedule_so_far(loaded: Loaded, first: FirstChoice) -> None:
    said: list[int] = []

    def interrupt(value: int, tasks: int) -> None:
        said.append(value)
        if len(said) == 4:
            raise KeyboardInterrupt

    found = search(loaded, first, TileSearch(on_better=interrupt))
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


def test_an_interrupt_between_evaluations_ends_all_of_the_search(
    loaded: Loaded, first: FirstChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> FirstChoice:
        raise KeyboardInterrupt

    monkeypatch.setattr(FirstChoice, "with_parameters", interrupted)
    found = search(loaded, first, TileSearch())
    assert found.value is not None
    assert found.interrupted


def test_an_interrupt_before_the_first_schedule_passes_on(
    loaded: Loaded, first: FirstChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Iterator[Found]:
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluation, "promising_schedules", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search(loaded, first, TileSearch())


def test_rules_that_are_far_behind_and_tiles_without_promise_are_asked_no_more(
    loaded: Loaded, first: FirstChoice, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Rule, ...]] = []
    late: list[bool] = []
    least: dict[Rule, int] = {}

    def watched(problem: Problem, rules: Sequence[Rule], *limits: Any) -> Iterator[Found]:
        asked.append(tuple(rules))
        late.append(True)
        for found in promising_schedules(problem, rules, *limits):
            late[-1] = False
            rule = found.trial.assignment, found.trial.order
            least[rule] = min(found.score[0], least.get(rule, found.score[0]))
            yield found

    monkeypatch.setattr(evaluation, "promising_schedules", watched)
    found = search(loaded, first, TileSearch(tasks=8_000))
    assert asked[0] == EVALUATION_RULES
    behind = {rule for rule, value in least.items() if value > 1.05 * min(least.values())}
    assert behind
    assert set(asked[-1]) <= set(EVALUATION_RULES) - behind
    assert len(asked[-1]) == RULES_WHEN_OPEN
    assert asked[-1][0] == min(least, key=least.__getitem__)
    assert any(late)
    assert not all(late)
    assert (found.value or 0) <= min(least.values())


def test_the_same_search_finds_the_same_tiles(loaded: Loaded, first: FirstChoice) -> None:
    some, again = (search(loaded, first, TileSearch(tasks=2_000)) for _ in range(2))
    assert some.problem == again.problem


def test_an_interrupt_of_the_first_choice_leaves_a_plan_with_fast_initial_tiles(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[int] = []
    limits = TileSearch(on_better=lambda value, tasks: said.append(value))

    def interrupted(*_: object, **__: object) -> FirstChoice:
        raise KeyboardInterrupt

    monkeypatch.setattr(tile_search, "SOON_COMPARED", 0)
    monkeypatch.setattr(tile_search, "first_choice", interrupted)
    tiled = lower_network(*loaded, tile_search=limits)

    plan = tiled.plan()
    assert plan is not None
    assert check(tiled.problem, plan) == ()
    assert [tiled.value] == said


def test_where_the_first_choice_comes_as_soon_there_are_no_fast_initial_tiles(
    loaded: Loaded,
) -> None:
    subject = NetworkOnMachine(network=loaded[0], machine=loaded[1].machine)
    quickest = CoarseTilings(subject.network, subject.machine)
    assert fast_initial_problem(subject, TileSearch(), Clock(None), quickest) is None


def test_fast_initial_tiles_are_the_answer_only_until_better_ones_are_found(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tile_search, "SOON_COMPARED", 0)
    said: list[int] = []
    limits = TileSearch(tasks=1_200, on_better=lambda value, tasks: said.append(value))

    tiled = lower_network(*loaded, tile_search=limits)

    assert said == sorted(said, reverse=True)
    assert len(set(said)) == len(said) > 1
    assert tiled.value == said[-1]
