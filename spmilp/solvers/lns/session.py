"""One run of the search: the best plan so far, and what is done to it."""

from dataclasses import dataclass

from spmilp.bounds.bound import Bound
from spmilp.checker.check import check
from spmilp.errors import DoesNotFitError
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, SolveOptions
from spmilp.solvers.lns.build import plan_of
from spmilp.solvers.lns.clock import Clock
from spmilp.solvers.lns.copies import Copies, copies_of
from spmilp.solvers.lns.ground import Ground, ground_of
from spmilp.solvers.lns.helpers import Helpers
from spmilp.solvers.lns.loosened import TRIES_AT_ONCE, Filling, addressed, loosened, opened
from spmilp.solvers.lns.options import LnsOptions
from spmilp.solvers.lns.standing import Standing, compacted
from spmilp.solvers.lns.starts import Starts
from spmilp.solvers.lns.steps import Steps
from spmilp.units import Cycles

SECONDS_TO_FINISH = 1e-4
"""For each activity: to build the plan and to check it."""

FIRST_ROUNDS = 2
"""Passes for each start, before one is chosen."""

SHARE_OF_CHOICE = 0.45
"""Of the time, at most, until one start is chosen."""

ACTIVITIES_MOVED, MOST_STEPS = 500_000, 50
"""Without a time limit there are so many steps that about so many activities are moved."""

WORTH_PACKING = 0.001
"""Share of the makespan that open times have to save before addresses are looked for."""

PATIENCE = 12
"""Steps without any gain before addresses are looked for, for less."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A start: its plan compacted, and how short it becomes with all addresses open."""

    ground: Ground
    standing: Standing
    loose: Standing
    filling: Filling


class Session:
    """Looks for a plan of the least makespan until the time is over or nothing is left to try.

    Parameters
    ----------
    bound
        Proven lower bound on the makespan.
    hint
        A plan that the checker accepts, or ``None``.
    """

    def __init__(
        self,
        problem: Problem,
        bound: Bound,
        options: SolveOptions,
        clock: Clock,
        hint: Plan | None,
        settings: LnsOptions,
    ) -> None:
        self._problem = problem
        self._bound = bound
        self._options = options
        self._clock = clock
        self._hint = hint
        self._settings = settings
        self._starts = Starts(problem, bound, clock)
        self._told: Cycles | None = None
        self._best: Candidate | None = None

    @property
    def reason(self) -> str:
        """Why there is no plan, where there is none."""
        return self._starts.reason

    @property
    def has_plan(self) -> bool:
        """Whether anything has been found."""
        return self._told is not None

    def search(self) -> None:
        """Choose between the starts, and improve the best."""
        if self._hint is not None:
            self._tell(self._hint.claim.makespan, "hint")
        for makespan in self._starts.schedule():
            self._tell(makespan, "list")
            if self._is_done():
                return
        candidates = self._candidates()
        if not self._settings.opening:
            return
        for candidate in sorted(candidates, key=lambda one: one.loose.makespan):
            if self._is_done() or candidate.loose.makespan >= self._makespan():
                break
            self._loosen(candidate)
        if self._best is not None:
            self._step_by_step(self._best)

    def plan(self) -> Plan | None:
        """Return the best plan that the checker accepts."""
        best = self._best
        if best is not None:
            plan = self._built(best)
            if plan is not None and not check(self._problem, plan):
                return plan
            return best.ground.plan
        plans = [*self._starts.plans()] if self._hint is None else [self._hint]
        return min(plans, key=lambda plan: plan.claim.makespan, default=None)

    def _candidates(self) -> list[Candidate]:
        """Return what the starts promise; each is compacted and offered."""
        found: list[Candidate] = []
        copies: Copies | None = None
        hints = [] if self._hint is None else [self._hint]
        for plan in (*hints, *self._starts.plans()):
            if found and (self._is_done() or self._clock.is_over(SHARE_OF_CHOICE)):
                break
            if found and not self._settings.starts:
                break
            copies = copies or copies_of(self._problem, plan)
            ground, draft, start = ground_of(
                self._problem,
                plan,
                copies,
                drops_reloads=self._settings.reloads,
                spares_dram=self._settings.sparing,
                changes_cores=self._settings.relocations,
            )
            self._clock.reserve(SECONDS_TO_FINISH * start.size)
            standing = compacted(ground, Standing(draft, start, plan.claim.makespan))
            filling = Filling(ground)
            loose = opened(ground, standing, filling.limit(), self._clock, FIRST_ROUNDS)
            candidate = Candidate(ground, standing, loose, filling)
            self._offer(candidate, "compacted")
            found.append(candidate)
        return found

    def _loosen(self, candidate: Candidate) -> None:
        ground, filling = candidate.ground, candidate.filling
        for found in loosened(ground, candidate.standing, filling, self._clock, candidate.loose):
            if found is not None:
                self._offer(Candidate(ground, found, found, filling), "loosened")
            if self._is_done():
                return

    def _step_by_step(self, best: Candidate) -> None:
        """Go on from the best plan with kicks and windows; now and then look for addresses."""
        ground, filling, seed = best.ground, best.filling, self._options.seed
        if not self._settings.steps:
            return
        own, *others = (
            Steps(ground, filling, self._clock, self._settings, seed + helper)
            for helper in range(self._options.workers)
        )
        loose = opened(ground, best.standing, filling.limit(), self._clock)
        steps = min(MOST_STEPS, ACTIVITIES_MOVED // loose.start.size)
        idle = 0
        with Helpers(others, loose) as helpers:
            while not self._is_done() and (self._clock.is_limited or steps > 0):
                steps -= 1
                before = loose.makespan
                loose = helpers.exchanged(own.take(loose))
                idle = 0 if loose.makespan < before else idle + 1
                gain = self._makespan() - loose.makespan
                is_due = idle % PATIENCE == PATIENCE - 1 or steps == 0
                if gain > self._makespan() * WORTH_PACKING or (gain > 0 and is_due):
                    loose = self._settle(ground, loose, filling)
                    helpers.begin_again(loose)

    def _settle(self, ground: Ground, loose: Standing, filling: Filling) -> Standing:
        """Offer open times with addresses; return what to go on from."""
        for _ in range(TRIES_AT_ONCE):
            found = addressed(ground, loose, filling, self._clock)
            if found is not None:
                self._offer(Candidate(ground, found, found, filling), "improved")
                return found
            if self._is_done():
                break
            loose = opened(ground, loose, filling.limit(), self._clock)
        return loose if self._best is None else self._best.standing

    def _built(self, best: Candidate) -> Plan | None:
        standing, ground = best.standing, best.ground
        try:
            return plan_of(
                self._problem,
                ground.plan,
                standing.draft,
                standing.start,
                dram_is_free=ground.dram_is_free,
            )
        except DoesNotFitError:
            return None

    def _offer(self, candidate: Candidate, source: str) -> None:
        if self._best is None or candidate.standing.makespan < self._best.standing.makespan:
            self._best = candidate
            self._tell(candidate.standing.makespan, source)

    def _makespan(self) -> Cycles:
        return 2**62 if self._best is None else self._best.standing.makespan

    def _tell(self, makespan: Cycles, source: str) -> None:
        if self._told is not None and makespan >= self._told:
            return
        self._told = makespan
        if self._options.on_progress is not None:
            self._options.on_progress(
                Progress(incumbent=makespan, bound=self._bound.value, source=f"lns {source}")
            )

    def _is_done(self) -> bool:
        if self._clock.is_over():
            return True
        if self._told is None:
            return False
        return self._told - self._bound.value <= self._options.gap * self._told
