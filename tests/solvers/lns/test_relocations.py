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
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.addresses import pack_all
from spmilp.solvers.lns.build import plan_of
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.copies import copies_of
from spmilp.solvers.lns.cores.components import Components
from spmilp.solvers.lns.cores.moving import Moved, Mover, Times
from spmilp.solvers.lns.cores.relocations import Relocations
from spmilp.solvers.lns.cores.stretched import stretched
from spmilp.solvers.lns.draft import Draft
from spmilp.solvers.lns.ground import Ground, ground_of
from spmilp.solvers.lns.lifetimes import lifetimes, makespan_of
from spmilp.solvers.lns.loose import loosely_right
from spmilp.solvers.lns.loosened import Filling, addressed, opened
from spmilp.solvers.lns.standing import Standing
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems


def _listed(problem: Problem, rule: str = "locality") -> Plan | None:
    return ListScheduler((rule, "layer_by_layer")).solve(problem, SolveOptions()).plan


class Setting:
    """A plan's draft at its latest times, and what moves components in it."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem, self.plan = problem, plan
        self.ground, draft, start = ground_of(problem, plan, copies_of(problem, plan))
        last = plan.claim.makespan
        late = loosely_right(draft, self.ground.kept, self.ground.usable, start, last)
        self.standing = Standing(draft, late, last)
        spare = len(plan.placements) + len(plan.transfers)
        self.mover = Mover(problem, self.ground.copies, spare)

    def moved(self, standing: Standing, task: int, pool: int) -> Standing | None:
        draft, start = standing.draft, standing.start
        times = Times(start, *lifetimes(draft, start, standing.makespan))
        moved: Moved | None = self.mover.moved(draft, times, [task], pool)
        if moved is None:
            return None
        start = stretched(draft, moved, start)
        return Standing(moved.draft, start, makespan_of(moved.draft, start))

    def built(self, standing: Standing) -> Plan | None:
        """Return the plan of these very times, if there are addresses."""
        draft, start = standing.draft, standing.start
        begins, ends = lifetimes(draft, start, standing.makespan)
        machine = self.problem.machine
        offset, without = pack_all(machine, self.ground.packed, draft, begins, ends, Clock(None))
        if without:
            return None
        draft = draft._replace(offset=offset)
        return plan_of(self.problem, self.plan, draft, start, dram_is_free=self.ground.dram_is_free)


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
    standing = setting.standing
    for _ in range(4):
        task = data.draw(st.integers(0, len(problem.tasks) - 1))
        pool = data.draw(st.integers(0, len(setting.mover.pools) - 1))
        found = setting.moved(standing, task, pool)
        if found is None:
            continue
        built = setting.built(found)
        if built is None:
            continue
        assert check(problem, built) == ()
        core = problem.machine.cores[built.placements[task].core]
        assert (core.kind, core.memory) == setting.mover.pools[pool]
        standing = found


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
    ground, draft, start = ground_of(problem, plan, copies_of(problem, plan))
    filling, clock = Filling(ground), Clock(None)
    loose, relocations = Standing(draft, start, plan.claim.makespan), Relocations(ground, 0)

    for _ in range(5):
        found = relocations.improve(loose, filling.limit(), clock)
        assert found.makespan <= loose.makespan
        loose = found

    settled = addressed(ground, loose, filling, clock)
    if settled is not None:
        draft, start = settled.draft, settled.start
        built = plan_of(problem, plan, draft, start, dram_is_free=ground.dram_is_free)
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
    here = _pool(setting.standing.draft, task)

    there = setting.moved(setting.standing, task, 1 - here)
    assert there is not None
    back = setting.moved(there, task, here)

    assert back is not None
    assert there.draft.demands.items[there.draft.demands.begin[task]] == 1 - here
    assert _settled(setting, back) == _settled(setting, setting.standing)


def _pool(draft: Draft, task: int) -> int:
    return int(draft.demands.items[draft.demands.begin[task]])


def _settled(setting: Setting, standing: Standing) -> tuple[object, ...]:
    filling, clock = Filling(setting.ground), Clock(None)
    loose = opened(setting.ground, standing, filling.limit(), clock)
    found = addressed(setting.ground, loose, filling, clock)
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
    draft = setting.standing.draft
    here = _pool(draft, 1)

    there = setting.moved(setting.standing, 1, 1 - here)

    assert there is not None
    new = np.flatnonzero((there.draft.cycles > 0) & (draft.cycles == 0))
    assert sorted(there.draft.memory[there.draft.fills.items[there.draft.fills.begin[new]]]) == [
        1,
        2,
    ]
    weights = there.draft.reads.items[there.draft.reads.begin[1] : there.draft.reads.begin[2]]
    assert (there.draft.memory[weights] == setting.mover.pools[1 - here][1]).all()


def test_a_transfer_between_two_cores_falls_away_when_one_end_moves_to_the_other() -> None:
    problem = chain(star(2, 4096), layers=2, strips=2)
    plan = _listed(problem, "round_robin")
    assert plan is not None
    setting = Setting(problem, plan)
    standing = setting.standing
    before = _between_scratchpads(setting.ground, standing.draft)
    assert before > 0

    for task in range(len(problem.tasks)):
        if _pool(standing.draft, task) == 1:
            found = setting.moved(standing, task, 0)
            assert found is not None
            standing = found

    assert _between_scratchpads(setting.ground, standing.draft) == 0


def _between_scratchpads(ground: Ground, draft: Draft) -> int:
    moves = np.flatnonzero((draft.part >= 0) & (draft.cycles > 0))
    source = draft.memory[draft.reads.items[draft.reads.begin[moves]]]
    target = draft.memory[draft.fills.items[draft.fills.begin[moves]]]
    return int((~ground.is_dram[source] & ~ground.is_dram[target]).sum())


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

    assert setting.moved(setting.standing, 1, 1) is None


def test_what_comes_to_several_memories_at_once_stays_and_is_copied(
    one_after_another: Problem,
) -> None:
    plan = _listed(one_after_another)
    assert plan is not None
    setting = Setting(one_after_another, plan)
    draft = setting.standing.draft
    here = _pool(draft, 1)
    weights = next(
        int(held)
        for held in draft.reads.items[draft.reads.begin[1] : draft.reads.begin[2]]
        if draft.filler[held] >= len(one_after_another.tasks)
    )
    load, spare = int(draft.filler[weights]), int(draft.filler.size) - 1
    items = np.insert(draft.fills.items, draft.fills.begin[load + 1], spare)
    begin = draft.fills.begin + (np.arange(draft.fills.begin.size) > load)
    several = draft._replace(fills=draft.fills._replace(begin=begin, items=items))
    standing = replace(setting.standing, draft=several)

    found = setting.moved(standing, 1, 1 - here)

    assert found is not None
    assert found.draft.memory[weights] == draft.memory[weights]
    assert found.draft.cycles[load] == draft.cycles[load]


@pytest.fixture(scope="module")
def badly_dealt() -> tuple[Problem, Plan]:
    """Many equal tasks of which one core has far more than the other three."""
    problem = chain(_slow(star(4, 4096)), layers=3, strips=8)
    plan = _listed(problem)
    assert plan is not None
    setting = Setting(problem, plan)
    standing = setting.standing
    for task in range(len(problem.tasks)):
        if task % 3 and (found := setting.moved(standing, task, 0)) is not None:
            built = setting.built(found)
            if built is not None:
                standing = found
    worse = setting.built(standing)
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
    ground, draft, start = ground_of(problem, plan, copies_of(problem, plan))
    filling, clock = Filling(ground), Clock(None)
    limit = filling.limit()
    loose = opened(ground, Standing(draft, start, plan.claim.makespan), limit, clock)
    relocations, first = Relocations(ground, 0), loose.makespan

    for _ in range(40):
        found = relocations.improve(loose, limit, clock)
        assert found.makespan <= loose.makespan
        loose = found

    assert loose.makespan < 0.9 * first
    settled = addressed(ground, loose, filling, clock)
    assert settled is not None
    built = plan_of(problem, plan, settled.draft, settled.start, dram_is_free=ground.dram_is_free)
    assert check(problem, built) == ()


def test_the_same_seed_leads_to_the_same_standing(badly_dealt: tuple[Problem, Plan]) -> None:
    problem, plan = badly_dealt
    found = []
    for _ in range(2):
        ground, draft, start = ground_of(problem, plan, copies_of(problem, plan))
        loose, clock = Standing(draft, start, plan.claim.makespan), Clock(None)
        relocations = Relocations(ground, 3)
        for _ in range(5):
            loose = relocations.improve(loose, ground.usable, clock)
        found.append(loose)

    assert found[0].makespan == found[1].makespan
    assert (found[0].start == found[1].start).all()


def test_tasks_without_data_change_cores_too() -> None:
    machine = star(2, 1024)
    tasks = tuple(Task(index=n, name=f"t{n}", cycles=(10,)) for n in range(4))
    problem = Problem(name="no data", machine=machine, tasks=tasks)
    claim = replace(_claim(problem), makespan=40)
    placements = tuple(Placement(task=n, core=0, start=10 * n, end=10 * n + 10) for n in range(4))
    plan = Plan(placements=placements, claim=claim, solver="by hand")
    ground, draft, start = ground_of(problem, plan, copies_of(problem, plan))
    loose, relocations = Standing(draft, start, 40), Relocations(ground, 0)

    for _ in range(10):
        loose = relocations.improve(loose, ground.usable, Clock(None))

    assert loose.makespan == 20


def _claim(problem: Problem) -> Claim:
    plan = _listed(problem)
    assert plan is not None
    return plan.claim


def test_where_no_memory_has_room_two_tasks_change_places() -> None:
    problem = chain(star(2, 4096), layers=2, strips=2)
    plan = _listed(problem, "round_robin")
    assert plan is not None
    setting = Setting(problem, plan)
    draft, start, last = setting.standing.draft, setting.standing.start, plan.claim.makespan
    late = Times(start, *lifetimes(draft, start, last))
    components = Components(problem, setting.mover.pools, np.random.default_rng(0))
    nothing = np.zeros(setting.ground.usable.size, np.int64)

    chosen = [*components.choices(draft, late, start, nothing, 20)]

    assert chosen
    for component, other in chosen:
        assert component.pool == _pool(draft, other.tasks[0])
        assert other.pool == _pool(draft, component.tasks[0])
