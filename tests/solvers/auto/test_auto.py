"""The portfolio: what it keeps of its members, and how it ends."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from spmilp import pipeline
from spmilp.bounds.best import proofs
from spmilp.checker.check import check
from spmilp.errors import SpmilpError
from spmilp.machine import routes as routes_module
from spmilp.machine.routes import Routes
from spmilp.plan.plan import Plan
from spmilp.problem.objective import OF_ONE_INFERENCE, Objective, Quantity
from spmilp.solvers import auto as module
from spmilp.solvers.auto import STRATEGY, Auto, Member, members_for
from spmilp.solvers.base import Progress, SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.context import KnownBounds, SearchContext
from spmilp.solvers.common.fit import why_it_cannot_fit
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.schedule.portfolio import Schedules, Trial
from spmilp.solvers.schedule.solver import ListScheduler
from spmilp.watch import Observer
from tests.solvers.chains import chain, star

PROBLEM = chain(star(2, 2_048), layers=2, strips=2)
START = ListScheduler(greedy=("contiguous", "layer_by_layer")).solve(PROBLEM, SolveOptions())
BETTER = ListScheduler().solve(PROBLEM, SolveOptions())


class Scripted(Solver):
    """A solver that answers what it was told to."""

    def __init__(self, name: str, answer: SolverResult | BaseException, log: list[object]) -> None:
        self.name = name
        self._answer = answer
        self._log = log

    def search(self, context: SearchContext) -> SolverResult:
        self._log.append((self.name, context.hint, context.options.time_limit))
        if isinstance(self._answer, BaseException):
            raise self._answer
        if self._answer.plan is not None:
            value = self._answer.plan.claim.makespan
            context.report(value, self._answer.bound, self.name)
        return self._answer


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[object]]:
    """Have the portfolio consist of scripted members; return what they are asked."""

    def script(*answers: SolverResult | BaseException) -> list[object]:
        log: list[object] = []
        members = tuple(
            Member(
                name=f"m{n}",
                until=(n + 1) / len(answers),
                make=lambda options, n=n, answer=answer: Scripted(f"m{n}", answer, log),
            )
            for n, answer in enumerate(answers)
        )
        monkeypatch.setattr(module, "members_for", lambda problem: members)
        return log

    return script


def value_of(result: SolverResult) -> int:
    """Return the makespan that the plan of a result claims."""
    return result.plan.claim.makespan


def shortened(result: SolverResult, cycles: int) -> SolverResult:
    """Return a result whose plan claims so many cycles less."""
    claim = replace(result.plan.claim, makespan=result.plan.claim.makespan - cycles)
    return replace(result, plan=replace(result.plan, claim=claim))


def test_each_member_begins_with_the_best_plan_so_far(play: Callable[..., list[object]]) -> None:
    good = shortened(START, 5)
    log = play(good, START, START)
    result = Auto().solve(PROBLEM, SolveOptions())

    assert good.plan is not None
    assert [hint for _, hint, _ in log] == [None, good.plan, good.plan]
    assert result.plan.claim.makespan == good.plan.claim.makespan


def test_the_best_bound_of_all_is_in_the_claim(play: Callable[..., list[object]]) -> None:
    play(replace(START, bound=7, bound_source="a"), replace(START, bound=9, bound_source="b"))
    result = Auto().solve(PROBLEM, SolveOptions())

    assert (result.bound, result.bound_source, result.plan.claim.bound) == (9, "b", 9)
    assert result.status is SolveStatus.FEASIBLE


def test_what_meets_the_bound_of_another_is_optimal(play: Callable[..., list[object]]) -> None:
    value = START.plan.claim.makespan
    log = play(START, replace(START, plan=None, bound=value), START)
    result = Auto().solve(PROBLEM, SolveOptions())

    assert result.status is SolveStatus.OPTIMAL
    assert len(log) == 2


def test_an_interrupt_in_a_member_ends_the_portfolio(play: Callable[..., list[object]]) -> None:
    log = play(START, replace(START, interrupted=True), shortened(START, 5))
    result = Auto().solve(PROBLEM, SolveOptions())

    assert len(log) == 2
    assert result.interrupted
    assert result.plan is not None


def test_an_interrupt_before_any_plan_passes_on(play: Callable[..., list[object]]) -> None:
    play(KeyboardInterrupt(), START)
    with pytest.raises(KeyboardInterrupt):
        Auto().solve(PROBLEM, SolveOptions())


def test_a_member_that_fails_is_left_out_with_a_warning(play: Callable[..., list[object]]) -> None:
    log = play(START, ValueError("boom\nand more"), SpmilpError("no room"), BETTER)
    told: list[str] = []
    result = pipeline.solve(PROBLEM, observer=Observer(on_warning=told.append), solver="auto")

    assert [hint for _, hint, _ in log] == [None, START.plan, START.plan, START.plan]
    assert result.makespan == value_of(BETTER)
    assert told == [
        "auto went on without m1, which failed: ValueError: boom; "
        "please report it with the problem",
        "auto went on without m2, which failed: no room",
    ]


def test_if_all_members_fail_the_first_failure_is_that_of_the_portfolio(
    play: Callable[..., list[object]],
) -> None:
    log = play(ValueError("boom"), SpmilpError("no room"))
    with pytest.raises(ValueError, match="boom"):
        Auto().solve(PROBLEM, SolveOptions())

    assert len(log) == 2


def test_if_all_members_fail_a_valid_hint_is_the_answer(play: Callable[..., list[object]]) -> None:
    play(ValueError("boom"))
    with pytest.warns(UserWarning, match="auto went on without m0, which failed: ValueError"):
        result = Auto().solve(PROBLEM, SolveOptions(), START.plan)

    assert result.plan.claim.makespan == value_of(START)


def test_an_exception_of_who_listens_to_the_progress_ends_the_solve(
    play: Callable[..., list[object]],
) -> None:
    def listen(news: Progress) -> None:
        raise ValueError("enough")

    log = play(START, START)
    with pytest.raises(ValueError, match="enough"):
        Auto().solve(PROBLEM, SolveOptions(on_progress=listen))

    assert len(log) == 1


def test_a_proof_that_there_is_no_plan_ends_it(play: Callable[..., list[object]]) -> None:
    unknown = replace(START, plan=None, status=SolveStatus.UNKNOWN, reason="stuck")
    never = replace(unknown, status=SolveStatus.INFEASIBLE, reason="3 B short")
    log = play(unknown, never, START)
    result = Auto().solve(PROBLEM, SolveOptions())

    assert len(log) == 2
    assert (result.status, result.reason) == (SolveStatus.INFEASIBLE, "3 B short")


def test_a_member_gets_what_those_before_it_left(play: Callable[..., list[object]]) -> None:
    log = play(START, START)
    Auto().solve(PROBLEM, SolveOptions(time_limit=100.0))

    assert [round(limit) for _, _, limit in log] == [50, 100]


def test_progress_never_goes_back(play: Callable[..., list[object]]) -> None:
    good = replace(shortened(START, 5), bound=3)
    play(good, replace(START, bound=1), replace(START, bound=4))
    told: list[Progress] = []
    Auto().solve(PROBLEM, SolveOptions(on_progress=told.append))

    best = good.plan.claim.makespan
    assert [(p.incumbent, p.bound, p.source) for p in told] == [(best, 3, "m0"), (best, 4, "m2")]


def test_the_gap_asked_for_ends_it(play: Callable[..., list[object]]) -> None:
    log = play(START, START)
    Auto().solve(PROBLEM, SolveOptions(gap=1.0))

    assert len(log) == 1


@pytest.mark.parametrize("quantity", list(OF_ONE_INFERENCE))
def test_members_suit_the_problem(quantity: Quantity) -> None:
    small = replace(PROBLEM, objective=Objective.of(quantity))
    large = chain(star(2, 2_048), layers=STRATEGY.small_for_others // 2 + 1, strips=2)
    large = replace(large, objective=Objective.of(quantity))
    names = [[member.name for member in members_for(each)] for each in (small, large)]

    # Where addresses can be left open, local search with addresses finds nothing shorter.
    makes_short = quantity is Quantity.MAKESPAN
    assert [some[0] for some in names] == ["search", "lns" if makes_short else "search"]
    assert ["cpsat" in some for some in names] == [True, False]
    assert {"lns" in some for some in names} == {quantity is Quantity.MAKESPAN}
    moves_little = quantity in (Quantity.DRAM_TRAFFIC, Quantity.ENERGY)
    assert {"residency" in some for some in names} == {moves_little}
    assert {"peak" in some for some in names} == {quantity is Quantity.PEAK_SPM}
    assert all(members_for(each)[-1].until == 1.0 for each in (small, large))


def test_a_hint_that_beats_all_members_is_the_answer(play: Callable[..., list[object]]) -> None:
    assert START.plan is not None
    play(replace(shortened(START, -5), bound=3, bound_source="a"))
    result = Auto().solve(PROBLEM, SolveOptions(), START.plan)

    assert result.plan.claim.makespan == START.plan.claim.makespan
    assert (result.bound, result.plan.claim.bound) == (3, 3)


def test_a_hint_that_the_checker_rejects_is_no_answer(play: Callable[..., list[object]]) -> None:
    play(START)
    result = Auto().solve(PROBLEM, SolveOptions(), shortened(START, 5).plan)

    assert result.plan.claim.makespan == START.plan.claim.makespan


@pytest.mark.parametrize("quantity", [Quantity.DRAM_TRAFFIC])
@pytest.mark.full
def test_what_several_members_need_is_computed_once(
    quantity: Quantity, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Code is loaded before the seconds are counted, in which all members have to begin.
    Auto().solve(PROBLEM, SolveOptions(time_limit=3.0))
    calls: Counter[str] = Counter()
    checked: list[Plan] = []

    def counted(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **settings: object) -> object:
            calls[f"{name} {arguments[1]}" if name == "bound" else name] += 1
            if name == "check":
                checked.append(arguments[1])
            return function(*arguments, **settings)

        return call

    monkeypatch.setattr(f"{KnownBounds.__module__}.proofs", counted("bound", proofs))
    home = SearchContext.__module__
    monkeypatch.setattr(f"{home}.why_it_cannot_fit", counted("fit", why_it_cannot_fit))
    monkeypatch.setattr(routes_module, "Routes", counted("routes", Routes))
    monkeypatch.setattr("spmilp.checker.check.check", counted("check", check))
    trials = sum(1 for _ in Schedules(replace(PROBLEM, objective=Objective.of(quantity))))
    decide = Schedules._is_new

    def is_new(schedules: Schedules, trial: Trial) -> bool:
        found = decide(schedules, trial)
        calls["trial"] += found
        return found

    monkeypatch.setattr(Schedules, "_is_new", is_new)
    calls.clear()
    # Another machine, as nothing is known of it yet.
    machine = replace(PROBLEM.machine)
    problem = replace(PROBLEM, machine=machine, objective=Objective.of(quantity))

    result = Auto().solve(problem, SolveOptions(time_limit=3.0))

    assert result.plan is not None
    assert result.violations(problem) == ()
    assert len({id(plan) for plan in checked}) == len(checked)
    assert (calls["fit"], calls["routes"]) == (1, 1)
    assert 0 < calls["trial"] <= trials
    assert calls[f"bound {quantity}"] == 1
    assert max(calls[name] for name in calls if name.startswith("bound")) == 1


def test_a_hint_is_the_answer_where_there_is_no_time_for_a_member(
    play: Callable[..., list[object]],
) -> None:
    log = play(BETTER)
    result = Auto().solve(PROBLEM, SolveOptions(time_limit=0.001), START.plan)

    assert log == []
    assert result.violations(PROBLEM) == ()
    assert result.plan.placements is START.plan.placements


def test_without_time_and_without_a_hint_there_is_a_plan_all_the_same() -> None:
    result = Auto().solve(PROBLEM, SolveOptions(time_limit=0.001))

    assert check(PROBLEM, result.plan) == ()
