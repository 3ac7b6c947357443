"""Large-neighbourhood search as a solver: initial solutions, then steps from the best of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.improve.steps import ReassignmentSteps
from spmilp.solvers.justify.context import context_of, plan_of
from spmilp.solvers.justify.repacking import Repacking, justified
from spmilp.solvers.justify.schedule import TimedSchedule
from spmilp.solvers.justify.transfer_options import OptionTables
from spmilp.solvers.schedule.kernels.extract import can_be_open
from spmilp.solvers.schedule.kernels.plan_columns import PlanColumns
from spmilp.solvers.schedule.kernels.records import NEVER
from spmilp.solvers.schedule.portfolio import Found, Schedules, plan_from
from spmilp.solvers.schedule.solver import ListScheduler
from spmilp.units import Cycles

NAME = "lns"

LIST_SHARE = 0.2
"""Largest share of the time for the list scheduler."""

FIRST_ROUNDS = 2
"""Double justifications of each initial solution, before one is chosen."""

SMALL = 150
"""With at most so many tasks, plans of the list scheduler are initial solutions, too."""

SHARE_OF_OPEN = 0.1
"""Largest share of the time for the list scheduler's schedules with open addresses."""

SHARE_OF_CHOICE, SHARE_OF_OPEN_CHOICE = 0.45, 0.2
"""Shares of the time by which an initial solution is chosen. The second holds where the first plan
was justified with open addresses before: then others are seldom better."""

ACTIVITIES_MOVED, MOST_STEPS = 500_000, 50
"""Without a time limit there are so many steps that about so many activities are moved."""

WORTH_PACKING = 0.001
"""Share of the makespan to be saved with open addresses before addresses are looked for."""

PATIENCE = 12
"""Steps without any gain before addresses are looked for, for less."""


def in_turn(kept: Sequence[Found]) -> Iterator[Found]:
    """Yield the best schedule of each assignment, then the second of each, and so on."""
    rank: Counter[tuple[str, bool, int | None]] = Counter()
    order: list[tuple[int, int]] = []
    for position, found in enumerate(kept):
        trial = found.trial
        family = trial.assignment, trial.multicasts, trial.cores
        order.append((rank[family], position))
        rank[family] += 1
    for _, position in sorted(order):
        yield kept[position]


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A plan's schedule with addresses, and how short it becomes with all addresses open.

    A schedule of the list scheduler with open addresses has none yet: ``addressed`` is ``None``.
    """

    work: Repacking
    addressed: TimedSchedule | None
    opened: TimedSchedule

    def with_addresses(self, found: TimedSchedule) -> "Candidate":
        """Return the same with another schedule that has addresses."""
        return replace(self, addressed=found, opened=found)


class Search:
    """Looks for a plan of the least makespan until the time is over or nothing is left to try.

    Initial solutions are the hint, and the best schedule of each of the list scheduler's rules. The
    makespan of a schedule does not say how short it becomes in the end: on networks with tight
    memory, one that is a tenth longer than the best at first may be a tenth shorter then.
    """

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        self._clock = context.clock
        self._hint = context.valid_hint
        self._bound = context.bound
        self._schedules = Schedules.of(context)
        self._begins_open = can_be_open(context.problem)
        self._is_small = len(context.problem.tasks) <= SMALL
        self._first: Plan | None = None
        self._reported: Cycles | None = None
        self._best: Candidate | None = None

    @property
    def has_plan(self) -> bool:
        """Whether anything has been found."""
        return self._reported is not None

    def run(self) -> None:
        """Choose between the initial solutions, and improve the best."""
        if self._hint is not None:
            self._report(self._hint.claim.makespan, "hint")
        if self._hint is None or not self._begins_open or self._is_small:
            for found in self._schedules:
                if found is not None:
                    self._report(found.score[0], "list")
                    if self._is_done():
                        return
                if self._schedules.kept and self._clock.is_over(LIST_SHARE):
                    break
        for candidate in sorted(self._candidates(), key=lambda one: one.opened.makespan):
            promises_nothing = candidate.opened.makespan >= self._makespan()
            if self._is_done() or (promises_nothing and candidate is not self._best):
                break
            self._repack(candidate)
        if self._best is not None:
            self._step_by_step(self._best)

    def result(self) -> SolverResult:
        """Return the best plan that the checker accepts."""
        if self._best is not None:
            plan: Plan | None = self._plan_of(self._best)
        else:
            # The list scheduler may have ended the search: a hint is then no better than its plans.
            hints = [] if self._hint is None else [self._hint]
            plans = (*hints, *self._list_plans())
            plan = min(plans, key=self._context.values, default=None)
        if plan is None:
            return self._context.unknown(self._schedules.reason)
        return self._context.found(plan, solver=NAME)

    def _plan_of(self, best: Candidate) -> Plan:
        """Return the plan of a schedule; the one that it was made from where that is not valid.

        Where that was a schedule with open addresses, it is the first plan.
        """
        context, timed = best.work.context, best.addressed
        if context.origin is None:
            context = replace(context, origin=self._first)
        if timed is None:
            return context.plan
        try:
            plan = self._context.labelled(plan_of(context, timed), solver=NAME)
        except DoesNotFitError:
            return context.plan
        return plan if self._context.accepts(plan) else context.plan

    def _candidates(self) -> list[Candidate]:
        """Return what the initial solutions promise; each is justified and offered."""
        found: list[Candidate] = []
        share = SHARE_OF_OPEN_CHOICE if self._begins_open else SHARE_OF_CHOICE
        options: OptionTables | None = None
        for decisions in self._decisions_to_begin_with():
            if found and (self._is_done() or self._clock.is_over(share)):
                break
            context, first = context_of(self._context.problem, decisions, options)
            options, work = context.options, Repacking(context, self._clock)
            addressed = justified(context, first) if isinstance(decisions, Plan) else None
            opened = work.opened(addressed or first, FIRST_ROUNDS)
            candidate = Candidate(work, addressed, opened)
            self._offer(candidate, "justified")
            found.append(candidate)
        return found

    def _decisions_to_begin_with(self) -> Iterator[Plan | PlanColumns]:
        """Yield plans, and schedules with open addresses; of a large problem only one plan then."""
        for plan in self._plans_to_begin_with():
            self._first = self._first or plan
            yield plan
            if self._begins_open and not self._is_small:
                break
        if self._begins_open:
            for _ in self._schedules:
                if self._clock.is_over(SHARE_OF_OPEN):
                    break
            for found in in_turn(self._schedules.kept):
                yield found.columns

    def _plans_to_begin_with(self) -> Iterator[Plan]:
        """Yield the hint, and the list scheduler's plans; first the hint unless those are better.

        So a bad hint takes the place of something better only where it leads to less than that.
        """
        plans, hint = self._list_plans(), self._hint
        best = next(plans, None)
        if hint is None or best is None:
            yield from (plan for plan in (hint, best) if plan is not None)
        else:
            yield from sorted((hint, best), key=lambda plan: plan.claim.makespan)
        yield from plans

    def _list_plans(self) -> Iterator[Plan]:
        """Yield the plans that were kept: the shortest of each assignment, then the next ones."""
        for found in in_turn(self._schedules.kept):
            with suppress(DoesNotFitError):
                yield plan_from(self._context.problem, found, self._bound, "list")

    def _repack(self, one: Candidate) -> None:
        for found in one.work.repacked(one.opened, self._makespan()):
            self._offer(one.with_addresses(found), "repacked")
            if self._is_done():
                return

    def _step_by_step(self, best: Candidate) -> None:
        """Go on from the best plan with open addresses; now and then look for addresses."""
        work = best.work
        steps = ReassignmentSteps(work, self._clock, self._context.options.seed)
        current = work.opened(best.addressed or best.opened)
        left = min(MOST_STEPS, ACTIVITIES_MOVED // current.start.size)
        idle = 0
        while not self._is_done() and (self._clock.is_limited or left > 0):
            left -= 1
            before = current.makespan
            current = steps.improve(current)
            idle = 0 if current.makespan < before else idle + 1
            gain = self._makespan() - current.makespan
            is_due = idle % PATIENCE == PATIENCE - 1 or left == 0
            if gain > self._makespan() * WORTH_PACKING or (gain > 0 and is_due):
                found = work.settled(current, self._makespan())
                if found is not None:
                    self._offer(best.with_addresses(found), "improved")
                    current = found
                elif self._best is not None:
                    current = self._best.addressed or current
            elif is_due:
                work.fill_more()

    def _offer(self, candidate: Candidate, source: str) -> None:
        timed = candidate.addressed
        if timed is not None and timed.makespan < self._makespan():
            self._best = candidate
            self._report(timed.makespan, source)

    def _makespan(self) -> Cycles:
        best = None if self._best is None else self._best.addressed
        return NEVER if best is None else best.makespan

    def _report(self, makespan: Cycles, source: str) -> None:
        if self._reported is None or makespan < self._reported:
            self._reported = makespan
            self._context.report(makespan, self._bound.value, f"{NAME} {source}")

    def _is_done(self) -> bool:
        if self._clock.is_over():
            return True
        reported = self._reported
        return reported is not None and self._context.is_enough(reported, self._bound.value)


class LnsSolver(Solver):
    """Improves the makespan of plans by their partial order.

    The initial solutions are a valid hint and the schedules of the list scheduler. No plan is
    returned that is worse than any of them, or that the checker does not accept. Only the makespan
    is made smaller; where it is not the first objective, the hint or the list scheduler's plan is
    the answer.
    """

    name = "lns"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found."""
        if context.problem.objective.first is not Quantity.MAKESPAN:
            found, hint = ListScheduler().search(context), context.valid_hint
            return found if hint is None else context.better(found, context.found(hint))
        if context.misfit:
            return context.infeasible(context.misfit)
        search = Search(context)
        with context.until_interrupted(lambda: search.has_plan):
            search.run()
        return search.result()
