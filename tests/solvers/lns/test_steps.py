"""Which steps are taken, and by how many threads."""

import numpy as np
import pytest

from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.common.operator_selection import ByBestRate
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.helpers import Helpers
from spmilp.solvers.lns.options import LnsOptions, Step
from spmilp.solvers.lns.steps import Steps
from spmilp.solvers.partial_order.context import context_of
from spmilp.solvers.partial_order.repacking import FillLimits
from spmilp.solvers.partial_order.schedule import TimedSchedule
from spmilp.solvers.partial_order.transfer_options import option_tables_of
from tests.solvers.chains import chain, star


@pytest.fixture(scope="module")
def problem() -> Problem:
    return chain(star(2, 2048), layers=3, strips=4)


def test_what_saves_most_for_its_time_is_taken_most_often() -> None:
    selection = ByBestRate(tuple(Step), np.random.default_rng(0), has_clock=True)
    taken = []

    for _ in range(200):
        step = selection.next()
        taken.append(step)
        selection.learn(step, 1000 if step is Step.ADVANCE_LOADS else 0, 0.1)

    assert taken.count(Step.ADVANCE_LOADS) > 120
    assert min(taken.count(step) for step in Step) > 2


def test_where_nothing_saves_anything_all_kinds_get_equal_time() -> None:
    selection = ByBestRate(tuple(Step), np.random.default_rng(0), has_clock=True)
    seconds = {Step.PERTURB: 0.1, Step.ADVANCE_LOADS: 0.2, Step.WINDOW: 1.0, Step.REASSIGN: 0.3}
    spent = dict.fromkeys(Step, 0.0)

    for _ in range(400):
        step = selection.next()
        spent[step] += seconds[step]
        selection.learn(step, 0, seconds[step])

    assert max(spent.values()) < 1.2 * min(spent.values())


def test_without_a_clock_windows_are_rare_and_the_quick_steps_take_turns() -> None:
    selection = ByBestRate(tuple(Step), np.random.default_rng(0), has_clock=False, rare=Step.WINDOW)
    taken = []

    for _ in range(33):
        taken.append(selection.next())
        selection.learn(taken[-1], 0, 0.1)

    assert [taken.count(step) for step in Step] == [10, 10, 3, 10]


def test_a_helper_finds_what_the_search_may_go_on_from_and_begins_again_with_it(
    problem: Problem,
) -> None:
    plan = ListScheduler(("round_robin", "layer_by_layer")).solve(problem, SolveOptions()).plan
    assert plan is not None
    context, schedule, start = context_of(problem, plan, option_tables_of(problem, plan))
    current = TimedSchedule(schedule, start, plan.claim.makespan)
    steps = Steps(context, FillLimits(context), Clock(20.0), LnsOptions(), 0)
    clock = Clock(20.0)

    with Helpers((steps,), current) as helpers:
        found = current
        while found.makespan == current.makespan and not clock.is_over():
            found = helpers.exchanged(current)
        helpers.begin_again(current)

    assert found.makespan < current.makespan


def test_an_error_of_a_helper_reaches_the_search(problem: Problem) -> None:
    plan = ListScheduler(("round_robin", "layer_by_layer")).solve(problem, SolveOptions()).plan
    assert plan is not None
    _, schedule, start = context_of(problem, plan, option_tables_of(problem, plan))
    current = TimedSchedule(schedule, start, plan.claim.makespan)

    class Broken(Steps):
        def __init__(self) -> None:
            pass

        def take(self, current: TimedSchedule) -> TimedSchedule:
            raise ArithmeticError("broken")

    with Helpers((Broken(),), current) as helpers:
        pass
    with pytest.raises(ArithmeticError, match="broken"):
        helpers.exchanged(current)
