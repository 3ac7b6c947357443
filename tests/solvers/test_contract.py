"""What holds for every solver: valid plans, reports, seeds, hints, gaps, interrupts."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from threading import Timer, get_ident
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from benchmarks.exact.cosma.networks import random_network
from benchmarks.exact.cosma.setting import largest_operator, problem_of
from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.plan.file import plan_bytes
from spmilp.plan.plan import Plan
from spmilp.policies.cdm import Cdm
from spmilp.policies.cosma import Cosma
from spmilp.policies.onsram import OnSram
from spmilp.policies.rammer import Rammer
from spmilp.policies.set import Set
from spmilp.policies.stream import Stream
from spmilp.policies.toplib import TopLib
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.auto import Auto
from spmilp.solvers.base import Progress, SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.cpsat.solver import CpSatOptions, CpSatSolver
from spmilp.solvers.exact.milp.solver import MilpSolver
from spmilp.solvers.improve.solver import LnsSolver
from spmilp.solvers.peak import PeakBisection
from spmilp.solvers.schedule.restarts import PerturbedRestarts
from spmilp.solvers.schedule.solver import ListScheduler
from spmilp.solvers.traffic.solver import Residency
from tests.solvers.chains import chain, star
from tests.solvers.random_problems import problems
from tests.solvers.tiny_problems import tiny_problem

CHAIN = chain(star(4, 1000), layers=4, strips=6)
SHORT_CHAIN = chain(star(2, 1536), layers=3, strips=5)
PEAK_OF_CHAIN = replace(SHORT_CHAIN, objective=Objective.of(Quantity.PEAK_SPM))
SLOW = tiny_problem(80)
"""Two scratchpads with much to bring back: more than HiGHS solves in seconds."""

WITHOUT_LIMITS = SolveOptions()
WITHOUT_END = SolveOptions(time_limit=60.0)
SHORTLY, AT_ONCE = SolveOptions(time_limit=0.1), SolveOptions(time_limit=0.01)


def largest_fits(tasks: int, seed: int) -> Problem:
    """Return a random network on one scratchpad that holds its largest operator."""
    network = random_network(tasks, seed)
    return problem_of(network, largest_operator(network))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A solver, a problem that shows something of it, and options."""

    solver: Solver
    problem: Callable[[], Problem]
    options: SolveOptions = WITHOUT_LIMITS

    def solve(self, hint: Plan | None = None, **options: Any) -> SolverResult:
        return self.solver.solve(self.problem(), replace(self.options, **options), hint)


def named(*cases: Case) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.solver.name)


def value(problem: Problem, plan: Plan | None) -> int:
    """Return the first quantity of a plan that the checker accepts."""
    assert check(problem, plan) == ()
    return plan.claim.of(problem.objective.first)


def steps(count: int) -> PerturbedRestarts:
    return PerturbedRestarts(steps=count)


@named(
    Case(solver=ListScheduler(), problem=lambda: CHAIN),
    Case(solver=steps(200), problem=lambda: CHAIN),
    Case(solver=LnsSolver(), problem=lambda: chain(star(2, 1536), layers=2, strips=2)),
    Case(solver=Residency(), problem=lambda: largest_fits(25, 3)),
    Case(solver=PeakBisection(), problem=lambda: PEAK_OF_CHAIN),
    Case(
        solver=CpSatSolver(CpSatOptions(deterministic_limit=0.5, tie_breaks=0.1)),
        problem=lambda: SHORT_CHAIN,
    ),
    Case(solver=CpSatSolver(), problem=lambda: tiny_problem(64)),
    Case(solver=MilpSolver(), problem=lambda: tiny_problem(16)),
    Case(solver=Cosma(), problem=lambda: largest_fits(12, 3)),
    Case(solver=OnSram(), problem=lambda: SHORT_CHAIN),
    Case(solver=Rammer(), problem=lambda: SHORT_CHAIN),
    Case(solver=Cdm(), problem=lambda: SHORT_CHAIN),
    Case(solver=Set(steps=40), problem=lambda: SHORT_CHAIN),
    Case(solver=Stream(generations=3), problem=lambda: SHORT_CHAIN),
    Case(solver=TopLib(), problem=lambda: SHORT_CHAIN),
)
@pytest.mark.full
def test_the_same_seed_gives_the_same_plan_and_what_is_reported_leads_to_it(case: Case) -> None:
    problem = case.problem()
    told: list[Progress] = []
    threads: set[int] = set()

    def note(progress: Progress) -> None:
        told.append(progress)
        threads.add(get_ident())

    one, other = case.solve(seed=3, on_progress=note), case.solve(seed=3)

    objective = value(problem, one.plan)
    assert one.plan is not None
    assert other.plan is not None
    assert one == other
    assert plan_bytes(one.plan, problem) == plan_bytes(other.plan, problem)
    incumbents = [progress.incumbent for progress in told if progress.incumbent is not None]
    bounds = [progress.bound for progress in told]
    assert incumbents == sorted(incumbents, reverse=True)
    assert bounds == sorted(bounds)
    assert incumbents[-1] == objective
    assert bounds[-1] == one.bound <= objective
    assert threads == {get_ident()}


@named(
    Case(solver=steps(10**9), problem=lambda: CHAIN),
    Case(solver=LnsSolver(), problem=lambda: CHAIN, options=WITHOUT_END),
    Case(solver=CpSatSolver(), problem=lambda: chain(star(3, 1536), 4, 6), options=WITHOUT_END),
    Case(solver=MilpSolver(), problem=lambda: SLOW),
    Case(solver=Residency(), problem=lambda: largest_fits(60, 60)),
    Case(solver=Auto(), problem=lambda: CHAIN, options=WITHOUT_END),
)
def test_an_interrupt_ends_the_search_with_the_best_plan(case: Case, interruptible: None) -> None:
    told: list[Progress] = []
    # The process of PuLP has to have started.
    seconds = 1.5 if case.solver.name == "milp" else 0.4
    timer = Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    begins_with_list = case.solver.name in ("cpsat", "milp", "residency")

    def interrupt_soon(progress: Progress) -> None:
        told.append(progress)
        # Not before: until the list scheduler has a plan, an interrupt ends everything.
        is_own = progress.source.startswith(case.solver.name) or not begins_with_list
        if is_own and timer.ident is None:
            timer.start()

    result = case.solve(on_progress=interrupt_soon)
    timer.join()

    found = value(case.problem(), result.plan)
    assert result.interrupted
    assert result.status is SolveStatus.FEASIBLE
    # CP-SAT reports what its models find, before it is known whether there are addresses.
    if case.solver.name in ("search", "milp", "residency"):
        assert found == min(progress.incumbent or found for progress in told)


@cache
def good(case: Case) -> Plan:
    """Return what the solver of a case finds with a second of time."""
    name = case.solver.name
    solver = CpSatSolver(CpSatOptions(deterministic_limit=0.2)) if name == "cpsat" else case.solver
    plan = solver.solve(case.problem(), SolveOptions(time_limit=1.0)).plan
    assert plan is not None
    return plan


HINTED = named(
    Case(solver=LnsSolver(), problem=lambda: CHAIN, options=SHORTLY),
    Case(
        solver=CpSatSolver(CpSatOptions(deterministic_limit=0.0)),
        problem=lambda: chain(star(2, 1536), layers=2, strips=3),
    ),
    Case(solver=MilpSolver(), problem=lambda: tiny_problem(16), options=AT_ONCE),
    Case(solver=Residency(), problem=lambda: largest_fits(25, 3), options=SHORTLY),
    Case(solver=PeakBisection(), problem=lambda: PEAK_OF_CHAIN, options=SHORTLY),
)


@HINTED
def test_a_hint_is_never_replaced_by_something_worse(case: Case) -> None:
    plan = case.solve(good(case)).plan

    assert value(case.problem(), plan) <= value(case.problem(), good(case))


@HINTED
def test_a_hint_that_is_not_valid_is_not_believed(case: Case) -> None:
    hint = good(case)
    first = case.problem().objective.first
    claims_too_much = replace(hint, claim=replace(hint.claim, **{str(first): 1}))
    lacks_a_task = replace(hint, placements=hint.placements[1:])

    for broken in (claims_too_much, lacks_a_task):
        result = case.solve(broken, time_limit=1.0)
        assert result.bound <= value(case.problem(), result.plan)


@named(
    Case(solver=steps(200), problem=lambda: CHAIN),
    Case(solver=CpSatSolver(CpSatOptions(tie_breaks=0.0)), problem=lambda: SHORT_CHAIN),
    Case(solver=MilpSolver(), problem=lambda: SLOW, options=SolveOptions(time_limit=2.0)),
)
def test_a_gap_that_is_wide_enough_ends_the_search_at_once(case: Case) -> None:
    problem, gap, told = case.problem(), 0.9, list[Progress]()

    result = case.solve(gap=gap, on_progress=told.append)

    found = value(problem, result.plan)
    by_list = ListScheduler().solve(problem, SolveOptions(gap=gap)).plan
    assert result.status is SolveStatus.FEASIBLE
    assert found - result.bound <= gap * found
    assert case.solver.name == "milp" or found == value(problem, by_list)
    assert told[-1].bound > 0
    if case.solver.name == "search":
        assert len({progress.incumbent for progress in told}) == 1


@pytest.mark.parametrize(
    "solver",
    [
        *(
            ListScheduler(),
            ListScheduler(("earliest_finish", "layer_by_layer")),
            PerturbedRestarts(),
        ),
        *(LnsSolver(), Residency(), PeakBisection(), CpSatSolver(), MilpSolver()),
        *(Auto(), OnSram(), Cosma(), Rammer(), Cdm(), Set(), Stream(), TopLib()),
    ],
    ids=lambda solver: solver.name,
)
def test_a_problem_that_cannot_fit_is_infeasible_with_a_reason(solver: Solver) -> None:
    problem = chain(star(2, 256), layers=2, strips=2)

    result = solver.solve(problem, SolveOptions())

    assert (result.status, result.plan) == (SolveStatus.INFEASIBLE, None)
    assert {"832", "256"} <= set(result.reason.split())
    assert result.bound <= best_bound(problem).value


def never_worse_than_the_list_scheduler(
    problem: Problem, solver: Solver, options: SolveOptions
) -> tuple[SolverResult, SolverResult]:
    """Solve a problem in a context that the list scheduler has worked in; return both answers."""
    context = SearchContext(problem, options)
    start = ListScheduler().search(context)

    result = solver.search(context.member(options.time_limit, None))

    assert result.bound >= start.bound
    if start.plan is not None:
        found = value(problem, result.plan)
        assert result.bound <= found <= value(problem, start.plan)
    if result.plan is None:
        assert result.status in (SolveStatus.INFEASIBLE, SolveStatus.UNKNOWN)
        assert result.reason
    return start, result


EVERYTHING = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=40, **EVERYTHING)
@given(problem=problems())
def test_restarts_are_never_worse_than_the_list_scheduler(problem: Problem) -> None:
    start, result = never_worse_than_the_list_scheduler(problem, steps(40), SolveOptions())

    assert result.bound == start.bound


@settings(max_examples=15, **EVERYTHING)
@given(problem=problems(most_tasks=8))
def test_lns_is_never_worse_than_the_list_scheduler(problem: Problem) -> None:
    start, result = never_worse_than_the_list_scheduler(problem, LnsSolver(), SolveOptions())

    assert (result.plan is None) == (start.plan is None)


@settings(max_examples=8, **EVERYTHING)
@given(problem=problems(most_tasks=5))
def test_cpsat_is_never_worse_than_the_list_scheduler(problem: Problem) -> None:
    never_worse_than_the_list_scheduler(problem, CpSatSolver(), SolveOptions(time_limit=2.0))
