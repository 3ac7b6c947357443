"""Joint windows: what they decide keeps a plan valid, and what no other step would find."""

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.lns.joint.model import JointModel
from spmilp.solvers.lns.joint.region import Region
from spmilp.solvers.lns.joint.result import JointResult
from spmilp.solvers.lns.joint.search import JointSearch
from spmilp.solvers.lns.options import LnsOptions
from spmilp.solvers.lns.reassignment.move import Reassigner
from spmilp.solvers.lns.steps import Steps
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.forward import forward_pass
from spmilp.solvers.partial_order.repacking import FillLimits, justified_by_capacity
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems
from tests.solvers.schedules import packed, scheduled

MODEST = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    # Smaller counterexamples are not worth the minutes that it takes to find them.
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class Setting:
    """A list schedule with all addresses open, as early and as late as it can be."""

    def __init__(self, problem: Problem) -> None:
        self.context, first = scheduled(problem)
        memories = FillLimits(self.context).memories()
        self.late = backward_pass(first, memories)
        self.early = forward_pass(self.late, memories)
        self.reassigner = Reassigner(self.context)

    def model(self, size: int, seed: int) -> JointModel:
        """Return the model of a window somewhere, in which tasks may run on any core."""
        random = np.random.default_rng(seed)
        starts = np.sort(self.late.start[self.late.schedule.cycles > 0])
        first = int(random.integers(max(1, starts.size - size)))
        span = int(starts[first]), int(starts[min(first + size, starts.size) - 1]) + 1
        kinds = [kind for kind, _ in self.reassigner.pools]
        demands, pools = self.late.schedule.demands, {}
        for task in range(len(self.context.problem.tasks)):
            own = int(demands.row(task)[0])
            alike = [pool for pool, kind in enumerate(kinds) if kind == kinds[own] and pool != own]
            pools[task] = (own, *alike)
        return JointModel(Region(self.reassigner, self.early, self.late, span, pools))


def _solver() -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 0.05
    return solver


def test_whatever_a_joint_window_decides_is_valid_as_it_is() -> None:
    moved = fetched = checked = 0

    @MODEST
    @given(problem=problems(), size=st.integers(2, 20), seed=st.integers(0, 99))
    def decide(problem: Problem, size: int, seed: int) -> None:
        nonlocal moved, fetched, checked
        model, solver = Setting(problem).model(size, seed), _solver()
        region = model.region
        kept = [literals[region.pool_of(task)] for task, literals in model.pools.items()]
        new = [one.holder.present for one in model.deliveries if one.transfer is None]
        # As much as possible is to be other than it was.
        model.cp.maximize(sum(new) - sum(kept) + sum(one.literal for one in model.in_place))

        assert solver.solve(model.cp) in (cp_model.OPTIMAL, cp_model.FEASIBLE)

        found = JointResult(model, solver).schedule()
        if found is None:
            return
        moved += sum(not solver.value(literal) for literal in kept)
        fetched += sum(map(solver.value, new))
        assert found.makespan <= region.whole.latest_end(0)
        built = packed(region.context, found)
        if built is not None:
            checked += 1
            assert check(problem, built) == ()

    decide()
    assert moved >= 15
    assert fetched >= 15
    assert checked >= 15


@MODEST
@given(problem=problems(), size=st.integers(2, 20), seed=st.integers(0, 99))
def test_what_the_schedule_has_is_a_solution_and_the_hint(
    problem: Problem, size: int, seed: int
) -> None:
    model, solver = Setting(problem).model(size, seed), _solver()
    model.add_hint()
    solver.parameters.fix_variables_to_their_hinted_value = True

    assert solver.solve(model.cp) == cp_model.OPTIMAL


def test_joint_windows_shorten_a_plan_at_which_all_other_steps_stand_still() -> None:
    problem = chain(star(4, 2048), layers=3, strips=4)
    context, first = scheduled(problem, "round_robin")
    fill, clock = FillLimits(context), Clock(None)
    memories = fill.memories()
    current = justified_by_capacity(context, first, memories, clock)
    others = Steps(context, fill, clock, LnsOptions(joint_windows=False), 0)
    idle = 0
    while idle < 40:
        before = current.makespan
        current = others.take(current)
        idle = 0 if current.makespan < before else idle + 1

    found = [JointSearch(context, 0, has_clock=False) for _ in range(2)]
    one, other = (search.improve(current, memories, clock) for search in found)

    assert one.makespan < current.makespan
    assert np.array_equal(one.start, other.start), "the same seed gives the same plan"
    built = packed(context, one)
    assert built is not None
    assert check(problem, built) == ()
