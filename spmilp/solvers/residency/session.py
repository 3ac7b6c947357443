"""The course of one solve: which orders are looked at, and the best plan so far."""

from collections.abc import Iterator

from spmilp.checker.check import check
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, Result, SolveOptions
from spmilp.solvers.bounds.bound import Bound
from spmilp.solvers.cpsat.clock import Clock
from spmilp.solvers.cpsat.tables import Tables
from spmilp.solvers.list_scheduler.orders import depth_first
from spmilp.solvers.residency.course import Course, course_of, quickest_pools
from spmilp.solvers.residency.model import Model
from spmilp.solvers.residency.plans import NAME, plan_from, shortened
from spmilp.solvers.residency.search import Answer, Limits, run
from spmilp.solvers.residency.visits import Visits

MOST_EACH = 20.0
"""Deterministic time for one model."""


class Session:
    """Looks for the plan that moves the fewest bytes.

    Parameters
    ----------
    start
        A plan to begin with, if there is one, and the bound.
    """

    def __init__(
        self, problem: Problem, options: SolveOptions, clock: Clock, start: Result
    ) -> None:
        self._problem = problem
        self._bound = Bound(start.bound_source, problem.objective.first, start.bound)
        self._options = options
        self._clock = clock
        self._tables = Tables(problem)
        self.plan = start.plan

    def offer(self, plan: Plan) -> bool:
        """Take a valid plan if it is better than the one there is; say whether it was."""
        if self.plan is not None and self._values(plan) >= self._values(self.plan):
            return False
        self.plan = plan
        if self._options.on_progress is not None:
            value = self._values(plan)[0]
            self._options.on_progress(
                Progress(incumbent=value, bound=self._bound.value, source=NAME)
            )
        return True

    def search(self) -> None:
        """Find the best stays of each course."""
        for course in dict.fromkeys(self._courses()):
            if self._is_done():
                return
            self._settle(course)

    def _courses(self) -> Iterator[Course]:
        """Yield orders to begin with: the plan's, and simple ones in its pools."""
        pools = quickest_pools(self._tables)
        if self.plan is not None:
            course = course_of(self._tables, self.plan)
            pools = course.pools
            yield course
        if pools is not None:
            yield Course(tuple(self._problem.topological_order()), pools)
            yield Course(tuple(depth_first(self._problem).tolist()), pools)

    def _settle(self, course: Course) -> None:
        """Find a course's best stays; where these have no addresses, those that have some."""
        if not Visits(self._tables, course).are_possible:
            return
        answer = self._asked(course, None)
        if answer.solution is None:
            return
        found = plan_from(self._tables, answer.solution, self._bound)
        if not isinstance(found, Plan):
            answer = self._asked(course, answer)
            if answer.solution is None:
                return
            found = plan_from(self._tables, answer.solution, self._bound)
        if isinstance(found, Plan) and not check(self._problem, found):
            self.offer(shortened(self._problem, found))

    def _asked(self, course: Course, without_addresses: Answer | None) -> Answer:
        """Ask for something better than the best plan, with addresses if that led nowhere."""
        model = Model(self._tables, course, addresses=without_addresses is not None)
        if without_addresses is not None:
            model.hint(without_addresses.values)
        if self.plan is not None:
            model.improve_on(self.plan)
        answer = run(model, self._limits())
        self._clock.spend(answer.deterministic)
        return answer

    def _limits(self) -> Limits:
        return Limits(
            seconds=self._clock.seconds_until(1.0),
            deterministic=self._clock.deterministic_left(MOST_EACH),
            workers=self._options.workers,
            seed=self._options.seed,
        )

    def _values(self, plan: Plan) -> tuple[int, ...]:
        measures = claimed(plan.claim)
        return tuple(measures.of(quantity) for quantity in self._problem.objective.order)

    def _is_done(self) -> bool:
        if self._clock.is_over():
            return True
        if self.plan is None:
            return False
        value = self._values(self.plan)[0]
        return value - self._bound.value <= self._options.gap * value
