"""Steps from one schedule with open addresses to the next."""

import numpy as np
from hypothesis import HealthCheck, given, settings

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.lns.advance import with_loads_advanced
from spmilp.solvers.partial_order.repacking import FillLimits, justified_by_capacity, with_addresses
from spmilp.solvers.partial_order.to_plan import plan_of
from tests.solvers.random_problems import problems
from tests.solvers.schedules import scheduled


def test_steps_lead_to_times_that_end_no_later_and_are_valid_once_packed() -> None:
    packings = 0

    @settings(
        max_examples=30,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(problem=problems())
    def take(problem: Problem) -> None:
        nonlocal packings
        context, first = scheduled(problem)
        fill, clock, random = FillLimits(context), Clock(None), np.random.default_rng(0)
        memories = fill.memories()
        current = justified_by_capacity(context, first, memories, clock)

        for _ in range(4):
            before = current.makespan
            current = with_loads_advanced(context, current, memories, clock, random)
            assert current.makespan <= before

        found = with_addresses(context, current, fill, clock)
        if found is not None:
            packings += 1
            assert check(problem, plan_of(context, found)) == ()

    take()
    assert packings >= 20
