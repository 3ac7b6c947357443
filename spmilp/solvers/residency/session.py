"""One solve: which orders are looked at, and the best plan so far."""

from collections.abc import Iterator

from spmilp.bounds.bound import Bound
from spmilp.checker.check import check
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, SolveOptions, SolverResult
from spmilp.solvers.cpsat.clock import Clock
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.list_scheduler.orders import depth_first
from spmilp.solvers.residency.course import Course, course_of, quickest_pools
from spmilp.solvers.residency.decisions import Solution
from spmilp.solvers.residency.model import Model
from spmilp.solvers.residency.plans import NAME, packed_anew, plan_from, shortened
from spmilp.solvers.residency.scope import Scope, fixed
from spmilp.solvers.residency.search import Answer, Limits, run
from spmilp.solvers.residency.visits import Visits
from spmilp.solvers.residency.windows import Windows

COURSES, WINDOWS = 0.5, 0.95
"""Shares of the time limit by which the orders to begin with, and windows, have been looked at."""

MOST_EACH = 20.0
"""Deterministic time for each of them."""

MOST_VISITS = 12_000
"""In a model; it takes a second or two to write down."""


class Session:
    """Looks for the plan that moves the fewest bytes.

    Parameters
    ----------
    start
        A plan to begin with, if there is one, and the bound.
    """

    def __init__(
        self, problem: Problem, options: SolveOptions, clock: Clock, start: SolverResult
    ) -> None:
        self._problem = problem
        self._bound = Bound(start.bound_source, problem.objective.first, start.bound)
        self._options = options
        self._clock = clock
        self._tables = ProblemTables(problem)
        self._course: Course | None = None
        self._packs = True
        self.plan = start.plan

    def search(self) -> None:
        """Find the best stays of some courses, then change the best of them window by window."""
        courses = tuple(dict.fromkeys(self._courses()))
        for course in courses:
            if not self._is_done():
                self._settle(fixed(course), MOST_EACH, COURSES)
        for course in courses[:1]:
            self._step_by_step(self._course or course)
        seconds = self._clock.seconds_until(1.0)
        if self._course is not None and self.plan is not None and seconds != 0.0:
            self._offer(packed_anew(self._problem, self.plan, seconds))

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

    def _step_by_step(self, course: Course) -> None:
        """Let tasks change places, until nothing is left to try or windows grow too large."""
        windows = Windows(self._tables, self._options.seed)
        while not self._is_done():
            scope = windows.next(course)
            if scope is None:
                return
            is_complete = self._settle(scope, windows.limit, WINDOWS)
            if is_complete is None:
                return
            has_gained = self._course is not None and self._course is not course
            windows.learn(has_gained=has_gained, is_complete=is_complete)
            course = self._course or course

    def _settle(self, scope: Scope, deterministic: float, share: float) -> bool | None:
        """Find a scope's best stays; where these have no addresses, those that have some.

        Once some had none, addresses are in the model from the beginning.

        Returns
        -------
        bool or None
            Whether the search came to its end; ``None`` where the scope is too large for one.
        """
        visits = Visits(self._tables, scope)
        if visits.count > MOST_VISITS:
            return None
        model = Model(self._tables, scope, visits, addresses=not self._packs)
        answer = self._ask(model, deterministic, share)
        if answer.solution is not None and not self._takes(answer.solution) and self._packs:
            self._packs = False
            model = Model(self._tables, scope, visits, addresses=True)
            model.hint(answer.values)
            answer = self._ask(model, deterministic, share)
            if answer.solution is not None:
                self._takes(answer.solution)
        return answer.complete

    def _ask(self, model: Model, deterministic: float, share: float) -> Answer:
        """Ask for something better than the best plan."""
        if self.plan is not None:
            model.limit(self._values(self.plan)[0] - 1)
        limits = Limits(
            seconds=self._clock.seconds_until(share),
            deterministic=self._clock.deterministic_left(deterministic),
            workers=self._options.workers,
            seed=self._options.seed,
        )
        answer = run(model, limits)
        self._clock.spend(answer.deterministic)
        return answer

    def _takes(self, solution: Solution) -> bool:
        """Make a solution a plan, and say whether it has become a valid one."""
        found = plan_from(self._tables, solution, self._bound)
        if not isinstance(found, Plan) or check(self._problem, found):
            return False
        self._course = solution.course
        self._offer(shortened(self._problem, found))
        return True

    def _offer(self, plan: Plan) -> None:
        """Take a plan if it is better than the one there is."""
        if self.plan is not None and self._values(plan) >= self._values(self.plan):
            return
        self.plan = plan
        if self._options.on_progress is not None:
            value = self._values(plan)[0]
            self._options.on_progress(
                Progress(incumbent=value, bound=self._bound.value, source=NAME)
            )

    def _values(self, plan: Plan) -> tuple[int, ...]:
        measures = claimed(plan.claim)
        return tuple(measures.of(quantity) for quantity in self._problem.objective.order)

    def _is_done(self) -> bool:
        if self._clock.is_over(WINDOWS):
            return True
        if self.plan is None:
            return False
        value = self._values(self.plan)[0]
        return value - self._bound.value <= self._options.gap * value
