"""Tasks that change cores: reassignments, and steps made of them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from spmilp.checker.check import check
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Placement, Plan
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.improve.components import Components, ReassignmentSteps, with_unplaced
from spmilp.solvers.improve.reassignment import Reassigner, Reassignment, snapshot
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
        found = self.reassigner.reassigned(snapshot(timed), Reassignment((task,), pool))
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
def test_after_moves_of_any_tasks_the_times_are_valid_wherever_there_are_addresses() -> None:
    checked = refused = 0

    @_examples(60)
    @given(problem=problems(), data=st.data())
    def move(problem: Problem, data: st.DataObject) -> None:
        nonlocal checked, refused
        setting = Setting(problem, listed(problem))
        pools = setting.reassigner.pools
        assume(len(pools) > 1)
        timed = setting.late
        for _ in range(4):
            task = data.draw(st.integers(0, len(problem.tasks) - 1))
            pool = data.draw(st.integers(0, len(pools) - 1))
            found = setting.moved(timed, task, pool)
            built = None if found is None else packed(setting.context, found)
            if found is None or built is None:
                refused += found is None
                continue
            assert check(problem, built) == ()
            core = problem.machine.cores[built.placements[task].core]
            assert (core.kind, core.memory) == pools[pool]
            timed, checked = found, checked + 1

    move()
    assert checked >= 100
    assert refused >= 50


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
def one_after_another() -> Problem:
    """Tasks each of which reads weights of its own and what the one before has written."""
    return chain(star(2, 4096), layers=3, strips=1)


@pytest.mark.parametrize("task", [0, 1, 2])
def test_moving_a_task_there_and_back_gives_the_same_plan(
    one_after_another: Problem, task: int
) -> None:
    plan = listed(one_after_another)
    setting = Setting(one_after_another, plan)
    here = _pool(setting.late.schedule, task)

    there = setting.moved(setting.late, task, 1 - here)
    assert there is not None
    back = setting.moved(there, task, here)

    assert back is not None
    assert there.schedule.demands.items[there.schedule.demands.begin[task]] == 1 - here
    assert _settled(setting, back) == _settled(setting, setting.late)


def _pool(schedule: PartialOrderSchedule, task: int) -> int:
    return int(schedule.demands.items[schedule.demands.begin[task]])


def _settled(setting: Setting, timed: TimedSchedule) -> tuple[object, ...]:
    work = Repacking(setting.context, Clock(None))
    found = work.packed(work.opened(timed))
    assert found is not None
    built = packed(setting.context, found)
    assert built is not None
    return built.placements, built.residencies, built.transfers


def test_what_a_neighbour_reads_and_writes_is_copied_there_and_back(
    one_after_another: Problem,
) -> None:
    plan = listed(one_after_another)
    setting = Setting(one_after_another, plan)
    schedule = setting.late.schedule
    here = _pool(schedule, 1)

    there = setting.moved(setting.late, 1, 1 - here)

    assert there is not None
    new = np.flatnonzero((there.schedule.cycles > 0) & (schedule.cycles == 0))
    copies = there.schedule.fills.items[there.schedule.fills.begin[new]]
    assert sorted(there.schedule.memory[copies]) == [1, 2]
    weights = there.schedule.reads.values(1)
    assert (there.schedule.memory[weights] == setting.reassigner.pools[1 - here][1]).all()


def test_a_transfer_between_two_cores_falls_away_when_one_end_moves_to_the_other() -> None:
    problem = chain(star(2, 4096), layers=2, strips=2)
    plan = listed(problem, "round_robin")
    setting = Setting(problem, plan)
    timed = setting.late
    before = _between_scratchpads(setting.context, timed.schedule)
    assert before > 0

    for task in range(len(problem.tasks)):
        if _pool(timed.schedule, task) == 1:
            found = setting.moved(timed, task, 0)
            assert found is not None
            timed = found

    assert _between_scratchpads(setting.context, timed.schedule) == 0


def _between_scratchpads(context: ScheduleContext, schedule: PartialOrderSchedule) -> int:
    moves = np.flatnonzero((schedule.moved_slice >= 0) & (schedule.cycles > 0))
    source = schedule.memory[schedule.reads.items[schedule.reads.begin[moves]]]
    target = schedule.memory[schedule.fills.items[schedule.fills.begin[moves]]]
    return int((~context.is_dram[source] & ~context.is_dram[target]).sum())


def test_a_task_does_not_go_where_no_core_can_run_it(one_after_another: Problem) -> None:
    machine = one_after_another.machine
    kinds = (machine.kinds[0], replace(machine.kinds[0], index=1, name="other"))
    cores = (machine.cores[0], replace(machine.cores[1], kind=1))
    tasks = tuple(replace(task, cycles=(*task.cycles, None)) for task in one_after_another.tasks)
    problem = replace(
        one_after_another, machine=replace(machine, kinds=kinds, cores=cores), tasks=tasks
    )
    plan = listed(problem)
    setting = Setting(problem, plan)

    assert setting.moved(setting.late, 1, 1) is None


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


def test_the_same_seed_leads_to_the_same_schedule(badly_balanced: tuple[Problem, Plan]) -> None:
    problem, plan = badly_balanced
    found = []
    for _ in range(2):
        context, current = context_of(problem, plan)
        steps = steps_in_whole_memories(context, 3)
        for _ in range(5):
            current = steps.improve(current)
        found.append(current)

    assert found[0].makespan == found[1].makespan
    assert (found[0].start == found[1].start).all()


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


def test_where_no_memory_has_capacity_two_tasks_change_places() -> None:
    problem = chain(star(2, 4096), layers=2, strips=2)
    setting = Setting(problem, listed(problem, "round_robin"))
    late = setting.late
    components = Components(problem, setting.reassigner.pools, np.random.default_rng(0))
    nothing = np.zeros(setting.context.usable.size, np.int64)

    chosen = [*components.choices(snapshot(late), late.start, nothing, 20)]

    assert chosen
    for component, other in chosen:
        assert component.pool == _pool(late.schedule, other.tasks[0])
        assert other.pool == _pool(late.schedule, component.tasks[0])
