"""Tilings are worth what becomes of their schedules once these are justified."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from spmilp.checker.check import check
from spmilp.frontend.graph import Network
from spmilp.machine.read import MachineFile
from spmilp.pipeline import load, lower_network, solve
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.plan_columns import PlanColumns
from spmilp.solvers.list_scheduler.portfolio import Found
from spmilp.solvers.list_scheduler.schedules import least_value
from spmilp.tile_selection import evaluation, tiled_problem
from spmilp.tile_selection.evaluation import Evaluation
from spmilp.tile_selection.first_choice import first_choice
from spmilp.tile_selection.piece_counts import PieceCounts
from spmilp.tile_selection.search import TileSearch
from spmilp.tile_selection.tiled_problem import TiledProblem

MODEL = Path(__file__).parents[2] / "models" / "resnet8_int8.onnx"


@pytest.fixture(scope="module")
def loaded() -> tuple[Network, MachineFile]:
    return load(MODEL, "xdna1")


def test_what_was_said_is_the_makespan_of_a_plan_that_is_kept(
    loaded: tuple[Network, MachineFile],
) -> None:
    said: list[int] = []
    limits = TileSearch(problems=5, on_better=lambda value, _: said.append(value))
    found = lower_network(*loaded, tile_search=limits)
    assert all(one > other for one, other in pairwise(said))
    assert found.value == said[-1]
    verdict = found.verdict()
    assert verdict is not None
    assert verdict.plan.claim.makespan == found.value
    scheduled = least_value(found.problem)
    assert scheduled is not None
    assert found.value <= 0.97 * scheduled


def test_where_the_checker_rejects_a_justified_plan_the_schedule_is_the_answer(
    loaded: tuple[Network, MachineFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = lower_network(*loaded, tile_search=TileSearch(problems=1))
    assert found.justified is not None
    wrong = found.justified_plan()
    assert wrong is not None
    cut = replace(wrong, transfers=wrong.transfers[:-1])
    monkeypatch.setattr(TiledProblem, "justified_plan", lambda self: cut)
    assert found.verdict() is None
    plan = found.plan()
    assert plan is not None
    assert not check(found.problem, plan)


class Unchanged:
    """A justification that gains nothing."""

    asked = 0

    def __init__(self, makespan: int) -> None:
        self.makespan = makespan

    @classmethod
    def of(cls, problem: Problem, decisions: PlanColumns) -> "Unchanged":
        cls.asked += 1
        return cls(int(decisions.end.max()))


@pytest.mark.parametrize(
    ("quantity", "asked"), [(Quantity.MAKESPAN, 1), (Quantity.DRAM_TRAFFIC, 0)]
)
def test_what_gains_nothing_is_asked_no_more(
    monkeypatch: pytest.MonkeyPatch, quantity: Quantity, asked: int
) -> None:
    """Where a memory lies between scratchpads and DRAM, schedules have addresses."""
    loaded = load(MODEL, "gap9")
    monkeypatch.setattr(tiled_problem, "JustifiedPlan", Unchanged)
    Unchanged.asked = 0
    found = lower_network(*loaded, quantity, TileSearch(problems=4))
    assert Unchanged.asked == asked
    assert found.schedule is not None


def test_a_solve_ends_no_worse_than_all_that_was_said() -> None:
    result = solve(MODEL, "xdna1", time_limit=3)
    said = [entry.incumbent for entry in result.log if entry.incumbent is not None]
    assert result.makespan == min(said)


def test_with_a_time_limit_schedules_that_take_too_long_to_make_are_given_up(
    loaded: tuple[Network, MachineFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    network, machine = loaded[0], loaded[1].machine
    problem = first_choice(network, machine).lower(first_choice(network, machine).tilings)
    allowed: list[float | None] = []
    promising = evaluation.promising_schedules

    def watched(problem: Problem, *limits: Any) -> Iterator[Found]:
        allowed.append(limits[2])
        return promising(problem, *limits)

    monkeypatch.setattr(evaluation, "promising_schedules", watched)
    for seconds in (None, 1000.0):
        clock = Clock(seconds)
        evaluated = Evaluation(PieceCounts(network, machine), TileSearch(), None, clock)
        evaluated.value_of(problem)
        evaluated.value_of(problem)
    # Of the first problem of all nothing is known yet.
    assert allowed[:3] == [None, None, None]
    assert allowed[3] is not None
    assert allowed[3] >= evaluation.LEAST_SECONDS
