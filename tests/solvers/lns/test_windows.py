"""Windows of all kinds: what they decide keeps a plan valid, and equal ones get equal answers."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from spmilp.checker.check import check
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.kernels.records import Ints
from spmilp.solvers.list_scheduler.solver import ListScheduler
from spmilp.solvers.lns.addresses import pack_all
from spmilp.solvers.lns.build import plan_of
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.copies import copies_of
from spmilp.solvers.lns.ground import ground_of
from spmilp.solvers.lns.kept_order import Claim, handovers
from spmilp.solvers.lns.kinds import CUTS, Field, Kind
from spmilp.solvers.lns.lifetimes import lifetimes, makespan_of
from spmilp.solvers.lns.loose import loosely_left, loosely_right
from spmilp.solvers.lns.loosened import Filling
from spmilp.solvers.lns.standing import Standing
from spmilp.solvers.lns.window import Window
from spmilp.solvers.lns.window_memory import memories_suffice
from spmilp.solvers.lns.window_model import WindowModel
from spmilp.solvers.lns.windows import Windows
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
        self.ground, self.draft, start = ground_of(problem, plan, copies_of(problem, plan))
        self.limit, kept = Filling(self.ground).limit(), self.ground.kept
        self.last = plan.claim.makespan
        late = loosely_right(self.draft, kept, self.limit, start, self.last)
        early = loosely_left(self.draft, kept, self.limit, late, self.last)
        self.field = Field(self.ground, self.draft, early, late)

    def window(self, kind: Kind, size: int, seed: int) -> Window:
        cut = CUTS[kind](self.field, size, np.random.default_rng(seed))
        return Window(self.ground, self.draft, self.field.early, self.field.late, cut)

    def built(self, start: Ints) -> Plan | None:
        """Return the plan of these very times, if there are addresses."""
        draft, last = self.draft, makespan_of(self.draft, start)
        begins, ends = lifetimes(draft, start, last)
        memories = self.ground.packed
        offset, without = pack_all(self.problem.machine, memories, draft, begins, ends, Clock(None))
        if without:
            return None
        draft = draft._replace(offset=offset)
        return plan_of(self.problem, self.plan, draft, start, dram_is_free=self.ground.dram_is_free)


def _setting(problem: Problem) -> Setting:
    plan = ListScheduler(("locality", "layer_by_layer")).solve(problem, SolveOptions()).plan
    assume(plan is not None)
    assert plan is not None
    return Setting(problem, plan)


def _model(window: Window) -> WindowModel:
    model = WindowModel(window)
    memories_suffice(model)
    return model


def _solver() -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 1.0
    return solver


@MODEST
@given(
    problem=problems(),
    kind=st.sampled_from(Kind),
    size=st.integers(2, 12),
    seed=st.integers(0, 9),
)
def test_what_a_window_of_any_kind_decides_is_valid_as_it_is(
    problem: Problem, kind: Kind, size: int, seed: int
) -> None:
    setting = _setting(problem)
    window = setting.window(kind, size, seed)
    model, solver = _model(window), _solver()

    status = solver.solve(model.cp)

    assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    answer = model.answer(solver)
    if answer.saved == 0:
        return
    times = window.result(answer)
    assert makespan_of(setting.draft, times) <= setting.last
    built = setting.built(times)
    if built is not None:
        assert check(problem, built) == ()


@MODEST
@given(problem=problems(), kind=st.sampled_from(Kind), seed=st.integers(0, 9))
def test_the_old_times_are_always_an_answer(problem: Problem, kind: Kind, seed: int) -> None:
    window = _setting(problem).window(kind, 8, seed)
    model = _model(window)
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


@pytest.mark.parametrize("kind", [Kind.CORES, Kind.CHAINS, Kind.CRITICAL])
def test_what_is_not_free_keeps_its_order_on_each_core(setting: Setting, kind: Kind) -> None:
    window = setting.window(kind, 6, 0)
    solver = _solver()
    model = _model(window)
    solver.solve(model.cp)
    new = dict(zip(window.inside, map(solver.value, model.starts.values()), strict=True))
    begin, items = setting.draft.demands

    tasks = [one for one in window.inside if one < len(setting.problem.tasks)]
    kept = [one for one in tasks if not window.is_free[one]]

    assert kept
    for pool in {int(items[begin[one]]) for one in kept}:
        users = [one for one in kept if items[begin[one]] == pool]
        assert all(new[one] < new[other] for one, other in pairwise(users))


def test_a_window_of_chains_frees_some_of_a_longer_stretch(setting: Setting) -> None:
    window = setting.window(Kind.CHAINS, 6, 0)

    assert 0 < sum(window.is_free) <= 6 < len(window.inside)


def test_equal_windows_have_equal_fingerprints_and_others_have_not(setting: Setting) -> None:
    one, same, other = (_model(setting.window(Kind.TIME, size, 1)) for size in (10, 10, 12))

    assert one.fingerprint() == same.fingerprint()
    assert one.fingerprint() != other.fingerprint()


def test_a_window_that_comes_later_by_some_cycles_is_equal(setting: Setting) -> None:
    field, shift = setting.field, 1000
    last = field.order.size
    cut = field.all_of(last - 8, last)
    here = Window(setting.ground, setting.draft, field.early, field.late, cut)
    cut = cut._replace(first=cut.first + shift, until=cut.until + shift)
    there = Window(setting.ground, setting.draft, field.early + shift, field.late + shift, cut)

    assert here.start > 0
    assert _model(here).fingerprint() == _model(there).fingerprint()


def test_a_known_window_gets_its_answer_without_being_solved_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = setting.field.all_of(0, 30)
    monkeypatch.setitem(CUTS, Kind.TIME, lambda *_: cut)
    solved: list[int] = []
    original = Windows._solved

    def counted(*given: Any) -> Any:
        solved.append(1)
        return original(*given)

    monkeypatch.setattr(Windows, "_solved", counted)
    windows = Windows(setting.ground, (Kind.TIME,), 0, has_clock=False)
    loose, limit = Standing(setting.draft, setting.field.early, setting.last), setting.limit

    one, other = (windows.improve(loose, limit, Clock(None)) for _ in range(2))

    assert len(solved) == 1
    assert one.makespan == other.makespan <= loose.makespan
    assert (one.start == other.start).all()


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
