"""Loads as early as memories allow beside late copies."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

import spmilp
from spmilp.checker.check import check
from spmilp.pipeline import problem_of
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.partial_order import repacking
from spmilp.solvers.partial_order.early_loads import loads_of, with_loads_early
from spmilp.solvers.partial_order.late_transfers import with_transfers_late
from spmilp.solvers.partial_order.repacking import (
    FillLimits,
    justified_by_capacity,
    with_addresses,
)
from spmilp.solvers.partial_order.to_plan import plan_of
from tests.solvers.partial_order.test_justification import MODEST
from tests.solvers.random_problems import problems
from tests.solvers.schedules import scheduled

MODELS = Path(__file__).parents[3] / "models"


def small_network() -> Problem:
    return problem_of(MODELS / "resnet8_int8.onnx", "mesh4x4")


def test_the_schedule_ends_no_later_and_has_valid_plans() -> None:
    packed = 0

    @MODEST
    @given(problem=problems())
    def check_all(problem: Problem) -> None:
        nonlocal packed
        context, first = scheduled(problem)
        fill = FillLimits(context, share=1.0)
        early = with_loads_early(context, first, fill.memories())
        assert early.makespan <= first.makespan
        found = with_addresses(context, early, fill, Clock(None))
        if found is not None:
            packed += 1
            assert check(problem, plan_of(context, found)) == ()

    check_all()
    assert packed >= 10


def test_loads_come_before_where_they_would_be_late() -> None:
    context, first = scheduled(small_network())
    late = with_transfers_late(context, first)
    early = with_loads_early(context, first, FillLimits(context, share=1.0).memories())
    loads = loads_of(context, first.schedule)
    assert np.count_nonzero(early.start[loads] < late.start[loads]) >= 10


def test_justification_is_shorter_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_dram = spmilp.load_machine("mesh4x4").replace(dram_rate="1/4")
    context, first = scheduled(problem_of(MODELS / "resnet8_f32.onnx", slow_dram))
    memories = FillLimits(context, share=1.0).memories()
    shorter = justified_by_capacity(context, first, memories, Clock(None), rounds=3)
    monkeypatch.setattr(repacking, "with_loads_early", lambda context, before, memories: before)
    without = justified_by_capacity(context, first, memories, Clock(None), rounds=3)
    assert shorter.makespan < without.makespan
