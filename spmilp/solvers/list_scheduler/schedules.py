"""The schedules of the portfolio, each made once for all solvers of a problem.

And a quick evaluation of problems that differ in their tiles, by a few of the rules.
"""

from collections.abc import Iterator, Sequence
from threading import Lock

from spmilp.bounds.best import Bound
from spmilp.errors import Shortage
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.kernels.plan_columns import PlanColumns
from spmilp.solvers.kernels.records import NEVER, Shares
from spmilp.solvers.kernels.serial.extract import columns_of, plan_of
from spmilp.solvers.kernels.serial.run import Runner
from spmilp.solvers.list_scheduler.orders import banded_chains, banded_operators
from spmilp.solvers.list_scheduler.portfolio import Found, Portfolio
from spmilp.solvers.list_scheduler.rules import BANDS_RULES, CHAINS_RULES, EVALUATION_RULES
from spmilp.units import Cycles

MOST_KEPT = 20
ACTIVITIES_KEPT = 400_000
"""Of all schedules whose tables are kept, about; the larger the problem, the fewer schedules."""


class Schedules:
    """What the rules of the portfolio find, one after another.

    A trial is run when it is first asked for; later its schedule is returned again. Several threads
    may ask.

    Parameters
    ----------
    only
        Assignments and orders to be tried instead of the whole portfolio, each as it is known: with
        one memory for each transfer.
    shares
        Schedules with open addresses: the part of each memory that may be filled.
    """

    def __init__(
        self,
        problem: Problem,
        only: Sequence[tuple[str, str]] = (),
        shares: Shares | None = None,
    ) -> None:
        self._problem = problem
        self.runner = Runner(problem, multicasts=not only)
        self._portfolio = Portfolio(problem, self.runner, only, shares=shares)
        self._trials = iter(self._portfolio)
        self._made: list[Found | None] = []
        self._lock = Lock()
        self._plans: dict[Found, Plan] = {}
        self._newest: Found | None = None
        self.kept: list[Found] = []

    @classmethod
    def of(cls, context: SearchContext) -> "Schedules":
        """Return the schedules that all solvers of one problem share."""
        return context.shared(_schedules)

    @property
    def reason(self) -> str:
        """Why the last trial that failed found no schedule."""
        return self._portfolio.reason

    @property
    def shortage(self) -> Shortage | None:
        """The same as data, where it was for want of room."""
        return self._portfolio.shortage

    def __iter__(self) -> Iterator[Found | None]:
        """Yield what each trial found, from the first one on; ``None`` for no schedule."""
        position = 0
        while self._has(position):
            yield self._made[position]
            position += 1

    def plan(self, found: Found, bound: Bound) -> Plan:
        """Return a schedule as :func:`plan_from` does; the best one's plan is made only once."""
        plan = self._plans.get(found)
        if plan is None or plan.claim.bound != bound.value:
            plan = plan_from(self._problem, found, bound, "list")
            if found in self.kept[:1]:
                self._plans = {found: plan}
        return plan

    def _has(self, position: int) -> bool:
        """Say whether there is a trial at a position; run it if it was not run before."""
        with self._lock:
            if position == len(self._made):
                for found in self._trials:
                    self._made.append(found)
                    if found is not None:
                        self._keep(found)
                    break
            return position < len(self._made)

    def _keep(self, found: Found) -> None:
        """Keep the tables of the best schedule of each rule; of two that score the same, of one.

        Those of the newest one are kept until there is another.
        """
        before = [self._newest, *self.kept]
        self._newest = found
        if self._is_worth_keeping(found):
            others = [one for one in self.kept if not one.trial.is_like(found.trial)]
            self.kept = sorted([*others, found], key=lambda one: one.score)
            activities = found.state.tasks.size + len(found.state.made_transfers())
            del self.kept[max(2, min(MOST_KEPT, ACTIVITIES_KEPT // activities)) :]
        for one in before:
            if one is not None and one not in self.kept:
                one.release()

    def _is_worth_keeping(self, found: Found) -> bool:
        if any(found.score == other.score for other in self.kept):
            return False
        alike = (one for one in self.kept if one.trial.is_like(found.trial))
        return all(found.score < one.score for one in alike)


def plan_from(
    problem: Problem, found: Found, bound: Bound, solver: str, columns: PlanColumns | None = None
) -> Plan:
    """Return a schedule as a plan that says by which rules it was made.

    Parameters
    ----------
    columns
        What was made of it, in place of the schedule itself.

    Raises
    ------
    DoesNotFitError
        If a bounded DRAM is too small for the tensors and what is spilled to it.
    """
    trial = found.trial
    settings = (("assignment", trial.assignment), ("order", trial.order))
    weights = ((name, str(value)) for name, value in trial.weights._asdict().items())
    alone = () if trial.multicasts else (("multicasts", "no"),)
    if columns is None:
        columns = columns_of(problem, found.state)
    return plan_of(problem, columns, bound, solver, (*settings, *weights, *alone))


def _schedules(context: SearchContext) -> Schedules:
    return Schedules(context.problem)


Rule = tuple[str, str]
"""An assignment and an order."""


def least_value(problem: Problem) -> int | None:
    """Return the least value of the first quantity in the schedules by which tiles are evaluated.

    ``None`` without a schedule.
    """
    return min((found.score[0] for found in schedules_by(problem)), default=None)


def schedules_by(
    problem: Problem,
    rules: Sequence[Rule] = EVALUATION_RULES,
    latest: Cycles = NEVER,
    seconds: float | None = None,
    shares: Shares | None = None,
) -> Iterator[Found]:
    """Yield what some of the rules find, one after another.

    Parameters
    ----------
    latest
        A schedule that is sure to take more cycles is given up, and no other is made.
    seconds
        The same for one that takes longer to make; ``None`` for no limit.
    shares
        Schedules with open addresses: the part of each memory that may be filled.
    """
    portfolio = Portfolio(problem, Runner(problem), rules, latest, seconds, shares)
    for found in portfolio:
        if found is not None:
            yield found
        elif portfolio.was_late:
            return


def promising_schedules(
    problem: Problem,
    rules: Sequence[Rule],
    latest: Cycles,
    seconds: float | None = None,
    shares: Shares | None = None,
) -> Iterator[Found]:
    """Yield what :func:`schedules_by` does; where there are bands or chains, by their rules first.

    What these and others are worth for other tilings says nothing of them there, and either are
    asked though the schedules of the others are given up.
    """
    if banded_operators(problem):
        first = CHAINS_RULES if banded_chains(problem) else BANDS_RULES
        yield from schedules_by(problem, first, latest, seconds, shares)
        rules = [rule for rule in rules if rule not in BANDS_RULES]
    if rules:
        yield from schedules_by(problem, rules, latest, seconds, shares)
