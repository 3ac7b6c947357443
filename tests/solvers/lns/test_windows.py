"""Windows of all neighbourhoods: what they decide keeps a plan valid."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from spmilp.checker.check import check
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.clock import Clock
from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.neighbourhoods import CUTS, Field, Neighbourhood
from spmilp.solvers.lns.window import Claim, Window, handovers
from spmilp.solvers.lns.window_model import WindowModel
from spmilp.solvers.partial_order.capacity_passes import (
    capacity_backward_pass,
    capacity_forward_pass,
)
from spmilp.solvers.partial_order.context import context_of
from spmilp.solvers.partial_order.repacking import FillLimits, pack_all
from spmilp.solvers.partial_order.schedule import lifetimes, makespan_of
from spmilp.solvers.partial_order.to_plan import plan_of
from spmilp.solvers.partial_order.transfer_options import option_tables_of
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems

MODEST = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class Setting:
    """A list schedule with all addresses open, as early and as late as it can be."""

    def __init__(self, problem: Problem, plan: Plan) -> None:
        self.problem, self.plan = problem, plan
        self.context, self.schedule, start = context_of(
            problem, plan, option_tables_of(problem, plan)
        )
        self.limit, kept = FillLimits(self.context).limit(), self.context.kept_reuse
        self.last = plan.claim.makespan
        late = capacity_backward_pass(self.schedule, kept, self.limit, start, self.last)
        early = capacity_forward_pass(self.schedule, kept, self.limit, late, self.last)
        self.field = Field(self.context, self.schedule, early, late)

    def window(self, kind: Neighbourhood, size: int, seed: int) -> Window:
        cut = CUTS[kind](self.field, size, np.random.default_rng(seed))
        return Window(self.context, self.schedule, self.field.early, self.field.late, cut)

    def built(self, start: Ints) -> Plan | None:
        """Return the plan of these very times, if there are addresses."""
        schedule, last = self.schedule, makespan_of(self.schedule, start)
        begins, ends = lifetimes(schedule, start, last)
        memories = self.context.packed
        offset, without = pack_all(
            self.problem.machine, memories, schedule, begins, ends, Clock(None)
        )
        if without:
            return None
        schedule = schedule._replace(offset=offset)
        return plan_of(
            self.problem, self.plan, schedule, start, dram_is_free=self.context.dram_is_free
        )


def _setting(problem: Problem) -> Setting:
    plan = ListScheduler(("locality", "layer_by_layer")).solve(problem, SolveOptions()).plan
    assume(plan is not None)
    assert plan is not None
    return Setting(problem, plan)


def _solver() -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 1.0
    return solver


@MODEST
@given(
    problem=problems(),
    kind=st.sampled_from(Neighbourhood),
    size=st.integers(2, 12),
    seed=st.integers(0, 9),
)
def test_what_a_window_of_any_kind_decides_is_valid_as_it_is(
    problem: Problem, kind: Neighbourhood, size: int, seed: int
) -> None:
    setting = _setting(problem)
    window = setting.window(kind, size, seed)
    model, solver = WindowModel(window), _solver()

    status = solver.solve(model.cp)

    assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    solution = model.solution(solver)
    if solution.saved == 0:
        return
    times = window.result(solution)
    assert makespan_of(setting.schedule, times) <= setting.last
    built = setting.built(times)
    if built is not None:
        assert check(problem, built) == ()


@MODEST
@given(problem=problems(), kind=st.sampled_from(Neighbourhood), seed=st.integers(0, 9))
def test_the_old_times_are_always_a_solution(
    problem: Problem, kind: Neighbourhood, seed: int
) -> None:
    window = _setting(problem).window(kind, 8, seed)
    model = WindowModel(window)
    model.cp.add(model.saved == 0)
    for activity, start in model.starts.items():
        model.cp.add(start == window.old[activity] - window.start)

    assert _solver().solve(model.cp) == cp_model.OPTIMAL


@pytest.fixture(scope="module")
def setting() -> Setting:
    problem = chain(star(2, 2048), layers=6, strips=4)
    plan = ListScheduler(("round_robin", "layer_by_layer")).solve(problem, SolveOptions()).plan
    assert plan is not None
    return Setting(problem, plan)


@pytest.mark.parametrize(
    "kind", [Neighbourhood.CORES, Neighbourhood.CHAINS, Neighbourhood.CRITICAL]
)
def test_what_is_not_free_keeps_its_order_on_each_core(
    setting: Setting, kind: Neighbourhood
) -> None:
    window = setting.window(kind, 6, 0)
    solver = _solver()
    model = WindowModel(window)
    solver.solve(model.cp)
    new = dict(zip(window.inside, map(solver.value, model.starts.values()), strict=True))
    begin, items = setting.schedule.demands

    tasks = [one for one in window.inside if one < len(setting.problem.tasks)]
    kept = [one for one in tasks if not window.is_free[one]]

    assert kept
    for pool in {int(items[begin[one]]) for one in kept}:
        readers = [one for one in kept if items[begin[one]] == pool]
        assert all(new[one] < new[other] for one, other in pairwise(readers))


def test_a_window_of_chains_frees_some_of_a_longer_stretch(setting: Setting) -> None:
    window = setting.window(Neighbourhood.CHAINS, 6, 0)

    assert 0 < sum(window.is_free) <= 6 < len(window.inside)


def test_claims_are_handed_on_to_those_that_begin_later() -> None:
    claims = [Claim(0, 4, 1), Claim(0, 6, 1), Claim(4, 8, 1), Claim(7, 9, 1)]

    assert list(handovers(claims, capacity=2)) == [(0, 2), (1, 3)]


@MODEST
@given(
    claims=st.lists(
        st.builds(
            lambda begin, length, amount: Claim(begin, begin + length, amount),
            st.integers(0, 20),
            st.integers(1, 8),
            st.integers(1, 5),
        ),
        max_size=12,
    ),
    moves=st.lists(st.integers(0, 30), min_size=12, max_size=12),
)
def test_claims_that_are_handed_on_in_order_fit_whatever_their_times(
    claims: list[Claim], moves: list[int]
) -> None:
    claims.sort(key=lambda claim: claim.begin)
    capacity = _peak(claims)
    pairs = list(handovers(claims, capacity))
    moved: list[Claim] = []
    for index, claim in enumerate(claims):
        ready = max((moved[first].end for first, second in pairs if second == index), default=0)
        begin = max(ready, moves[index])
        moved.append(Claim(begin, begin + claim.end - claim.begin, claim.amount))

    assert all(claims[first].end <= claims[second].begin for first, second in pairs)
    assert _peak(moved) <= capacity


def _peak(claims: list[Claim]) -> int:
    return max(
        (
            sum(one.amount for one in claims if one.begin <= claim.begin < one.end)
            for claim in claims
        ),
        default=0,
    )
