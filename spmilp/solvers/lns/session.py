"""One run of the search: the best plan so far, and what is done to it."""

from spmilp.checker.check import check
from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, SolveOptions
from spmilp.solvers.lns.build import plan_of
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.ground import ground_of
from spmilp.solvers.lns.loosened import Filling, loosened
from spmilp.solvers.lns.standing import Standing, compacted
from spmilp.units import Cycles


class Session:
    """Improves a valid plan until the time is over, the gap is reached, or nothing is left to try.

    Parameters
    ----------
    plan
        A plan that the checker accepts; no worse one is returned.
    bound
        Proven lower bound on the makespan, in cycles.
    """

    def __init__(
        self, problem: Problem, plan: Plan, bound: Cycles, options: SolveOptions, clock: Clock
    ) -> None:
        self._problem = problem
        self._plan = plan
        self._bound = bound
        self._options = options
        self._clock = clock
        self._best: Standing | None = None

    def search(self) -> None:
        """Improve the plan."""
        ground, draft, start = ground_of(self._problem, self._plan)
        self._ground = ground
        standing = compacted(ground, draft, start)
        self._keep(standing, "compacted")
        filling = Filling(ground)
        for found in loosened(ground, standing, filling):
            if found is not None:
                self._keep(found, "loosened")
            if self._is_done():
                return

    def plan(self) -> Plan:
        """Return the best plan that the checker accepts."""
        best = self._best
        if best is None or best.makespan >= self._plan.claim.makespan:
            return self._plan
        try:
            plan = plan_of(
                self._problem,
                self._plan,
                best.draft,
                best.start,
                dram_is_free=self._ground.dram_is_free,
            )
        except DoesNotFitError:
            return self._plan
        return self._plan if check(self._problem, plan) else plan

    def _keep(self, found: Standing, source: str) -> None:
        known = self._plan.claim.makespan if self._best is None else self._best.makespan
        if self._best is not None and found.makespan >= known:
            return
        self._best = found
        if found.makespan < known and self._options.on_progress is not None:
            self._options.on_progress(
                Progress(incumbent=found.makespan, bound=self._bound, source=f"lns {source}")
            )

    def _is_done(self) -> bool:
        value = self._plan.claim.makespan if self._best is None else self._best.makespan
        return self._clock.is_over() or value - self._bound <= self._options.gap * value
