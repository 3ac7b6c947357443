"""Memories that cannot be packed: residencies wait for the bytes of others."""

from dataclasses import replace

import pytest
from hypothesis import given

from spmilp.checker.check import check
from spmilp.packing import Packing, PackingProblem, PackingStatistics, PackingStatus
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.partial_order import repacking, shared_bytes
from spmilp.solvers.partial_order.repacking import FillLimits, justified_by_capacity, with_addresses
from spmilp.solvers.partial_order.schedule import TimedSchedule
from spmilp.solvers.partial_order.shared_bytes import offsets_with_waits
from spmilp.solvers.partial_order.to_plan import plan_of
from spmilp.solvers.partial_order.waiting import WaitingOrder
from spmilp.units import Bytes
from tests.solvers.partial_order.test_justification import MODEST
from tests.solvers.random_problems import problems
from tests.solvers.schedules import scheduled

NOT_PACKED = Packing(
    status=PackingStatus.UNKNOWN,
    offsets=None,
    height=None,
    bound=0,
    statistics=PackingStatistics(),
)


def nothing_packed(problem: PackingProblem) -> tuple[Bytes | None, ...]:
    """Return the fixed offsets only."""
    return tuple(item.offset for item in problem.items)


def in_little_room(
    before: TimedSchedule, residencies: Ints, problem: PackingProblem, order: WaitingOrder
) -> Ints | None:
    """Find offsets in a memory for what is there at first and little more: some share bytes."""
    largest = max((item.size for item in problem.items), default=0)
    there = max((i.offset + i.size for i in problem.items if i.offset is not None), default=0)
    capacity = min(problem.capacity or 0, there + 2 * largest + 64)
    return offsets_with_waits(before, residencies, replace(problem, capacity=capacity), order)


def test_whoever_waits_for_bytes_the_plan_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repacking, "pack", lambda *_: NOT_PACKED)
    monkeypatch.setattr(shared_bytes, "pack_most", nothing_packed)
    monkeypatch.setattr(repacking, "offsets_with_waits", in_little_room)
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
