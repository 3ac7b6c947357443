"""Memories that cannot be packed: residencies wait for the bytes of others."""

import pytest
from hypothesis import given

from spmilp.checker.check import check
from spmilp.packing import PackingProblem
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.partial_order import repacking, shared_bytes
from spmilp.solvers.partial_order.repacking import FillLimits, justified_by_capacity, with_addresses
from spmilp.solvers.partial_order.shared_bytes import Neighbours
from spmilp.solvers.partial_order.to_plan import plan_of
from spmilp.units import Bytes
from tests.solvers.partial_order.test_justification import MODEST
from tests.solvers.random_problems import problems
from tests.solvers.schedules import scheduled


def nothing_packed(problem: PackingProblem) -> tuple[Bytes | None, ...]:
    """Return the fixed offsets only."""
    return tuple(item.offset for item in problem.items)


class LowestOffsets(Neighbours):
    """Knows six offsets for each item only, so that some of them share bytes."""

    def _candidates(self, members: Ints, ends: Ints) -> Ints:
        return super()._candidates(members, ends)[:6]


def test_whoever_waits_for_bytes_the_plan_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repacking, "_pack", lambda *_: None)
    monkeypatch.setattr(shared_bytes, "pack_most", nothing_packed)
    monkeypatch.setattr(shared_bytes, "Neighbours", LowestOffsets)
    found_plans, longer = 0, 0

    @MODEST
    @given(problem=problems())
    def check_all(problem: Problem) -> None:
        nonlocal found_plans, longer
        context, first = scheduled(problem)
        fill, clock = FillLimits(context), Clock(None)
        opened = justified_by_capacity(context, first, fill.memories(), clock)
        found = with_addresses(context, opened, fill, clock)
        if found is not None:
            built = plan_of(context, found)
            assert check(problem, built) == ()
            assert built.claim.makespan == found.makespan
            found_plans += 1
            longer += found.makespan > opened.makespan

    check_all()
    assert found_plans >= 10
    assert longer >= 1
