"""Which steps are taken, and by how many threads."""

from time import sleep

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.lns.advance import with_loads_advanced
from spmilp.solvers.lns.options import LnsOptions
from spmilp.solvers.lns.steps import Helpers, Steps
from spmilp.solvers.lns.window_search import WindowSearch
from spmilp.solvers.partial_order.repacking import FillLimits, justified_by_capacity, with_addresses
from spmilp.solvers.partial_order.schedule import TimedSchedule
from spmilp.solvers.partial_order.to_plan import plan_of
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems
from tests.solvers.schedules import scheduled


@pytest.fixture(scope="module")
def problem() -> Problem:
    return chain(star(2, 2048), layers=3, strips=4)


def test_a_helper_finds_what_the_search_may_go_on_from_and_begins_again_with_it(
    problem: Problem,
) -> None:
    context, current = scheduled(problem, "round_robin")
    clock = Clock(120.0)
    steps = Steps(context, FillLimits(context), clock, LnsOptions(), 0)

    with Helpers((steps,), current) as helpers:
        found = current
        while found.makespan == current.makespan and not clock.is_over():
            # Compiling takes the interpreter's lock.
            sleep(0.01)
            found = helpers.exchanged(current)
        helpers.begin_again(current)

    assert found.makespan < current.makespan


def test_an_error_of_a_helper_reaches_the_search(problem: Problem) -> None:
    _, current = scheduled(problem, "round_robin")

    class Broken(Steps):
        def __init__(self) -> None:
            pass

        def take(self, current: TimedSchedule) -> TimedSchedule:
            raise ArithmeticError("broken")

    with Helpers((Broken(),), current) as helpers:
        pass
    with pytest.raises(ArithmeticError, match="broken"):
        helpers.exchanged(current)


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
        windows = WindowSearch(context, seed=0)

        for _ in range(4):
            before = current.makespan
            current = with_loads_advanced(context, current, memories, clock, random)
            current = windows.improve(current, memories, clock)
            assert current.makespan <= before

        found = with_addresses(context, current, fill, clock)
        if found is not None:
            packings += 1
            assert check(problem, plan_of(context, found)) == ()

    take()
    assert packings >= 20
