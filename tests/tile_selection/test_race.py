"""Tilings that leave different room in memories, compared by what becomes of their plans."""

from pathlib import Path

import pytest

from spmilp.bounds.best import best_bound
from spmilp.frontend.graph import Network
from spmilp.machine.read import MachineFile
from spmilp.pipeline import load, lower_network
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.tile_selection import evaluation
from spmilp.tile_selection.cost_parameters import ALTERNATIVES
from spmilp.tile_selection.evaluation import Evaluation
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.piece_counts import PieceCounts
from spmilp.tile_selection.race import cycles_after_a_moment
from spmilp.tile_selection.search import TileSearch
from spmilp.tile_selection.tiled_problem import TiledProblem
from spmilp.tile_selection.trials import NeighbourhoodSearch, Trials

MODEL = Path(__file__).parents[2] / "models" / "resnet8_int8.onnx"


@pytest.fixture(scope="module")
def loaded() -> tuple[Network, MachineFile]:
    return load(MODEL, "xdna1")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    """The problems of a race, of which the last one wins; what follows is left out."""
    problems: list[Problem] = []

    def last_wins(problem: Problem, plan: Plan, seconds: float) -> int:
        assert plan.claim.makespan > 0
        assert 0 < seconds < 100
        problems.append(problem)
        return -len(problems)

    monkeypatch.setattr(evaluation, "cycles_after_a_moment", last_wins)
    monkeypatch.setattr(NeighbourhoodSearch, "run", lambda self: None)
    return problems


def searched(
    loaded: tuple[Network, MachineFile],
    clock: Clock,
    said: list[int],
    objective: Quantity = Quantity.MAKESPAN,
) -> TiledProblem:
    limits = TileSearch(on_better=lambda value, _: said.append(value))
    return lower_network(*loaded, objective, limits, clock)


def test_a_plan_is_shorter_after_a_moment_and_never_below_its_bound(
    loaded: tuple[Network, MachineFile],
) -> None:
    found = lower_network(*loaded, tile_search=TileSearch(problems=1))
    plan = found.plan()
    assert plan is not None
    after = cycles_after_a_moment(found.problem, plan, 1.0)
    assert best_bound(found.problem).value <= after < plan.claim.makespan


def test_the_winner_is_what_the_search_goes_on_with(
    loaded: tuple[Network, MachineFile], seen: list[Problem]
) -> None:
    said: list[int] = []
    found = searched(loaded, Clock(1000.0), said)
    assert len(seen) > 1
    assert found.problem == seen[-1]
    assert found.value is not None
    assert found.value > said[-1]


def test_an_interrupt_still_has_the_shortest_schedule(
    loaded: tuple[Network, MachineFile], seen: list[Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Trials, tilings: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Trials, "go_on_from", interrupt)
    said: list[int] = []
    found = searched(loaded, Clock(1000.0), said)
    assert len(seen) > 1
    assert found.interrupted
    assert found.value == said[-1]


def test_what_is_better_than_the_winner_alone_is_kept_and_not_said(
    loaded: tuple[Network, MachineFile], seen: list[Problem]
) -> None:
    network, machine = loaded[0], loaded[1].machine
    first = first_choice(network, machine)
    choices = (first, *map(first.with_parameters, ALTERNATIVES))
    counts, clock = PieceCounts(network, machine), Clock(1000.0)
    problems = {
        Evaluation(counts, TileSearch(), None, clock).value_of(problem) or (0,): problem
        for problem in (first.lower(one.tilings) for one in choices if one)
    }
    best, middle, worst = (problems[worth] for worth in sorted(problems)[:3])
    said: list[int] = []
    limits = TileSearch(on_better=lambda value, _: said.append(value))
    evaluated = Evaluation(counts, limits, None, clock)

    evaluated.value_of(best)
    before = list(said)
    assert evaluated.winner_of([best, worst]) == 1
    evaluated.value_of(middle)

    assert evaluated.answer is not None
    assert evaluated.answer.problem == middle
    assert said == before


def test_only_makespans_are_raced_for(
    loaded: tuple[Network, MachineFile], seen: list[Problem]
) -> None:
    found = searched(loaded, Clock(1000.0), [], Quantity.DRAM_TRAFFIC)
    assert found.value is not None
    assert not seen


@pytest.mark.parametrize("seconds", [None, 30.0])
def test_without_much_time_there_is_no_race(
    loaded: tuple[Network, MachineFile], seen: list[Problem], seconds: float | None
) -> None:
    said: list[int] = []
    found = searched(loaded, Clock(seconds), said)
    assert not seen
    assert found.value == said[-1]
