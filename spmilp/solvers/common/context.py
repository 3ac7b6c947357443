"""One solve: its limits, what all its solvers compute only once, and what is reported."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import Any, TypeVar

from spmilp.bounds.best import Bound, Proof, fast_bound, proofs
from spmilp.cached import cached
from spmilp.checker.check import Verdict
from spmilp.checker.violation import Violation
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.processes import stoppably
from spmilp.solvers.base import Progress, SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.clock import Clock, Pace, Step
from spmilp.solvers.common.fit import why_it_cannot_fit

HEARTBEAT = 0.1
"""Seconds after which the thread that waits looks whether it should go on."""

R = TypeVar("R")


class Reports:
    """Passes on each better value and each better bound, together with the best of the other.

    A value or bound that is no better than before is dropped. What other threads report waits until
    the thread that began the solve attends to it. ``listener_failed`` says that the one who is told
    has raised an exception, which is to end the solve.
    """

    listener_failed = False

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self._on_progress = on_progress
        self._incumbent: int | None = None
        self._bound = -1
        self._thread = get_ident()
        self._waiting: SimpleQueue[tuple[int | None, int, str] | None] = SimpleQueue()

    def report(self, value: int | None, bound: int, source: str) -> None:
        """Tell the user of a better value of the first quantity, or of a better bound."""
        if get_ident() != self._thread:
            self._waiting.put((value, bound, source))
            return
        is_better = value is not None and (self._incumbent is None or value < self._incumbent)
        if is_better:
            self._incumbent = value
        is_news = is_better or bound > self._bound
        self._bound = max(self._bound, bound)
        if is_news and self._on_progress is not None:
            news = Progress(incumbent=self._incumbent, bound=self._bound, source=source)
            try:
                self._on_progress(news)
            except Exception:
                self.listener_failed = True
                raise

    def finish(self, work: Callable[[], R], stop: Callable[[], None]) -> tuple[R, bool]:
        """Do some work in another thread and pass on its reports; an interrupt asks it to stop.

        Returns what the work returns, and whether an interrupt came.
        """

        def pass_on(seconds: float = HEARTBEAT) -> None:
            with suppress(Empty):
                while True:
                    report = self._waiting.get(block=seconds > 0, timeout=seconds)
                    seconds = 0.0
                    if report is not None:
                        self.report(*report)

        found = stoppably(work, stop, pass_on, lambda: self._waiting.put(None))
        pass_on(0.0)
        return found


SHARE = 0.3
"""At most this share of the time that a solver has left goes to a bound."""


class KnownBounds:
    """The best bound on a quantity so far."""

    def __init__(self, problem: Problem, quantity: Quantity) -> None:
        self._problem = problem
        self._quantity = quantity
        self._left = proofs(problem, quantity)
        self._next: Proof | None = next(self._left)
        self._best: Bound | None = None

    def within(self, clock: Clock) -> Bound:
        """Return the best bound that is known when the next one would take too long.

        That is, more than a share of what is left. Without a time limit it is the best of all.
        Where there is no time, it is one that takes next to none.
        """
        reads = reads_of(self._problem)
        while self._next is not None:
            step = Step.HEADS if self._next.is_slow else Step.BOUND
            if not clock.has_seconds(clock.pace.seconds(step, reads) / SHARE):
                break
            with clock.pace.measured(step, reads):
                self._take(self._next)
        return self.fast

    @property
    def fast(self) -> Bound:
        """The best bound that is known, at least one that takes next to no time."""
        if self._best is not None:
            return self._best
        if self._quantity is self._problem.objective.first:
            return self._at_once
        if self._next is not None:
            self._take(self._next)
        return self._best or Bound("zero", self._quantity, 0)

    @cached_property
    def _at_once(self) -> Bound:
        return fast_bound(self._problem)

    def _take(self, proof: Proof) -> None:
        """Compute a bound; the next one is that behind it."""
        self._next, found = next(self._left, None), proof.bound()
        if self._best is None or found.value > self._best.value:
            self._best = found


T = TypeVar("T")

VERDICTS_KEPT = 6
"""Verdicts of the checker that are kept, for the hint and the best plan are asked for again."""


class SearchContext:
    """What a solver works with: the problem, its limits, a hint, and what is known already.

    Bounds, the fit test, the list scheduler's schedules and the checker's verdicts belong to the
    problem: they are computed when they are first asked for, and the contexts of all members of a
    portfolio (:meth:`member`) share them. The ``hint`` is a plan that is known before, valid or
    not. The ``clock`` is of this solver; ``reports`` are what is told to the user, and
    ``interrupted`` says whether a ``KeyboardInterrupt`` has cut the search short.
    """

    def __init__(self, problem: Problem, options: SolveOptions, hint: Plan | None = None) -> None:
        self.problem = problem
        self.options = options
        self.clock = Clock(options.time_limit, options.pace)
        self.hint = hint
        self._known = _Known(problem, options.verdicts)
        self.reports = Reports(options.on_progress)
        self.interrupted = False
        self.reserve_for(hint)

    def reserve_for(self, plan: Plan | None, more: float = 0.0) -> None:
        """Let the search end soon enough to make a plan of such a size, check it and write it.

        And ``more`` seconds before.
        """
        rows = 2 * self.reads if plan is None else rows_of(plan)
        self.clock.reserve(self.clock.pace.seconds_to_finish(rows) + more)

    @cached_property
    def reads(self) -> int:
        """Number of reads of all tasks."""
        return reads_of(self.problem)

    def member(self, time_limit: float | None, hint: Plan | None) -> "SearchContext":
        """Return the context of a solver that takes part in this solve, with limits of its own.

        What is needed when all have ended is no part of its time.
        """
        options = replace(self.options, time_limit=time_limit)
        other = SearchContext(self.problem, options, hint)
        other.clock = Clock(time_limit, options.pace)
        other._known = self._known
        other.reports = self.reports
        return other

    def shared(self, make: Callable[["SearchContext"], T]) -> T:
        """Return what ``make`` returned when a context of this solve was first passed to it."""
        return self._known.once(make, lambda: make(self))

    @property
    def misfit(self) -> str:
        """Why some task fits no memory of a core that can run it; empty when all fit."""
        return self._known.once("misfit", lambda: why_it_cannot_fit(self.problem))

    @property
    def bound(self) -> Bound:
        """The best bound on the first quantity that takes no search, as far as there is time."""
        return self.bound_on(self.problem.objective.first)

    @property
    def fast_bound(self) -> Bound:
        """The best bound that is known, at least one that takes next to no time."""
        return self._bounds_on(self.problem.objective.first).fast

    def bound_on(self, quantity: Quantity) -> Bound:
        """Return the best bound on a quantity that takes no search, as far as there is time."""
        return self._bounds_on(quantity).within(self.clock)

    def _bounds_on(self, quantity: Quantity) -> KnownBounds:
        return self._known.once(quantity, lambda: KnownBounds(self.problem, quantity))

    @property
    def valid_hint(self) -> Plan | None:
        """The hint, if the checker accepts it."""
        return self.hint if self.hint is not None and self.accepts(self.hint) else None

    def accepts(self, plan: Plan) -> bool:
        """Say whether the checker accepts a plan; the same plan is checked only once."""
        return not self.violations(plan)

    def violations(self, plan: Plan) -> tuple[Violation, ...]:
        """Return what the checker finds wrong with a plan; the same one is checked only once."""
        return self._known.verdict_on(plan, self.clock.pace).violations

    def values(self, plan: Plan) -> tuple[int, ...]:
        """Return the quantities that a plan claims, in the objective's order; less is better."""
        return tuple(plan.claim.of(quantity) for quantity in self.problem.objective.order)

    def is_enough(self, value: int, bound: int) -> bool:
        """Say whether the first quantity is as near to a bound as was asked for."""
        return value - bound <= self.options.gap * value

    def report(self, value: int | None, bound: int, source: str) -> None:
        """Tell the user of a better value of the first quantity, or of a better bound."""
        self.reports.report(value, bound, source)

    @contextmanager
    def until_interrupted(self, has_plan: Callable[[], bool]) -> Iterator[None]:
        """Let an interrupt end what is inside, and note that; without a plan it passes on."""
        try:
            yield
        except KeyboardInterrupt:
            if not has_plan():
                raise
            self.interrupted = True

    def infeasible(self, reason: str, bound: Bound | None = None) -> SolverResult:
        """Return that no plan exists."""
        return self._without_plan(SolveStatus.INFEASIBLE, reason, bound)

    def unknown(self, reason: str, bound: Bound | None = None) -> SolverResult:
        """Return that no plan was found."""
        return self._without_plan(SolveStatus.UNKNOWN, reason, bound)

    def found(
        self,
        plan: Plan,
        bound: Bound | None = None,
        solver: str | None = None,
        options: tuple[tuple[str, str], ...] = (),
    ) -> SolverResult:
        """Return a plan as :meth:`labelled` makes it, with the checker's verdict if it has one."""
        bound = bound or self.bound
        plan = self.labelled(plan, bound, solver, options)
        is_optimal, is_known = self.values(plan)[0] == bound.value, self._known.is_quick(plan)
        return SolverResult(
            status=SolveStatus.OPTIMAL if is_optimal else SolveStatus.FEASIBLE,
            plan=plan,
            bound=bound.value,
            bound_source=bound.name,
            interrupted=self.interrupted,
            verdict=self._known.verdict_on(plan, self.clock.pace) if is_known else None,
        )

    def labelled(
        self,
        plan: Plan,
        bound: Bound | None = None,
        solver: str | None = None,
        options: tuple[tuple[str, str], ...] = (),
    ) -> Plan:
        """Return a plan with the claim of a bound, by default the best one without search.

        A plan that has all this already stays the same object, and need not be checked again.
        ``solver`` and ``options`` are what it is to say of how it was made; without a name it stays
        as it is.
        """
        bound = bound or self.bound
        if (plan.claim.bound, plan.claim.bound_source) != (bound.value, bound.name):
            claim = replace(plan.claim, bound=bound.value, bound_source=bound.name)
            plan = replace(plan, claim=claim)
        if solver is not None and (plan.solver, plan.options) != (solver, options):
            plan = replace(plan, solver=solver, options=options)
        return plan

    def better(self, one: SolverResult, other: SolverResult) -> SolverResult:
        """Return the better plan of two results, the first if they are equal, and the better bound.

        Without a plan it is the one that proves that there is none, or else the first.
        """
        high = other if other.bound > one.bound else one
        interrupted = one.interrupted or other.interrupted
        plans = [result.plan for result in (one, other) if result.plan is not None]
        if plans:
            bound = Bound(high.bound_source, self.problem.objective.first, high.bound)
            return replace(self.found(min(plans, key=self.values), bound), interrupted=interrupted)
        best = other if other.status is SolveStatus.INFEASIBLE else one
        return replace(
            best, bound=high.bound, bound_source=high.bound_source, interrupted=interrupted
        )

    def _without_plan(self, status: SolveStatus, reason: str, bound: Bound | None) -> SolverResult:
        bound = bound or self.bound
        return SolverResult(
            status=status, plan=None, bound=bound.value, bound_source=bound.name, reason=reason
        )


@cached
def reads_of(problem: Problem) -> int:
    """Return the reads of all tasks, to which the time of a schedule is in proportion."""
    return sum(len(task.reads) for task in problem.tasks)


def rows_of(plan: Plan) -> int:
    """Return the rows of a plan's tables, to which the time that it takes is in proportion."""
    return len(plan.placements) + len(plan.residencies) + len(plan.transfers)


class _Known:
    """What is known of one problem."""

    def __init__(self, problem: Problem, verdicts: Iterable[Verdict]) -> None:
        self._problem = problem
        self._values: dict[Hashable, Any] = {}
        # Within pins a solver has another problem than the one that a plan was checked against.
        self._verdicts = [one for one in verdicts if one.problem is problem]

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made under a key, or make it."""
        if key not in self._values:
            self._values[key] = make()
        found: T = self._values[key]
        return found

    def is_quick(self, plan: Plan) -> bool:
        """Say whether at most the claim of a plan is still to be checked."""
        return any(one.plan is plan or one.holds_but_for_the_claim(plan) for one in self._verdicts)

    def verdict_on(self, plan: Plan, pace: Pace) -> Verdict:
        """Return the checker's verdict on this very plan."""
        for known in self._verdicts:
            if known.plan is plan:
                return known
        with pace.measured(Step.CHECK, 0 if self.is_quick(plan) else rows_of(plan)):
            verdict = Verdict.on(self._problem, plan, self._verdicts)
        self._verdicts = [*self._verdicts, verdict][-VERDICTS_KEPT:]
        return verdict
