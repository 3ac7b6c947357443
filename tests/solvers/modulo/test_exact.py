"""Streams that CP-SAT decides as a whole, against brute force and a MILP solver."""

from itertools import islice

import pytest

from spmilp.bounds.period import period_bound, proofs_of_period
from spmilp.checker.check import check
from spmilp.errors import SpmilpError
from spmilp.plan.plan import Plan
from spmilp.plan.unrolled import enough_inferences, unrolled
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolveOptions
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.milp.process import run
from spmilp.solvers.exact.milp.program import Limits
from spmilp.solvers.exact.milp.rows import Rows
from spmilp.solvers.modulo.exact import PeriodSearch, model_of_streams
from spmilp.solvers.modulo.solver import of_period, stream_answer
from spmilp.solvers.modulo.stream import stream_of
from tests.bounds.test_period import problems_with_states, random_problem
from tests.oracle.periods import least_period
from tests.oracle.solver import solver_named
from tests.solvers.modulo.test_stream import starts_on_chip, with_weights
from tests.solvers.tiny_problems import tiny_problem

TOO_FEW_INSTANCES = {20}
"""Where the least period needs five instances of a tensor; brute force has as many as it likes."""


def streams(problem: Problem, least: int = 1) -> list[Plan]:
    """Return the list scheduler's stream and better ones; both ways to judge them accept these.

    Without a plan, or a stream of it, there is none.
    """
    plan = solver_named("list").solve(problem, SolveOptions()).plan
    try:
        found = [] if plan is None else [stream_of(problem, plan)]
    except SpmilpError:
        found = []
    problem = of_period(problem)
    for known in tuple(found):
        search = PeriodSearch(SearchContext(problem, SolveOptions()), known)
        found += search.better(max(least, period_bound(problem).value))
    for one in found:
        assert check(problem, one) == ()
        assert check(*unrolled(problem, one, enough_inferences(one))) == ()
    return found


def period_of(plan: Plan) -> int:
    assert plan.stream is not None
    return plan.stream.period


@pytest.mark.parametrize("numbers", [range(12), pytest.param(range(100), marks=pytest.mark.full)])
def test_the_period_is_that_of_brute_force(numbers: range) -> None:
    shorter = 0
    for number in numbers:
        problem = random_problem(number)
        found, least = streams(problem), least_period(problem)
        assert period_of(found[-1]) == least + (number in TOO_FEW_INSTANCES), number
        shorter += period_of(found[-1]) < period_of(found[0])
    assert shorter >= len(numbers) // 10


@pytest.mark.parametrize("many", [6, pytest.param(60, marks=pytest.mark.full)])
def test_no_stream_with_states_is_shorter_than_that_of_brute_force(many: int) -> None:
    best = 0
    for problem in islice(problems_with_states(), many):
        found, least = streams(problem), least_period(problem)
        assert all(proof.value() <= least for proof in proofs_of_period(problem)), problem.states()
        assert all(least <= period_of(one) for one in found), problem.states()
        best += period_of(found[-1]) == least
    assert best >= many // 2


@pytest.mark.full
def test_streams_in_small_memories_are_valid() -> None:
    better = compared = 0
    for number in range(16):
        problem = with_weights(tiny_problem(number))
        if not any(starts_on_chip(problem, one) for one in problem.buffers):
            found = streams(problem)
            compared += bool(found)
            better += len(found) > 1
    assert compared > 6
    assert better > 3


@pytest.mark.parametrize("number", [0, 8, pytest.param(11, marks=pytest.mark.full)])
def test_rows_of_a_milp_have_the_least_latency(number: int) -> None:
    problem = random_problem(number)
    best = streams(problem)[-1]
    assert best.stream is not None

    def solved(period: int) -> int | None:
        model = model_of_streams(of_period(problem), period)
        program = Rows(model.cp, model.variables.makespan, 0, None).program
        outcome = run(program, "HiGHS", Limits(seconds=None, threads=1, seed=0))
        assert outcome.complete or outcome.infeasible
        return None if outcome.infeasible else outcome.bound

    assert solved(best.stream.period) == best.claim.makespan
    assert solved(best.stream.period - 1) is None


def test_a_longer_period_has_less_latency() -> None:
    problem = random_problem(27)
    least = streams(problem)[-1]
    longer = streams(problem, 2 * period_of(least))[-1]
    assert longer.claim.makespan < least.claim.makespan


def test_streams_are_no_longer_than_those_of_the_list_scheduler() -> None:
    problem = of_period(random_problem(8))
    answer = solver_named("list").solve(random_problem(8), SolveOptions())

    def period(*, whole: bool, **options: float) -> int:
        limits = SolveOptions(**options)
        found = stream_answer(problem, answer, limits, also_quick_plans=False, decides_whole=whole)
        assert found.violations(problem) == ()
        assert found.plan is not None
        return period_of(found.plan)

    assert (period(whole=False), period(whole=True)) == (15, 8)
    assert period(whole=True, time_limit=0.0) >= 8
