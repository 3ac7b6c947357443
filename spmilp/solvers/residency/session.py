"""One solve: which orders are looked at, and the best plan so far."""

from collections.abc import Iterator

from spmilp.bounds.bound import Bound
from spmilp.plan.plan import Plan
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.incumbent import Incumbent
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

    def __init__(self, context: SearchContext, start: SolverResult) -> None:
        self._context = context
        self._problem = problem = context.problem
        self._options = context.options
        self._clock = context.clock
        bound = Bound(start.bound_source, problem.objective.first, start.bound)
        self.incumbent = Incumbent(context, bound, NAME)
        if start.plan is not None:
            self.incumbent.offer(start.plan)
        self._tables = ProblemTables(problem)
        self._course: Course | None = None
        self._packs = True

    def search(self) -> None:
        """Find the best stays of some courses, then change the best of them window by window."""
        courses = tuple(dict.fromkeys(self._courses()))
        for course in courses:
            if not self._is_done():
                self._settle(fixed(course), MOST_EACH, COURSES)
        for course in courses[:1]:
            self._step_by_step(self._course or course)
        seconds, plan = self._clock.seconds_left(), self.incumbent.plan
        if self._course is not None and plan is not None and seconds != 0.0:
            self.incumbent.offer(packed_anew(self._context, plan, seconds))

    def _courses(self) -> Iterator[Course]:
        """Yield orders to begin with: the plan's, and simple ones in its pools."""
        pools = quickest_pools(self._tables)
        if self.incumbent.plan is not None:
            course = course_of(self._tables, self.incumbent.plan)
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
        if self.incumbent.value is not None:
            model.limit(self.incumbent.value - 1)
        limits = Limits(
            seconds=self._clock.seconds_left(share),
            deterministic=self._clock.deterministic_left(deterministic),
            workers=self._options.workers,
            seed=self._options.seed,
        )
        answer = run(model, limits, self._context.reports)
        self._clock.spend(answer.deterministic)
        return answer

    def _takes(self, solution: Solution) -> bool:
        """Make a solution a plan, and say whether it has become a valid one."""
        found = plan_from(self._tables, solution, self.incumbent.bound)
        if not isinstance(found, Plan) or not self._context.accepts(found):
            return False
        self._course = solution.course
        self.incumbent.offer(shortened(self._context, found))
        return True

    def _is_done(self) -> bool:
        return self._clock.is_over(WINDOWS) or self.incumbent.is_enough
