"""Tasks that change cores: reassignments, and steps made of them."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings

from spmilp.checker.check import check
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Placement, Plan
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.improve.reassignment import Reassigner
from spmilp.solvers.improve.steps import ReassignmentSteps, with_unplaced
from spmilp.solvers.justify.context import ScheduleContext, context_of, plan_of
from spmilp.solvers.justify.passes import backward_pass
from spmilp.solvers.justify.repacking import Effort, Repacking
from spmilp.solvers.justify.schedule import PartialOrderSchedule, TimedSchedule
from spmilp.solvers.schedule.kernels.records import Ints
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems
from tests.solvers.schedules import listed, packed


class Setting:
    """A plan's schedule at its latest times, and what reassigns tasks in it."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.context, first = context_of(problem, plan)
        self.late = backward_pass(first, self.context.with_capacity(self.context.usable))
        self.reassigner = Reassigner(self.context)

    def moved(self, timed: TimedSchedule, task: int, pool: int) -> TimedSchedule | None:
        found = self.reassigner.reassigned(timed, task, pool)
        return None if found is None else with_unplaced(timed.schedule, found, timed.start)


def steps_in_whole_memories(context: ScheduleContext, seed: int) -> ReassignmentSteps:
    clock = Clock(None)
    return ReassignmentSteps(Repacking(context, clock, Effort(share=1.0)), clock, seed)


def _examples(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


@pytest.mark.full
def test_no_step_lengthens_a_plan_and_what_is_packed_after_them_is_valid() -> None:
    checked = changed = 0

    @_examples(30)
    @given(problem=problems())
    def improve(problem: Problem) -> None:
        nonlocal checked, changed
        context, current = context_of(problem, listed(problem))
        first, work = current, Repacking(context, Clock(None))
        steps = ReassignmentSteps(work, Clock(None), 0)
        for _ in range(5):
            found = steps.improve(current)
            assert found.makespan <= current.makespan
            current = found
        addressed = work.packed(current)
        if addressed is not None:
            assert check(problem, plan_of(context, addressed)) == ()
            checked += 1
            changed += (
                _pools(addressed.schedule, problem) != _pools(first.schedule, problem)
            ).any()

    improve()
    assert checked >= 20
    assert changed >= 10


def _pools(schedule: PartialOrderSchedule, problem: Problem) -> Ints:
    return schedule.demands.items[schedule.demands.begin[: len(problem.tasks)]]


@pytest.fixture(scope="module")
def badly_balanced() -> tuple[Problem, Plan]:
    """Many equal tasks of which one core has far more than the other three."""
    problem = chain(_slow(star(4, 4096)), layers=3, strips=8)
    plan = listed(problem)
    setting = Setting(problem, plan)
    timed = setting.late
    for task in range(len(problem.tasks)):
        if task % 3 and (found := setting.moved(timed, task, 0)) is not None:
            built = packed(setting.context, found)
            if built is not None:
                timed = found
    worse = packed(setting.context, timed)
    assert worse is not None
    return problem, worse


def _slow(machine: Machine) -> Machine:
    links = tuple(replace(link, rate=Fraction(64)) for link in machine.links)
    engines = tuple(replace(engine, rate=Fraction(64)) for engine in machine.engines)
    return replace(machine, links=links, engines=engines)


def test_steps_take_tasks_from_a_busy_core_and_never_lengthen_a_plan(
    badly_balanced: tuple[Problem, Plan],
) -> None:
    problem, plan = badly_balanced
    context, before = context_of(problem, plan)
    work = Repacking(context, Clock(None))
    current = work.opened(before)
    steps, first = ReassignmentSteps(work, Clock(None), 0), current.makespan

    for _ in range(40):
        found = steps.improve(current)
        assert found.makespan <= current.makespan
        current = found

    assert current.makespan < 0.9 * first
    settled = work.packed(current)
    assert settled is not None
    assert check(problem, plan_of(context, settled)) == ()


def test_tasks_without_data_change_cores_too() -> None:
    machine = star(2, 1024)
    tasks = tuple(Task(index=n, name=f"t{n}", cycles=(10,)) for n in range(4))
    problem = Problem(name="no data", machine=machine, tasks=tasks)
    claim = replace(listed(problem).claim, makespan=40)
    placements = tuple(Placement(task=n, core=0, start=10 * n, end=10 * n + 10) for n in range(4))
    plan = Plan(placements=placements, claim=claim, solver="by hand")
    context, current = context_of(problem, plan)
    steps = steps_in_whole_memories(context, 0)

    for _ in range(10):
        current = steps.improve(current)

    assert current.makespan == 20
