"""Windows of all neighbourhoods: what they decide keeps a plan valid."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from spmilp.checker.check import check
from spmilp.problem.problem import Problem
from spmilp.solvers.lns.neighbourhoods import CUTS, Neighbourhood, Slack
from spmilp.solvers.lns.window import Claim, Window, handovers
from spmilp.solvers.lns.window_model import WindowModel
from spmilp.solvers.partial_order.backward import backward_pass
from spmilp.solvers.partial_order.forward import forward_pass
from spmilp.solvers.partial_order.repacking import FillLimits
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems
from tests.solvers.schedules import packed, scheduled

MODEST = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class Setting:
    """A list schedule with all addresses open, as early and as late as it can be."""

    def __init__(self, problem: Problem, assignment: str = "locality") -> None:
        self.context, self.first = scheduled(problem, assignment)
        memories = FillLimits(self.context).memories()
        self.late = backward_pass(self.first, memories)
        self.early = forward_pass(self.late, memories)

    def window(self, kind: Neighbourhood, size: int, seed: int) -> Window:
        slack = Slack(self.context, self.early, self.late)
        cut = CUTS[kind](slack, size, np.random.default_rng(seed))
        return Window(self.context, self.early, self.late, cut)


def _solver() -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 1.0
    return solver


def test_what_a_window_of_any_kind_decides_is_valid_as_it_is() -> None:
    saved = checked = 0

    @MODEST
    @given(
        problem=problems(),
        kind=st.sampled_from(Neighbourhood),
        size=st.integers(2, 12),
        seed=st.integers(0, 9),
    )
    def decide(problem: Problem, kind: Neighbourhood, size: int, seed: int) -> None:
        nonlocal saved, checked
        setting = Setting(problem)
        window = setting.window(kind, size, seed)
        model, solver = WindowModel(window), _solver()

        status = solver.solve(model.cp)

        assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        solution = model.solution(solver)
        if solution.saved == 0:
            return
        saved += 1
        found = window.result(solution)
        assert found.makespan <= setting.first.makespan
        built = packed(setting.context, found)
        if built is not None:
            checked += 1
            assert check(problem, built) == ()

    decide()
    assert saved >= 15
    assert checked >= 15


@MODEST
@given(problem=problems(), kind=st.sampled_from(Neighbourhood), seed=st.integers(0, 9))
def test_the_old_times_are_always_a_solution(
    problem: Problem, kind: Neighbourhood, seed: int
) -> None:
    window = Setting(problem).window(kind, 8, seed)
    model = WindowModel(window)
    model.cp.add(model.saved == 0)
    for activity, start in model.starts.items():
        model.cp.add(start == window.old[activity] - window.start)

    assert _solver().solve(model.cp) == cp_model.OPTIMAL


@pytest.fixture(scope="module")
def setting() -> Setting:
    problem = chain(star(2, 2048), layers=6, strips=4)
    return Setting(problem, "round_robin")


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
    begin, items = setting.late.schedule.demands

    tasks = [one for one in window.inside if one < len(setting.context.problem.tasks)]
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
