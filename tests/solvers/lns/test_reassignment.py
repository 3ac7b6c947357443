"""Tasks that change cores: moves of components, and steps made of them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from spmilp.checker.check import check
from spmilp.machine.machine import Machine
from spmilp.plan.plan import Claim, Placement, Plan
from spmilp.problem.problem import Problem, Task
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.reassignment.components import Components
from spmilp.solvers.lns.reassignment.move import Reassigned, Reassigner, Times
from spmilp.solvers.lns.reassignment.steps import ReassignmentSteps, retimed
from spmilp.solvers.partial_order.capacity_passes import capacity_backward_pass
from spmilp.solvers.partial_order.context import ScheduleContext, context_of
from spmilp.solvers.partial_order.repacking import (
    FillLimits,
    justified_by_capacity,
    pack_all,
    with_addresses,
)
from spmilp.solvers.partial_order.schedule import (
    PartialOrderSchedule,
    TimedSchedule,
    lifetimes,
    makespan_of,
)
from spmilp.solvers.partial_order.to_plan import plan_of
from spmilp.solvers.partial_order.transfer_options import option_tables_of
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems


def _listed(problem: Problem, rule: str = "locality") -> Plan | None:
    return ListScheduler((rule, "layer_by_layer")).solve(problem, SolveOptions()).plan


class Setting:
    """A plan's schedule at its latest times, and what moves components in it."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem, self.plan = problem, plan
        self.context, schedule, start = context_of(problem, plan, option_tables_of(problem, plan))
        last = plan.claim.makespan
        late = capacity_backward_pass(
            schedule, self.context.kept_reuse, self.context.usable, start, last
        )
        self.incumbent = TimedSchedule(schedule, late, last)
        spare = len(plan.placements) + len(plan.transfers)
        self.mover = Reassigner(problem, self.context.options, spare)

    def moved(self, incumbent: TimedSchedule, task: int, pool: int) -> TimedSchedule | None:
        schedule, start = incumbent.schedule, incumbent.start
        times = Times(start, *lifetimes(schedule, start, incumbent.makespan))
        moved: Reassigned | None = self.mover.moved(schedule, times, [task], pool)
        if moved is None:
            return None
        start = retimed(schedule, moved, start)
        return TimedSchedule(moved.schedule, start, makespan_of(moved.schedule, start))

    def built(self, incumbent: TimedSchedule) -> Plan | None:
        """Return the plan of these very times, if there are addresses."""
        schedule, start = incumbent.schedule, incumbent.start
        begins, ends = lifetimes(schedule, start, incumbent.makespan)
        machine = self.problem.machine
        offset, without = pack_all(
            machine, self.context.packed, schedule, begins, ends, Clock(None)
        )
        if without:
            return None
        schedule = schedule._replace(offset=offset)
        return plan_of(
            self.problem, self.plan, schedule, start, dram_is_free=self.context.dram_is_free
        )


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(problem=problems(), data=st.data())
def test_after_moves_of_any_tasks_the_times_are_valid_wherever_there_are_addresses(
    problem: Problem, data: st.DataObject
) -> None:
    plan = _listed(problem)
    assume(plan is not None)
    if plan is None:
        return
    setting = Setting(problem, plan)
    assume(len(setting.mover.pools) > 1)
    incumbent = setting.incumbent
    for _ in range(4):
        task = data.draw(st.integers(0, len(problem.tasks) - 1))
        pool = data.draw(st.integers(0, len(setting.mover.pools) - 1))
        found = setting.moved(incumbent, task, pool)
        if found is None:
            continue
        built = setting.built(found)
        if built is None:
            continue
        assert check(problem, built) == ()
        core = problem.machine.cores[built.placements[task].core]
        assert (core.kind, core.memory) == setting.mover.pools[pool]
        incumbent = found


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(problem=problems())
def test_no_step_lengthens_a_plan_and_what_is_packed_after_them_is_valid(problem: Problem) -> None:
    plan = _listed(problem)
    assume(plan is not None)
    if plan is None:
        return
    context, schedule, start = context_of(problem, plan, option_tables_of(problem, plan))
    fill, clock = FillLimits(context), Clock(None)
    current, reassignment = (
        TimedSchedule(schedule, start, plan.claim.makespan),
        ReassignmentSteps(context, 0),
    )

    for _ in range(5):
        found = reassignment.improve(current, fill.limit(), clock)
        assert found.makespan <= current.makespan
        current = found

    settled = with_addresses(context, current, fill, clock)
    if settled is not None:
        schedule, start = settled.schedule, settled.start
        built = plan_of(problem, plan, schedule, start, dram_is_free=context.dram_is_free)
        assert check(problem, built) == ()


@pytest.fixture(scope="module")
def one_after_another() -> Problem:
    """Tasks each of which reads weights of its own and what the one before has written."""
    return chain(star(2, 4096), layers=3, strips=1)


@pytest.mark.parametrize("task", [0, 1, 2])
def test_moving_a_task_there_and_back_gives_the_same_plan(
    one_after_another: Problem, task: int
) -> None:
    plan = _listed(one_after_another)
    assert plan is not None
    setting = Setting(one_after_another, plan)
    here = _pool(setting.incumbent.schedule, task)

    there = setting.moved(setting.incumbent, task, 1 - here)
    assert there is not None
    back = setting.moved(there, task, here)

    assert back is not None
    assert there.schedule.demands.items[there.schedule.demands.begin[task]] == 1 - here
    assert _settled(setting, back) == _settled(setting, setting.incumbent)


def _pool(schedule: PartialOrderSchedule, task: int) -> int:
    return int(schedule.demands.items[schedule.demands.begin[task]])


def _settled(setting: Setting, incumbent: TimedSchedule) -> tuple[object, ...]:
    fill, clock = FillLimits(setting.context), Clock(None)
    current = justified_by_capacity(setting.context, incumbent, fill.limit(), clock)
    found = with_addresses(setting.context, current, fill, clock)
    assert found is not None
    built = setting.built(found)
    assert built is not None
    return built.placements, built.residencies, built.transfers


def test_what_a_neighbour_reads_and_writes_is_copied_there_and_back(
    one_after_another: Problem,
) -> None:
    plan = _listed(one_after_another)
    assert plan is not None
    setting = Setting(one_after_another, plan)
    schedule = setting.incumbent.schedule
    here = _pool(schedule, 1)

    there = setting.moved(setting.incumbent, 1, 1 - here)

    assert there is not None
    new = np.flatnonzero((there.schedule.cycles > 0) & (schedule.cycles == 0))
    assert sorted(
        there.schedule.memory[there.schedule.fills.items[there.schedule.fills.begin[new]]]
    ) == [
        1,
        2,
    ]
    weights = there.schedule.reads.items[
        there.schedule.reads.begin[1] : there.schedule.reads.begin[2]
    ]
    assert (there.schedule.memory[weights] == setting.mover.pools[1 - here][1]).all()


def test_a_transfer_between_two_cores_falls_away_when_one_end_moves_to_the_other() -> None:
    problem = chain(star(2, 4096), layers=2, strips=2)
    plan = _listed(problem, "round_robin")
    assert plan is not None
    setting = Setting(problem, plan)
    incumbent = setting.incumbent
    before = _between_scratchpads(setting.context, incumbent.schedule)
    assert before > 0

    for task in range(len(problem.tasks)):
        if _pool(incumbent.schedule, task) == 1:
            found = setting.moved(incumbent, task, 0)
            assert found is not None
            incumbent = found

    assert _between_scratchpads(setting.context, incumbent.schedule) == 0


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
    plan = _listed(problem)
    assert plan is not None
    setting = Setting(problem, plan)

    assert setting.moved(setting.incumbent, 1, 1) is None


def test_what_comes_to_several_memories_at_once_stays_and_is_copied(
    one_after_another: Problem,
) -> None:
    plan = _listed(one_after_another)
    assert plan is not None
    setting = Setting(one_after_another, plan)
    schedule = setting.incumbent.schedule
    here = _pool(schedule, 1)
    weights = next(
        int(residency)
        for residency in schedule.reads.items[schedule.reads.begin[1] : schedule.reads.begin[2]]
        if schedule.filler[residency] >= len(one_after_another.tasks)
    )
    load, spare = int(schedule.filler[weights]), int(schedule.filler.size) - 1
    items = np.insert(schedule.fills.items, schedule.fills.begin[load + 1], spare)
    begin = schedule.fills.begin + (np.arange(schedule.fills.begin.size) > load)
    several = schedule._replace(fills=schedule.fills._replace(begin=begin, items=items))
    incumbent = replace(setting.incumbent, schedule=several)

    found = setting.moved(incumbent, 1, 1 - here)

    assert found is not None
    assert found.schedule.memory[weights] == schedule.memory[weights]
    assert found.schedule.cycles[load] == schedule.cycles[load]


@pytest.fixture(scope="module")
def badly_dealt() -> tuple[Problem, Plan]:
    """Many equal tasks of which one core has far more than the other three."""
    problem = chain(_slow(star(4, 4096)), layers=3, strips=8)
    plan = _listed(problem)
    assert plan is not None
    setting = Setting(problem, plan)
    incumbent = setting.incumbent
    for task in range(len(problem.tasks)):
        if task % 3 and (found := setting.moved(incumbent, task, 0)) is not None:
            built = setting.built(found)
            if built is not None:
                incumbent = found
    worse = setting.built(incumbent)
    assert worse is not None
    return problem, worse


def _slow(machine: Machine) -> Machine:
    links = tuple(replace(link, rate=Fraction(64)) for link in machine.links)
    engines = tuple(replace(engine, rate=Fraction(64)) for engine in machine.engines)
    return replace(machine, links=links, engines=engines)


def test_steps_take_tasks_from_a_busy_core_and_never_lengthen_a_plan(
    badly_dealt: tuple[Problem, Plan],
) -> None:
    problem, plan = badly_dealt
    context, schedule, start = context_of(problem, plan, option_tables_of(problem, plan))
    fill, clock = FillLimits(context), Clock(None)
    limit = fill.limit()
    current = justified_by_capacity(
        context, TimedSchedule(schedule, start, plan.claim.makespan), limit, clock
    )
    reassignment, first = ReassignmentSteps(context, 0), current.makespan

    for _ in range(40):
        found = reassignment.improve(current, limit, clock)
        assert found.makespan <= current.makespan
        current = found

    assert current.makespan < 0.9 * first
    settled = with_addresses(context, current, fill, clock)
    assert settled is not None
    built = plan_of(
        problem, plan, settled.schedule, settled.start, dram_is_free=context.dram_is_free
    )
    assert check(problem, built) == ()


def test_the_same_seed_leads_to_the_same_standing(badly_dealt: tuple[Problem, Plan]) -> None:
    problem, plan = badly_dealt
    found = []
    for _ in range(2):
        context, schedule, start = context_of(problem, plan, option_tables_of(problem, plan))
        current, clock = TimedSchedule(schedule, start, plan.claim.makespan), Clock(None)
        reassignment = ReassignmentSteps(context, 3)
        for _ in range(5):
            current = reassignment.improve(current, context.usable, clock)
        found.append(current)

    assert found[0].makespan == found[1].makespan
    assert (found[0].start == found[1].start).all()


def test_tasks_without_data_change_cores_too() -> None:
    machine = star(2, 1024)
    tasks = tuple(Task(index=n, name=f"t{n}", cycles=(10,)) for n in range(4))
    problem = Problem(name="no data", machine=machine, tasks=tasks)
    claim = replace(_claim(problem), makespan=40)
    placements = tuple(Placement(task=n, core=0, start=10 * n, end=10 * n + 10) for n in range(4))
    plan = Plan(placements=placements, claim=claim, solver="by hand")
    context, schedule, start = context_of(problem, plan, option_tables_of(problem, plan))
    current, reassignment = TimedSchedule(schedule, start, 40), ReassignmentSteps(context, 0)

    for _ in range(10):
        current = reassignment.improve(current, context.usable, Clock(None))

    assert current.makespan == 20


def _claim(problem: Problem) -> Claim:
    plan = _listed(problem)
    assert plan is not None
    return plan.claim


def test_where_no_memory_has_room_two_tasks_change_places() -> None:
    problem = chain(star(2, 4096), layers=2, strips=2)
    plan = _listed(problem, "round_robin")
    assert plan is not None
    setting = Setting(problem, plan)
    schedule, start, last = setting.incumbent.schedule, setting.incumbent.start, plan.claim.makespan
    late = Times(start, *lifetimes(schedule, start, last))
    components = Components(problem, setting.mover.pools, np.random.default_rng(0))
    nothing = np.zeros(setting.context.usable.size, np.int64)

    chosen = [*components.choices(schedule, late, start, nothing, 20)]

    assert chosen
    for component, other in chosen:
        assert component.pool == _pool(schedule, other.tasks[0])
        assert other.pool == _pool(schedule, component.tasks[0])
