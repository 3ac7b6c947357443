"""The CP-SAT solver: plans from a model with so many residencies, proofs from a relaxation."""

from dataclasses import dataclass

from spmilp.problem.pins import PinKind
from spmilp.solvers.base import SolverResult, SolveStatus
from spmilp.solvers.common.clock import Step
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.cpsat.inquiry import Limits, run
from spmilp.solvers.exact.formulation.candidates import (
    Reading,
    Scope,
    Structure,
    StructureFinder,
    scope_around,
)
from spmilp.solvers.exact.formulation.model import SMALL, Model, ModelOptions
from spmilp.solvers.exact.formulation.search import Budget, ExactSearch, Found
from spmilp.solvers.justify.shortening import repacked_plan
from spmilp.solvers.schedule.solver import ListScheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class CpSatOptions(ModelOptions):
    """Settings of the search: what it may spend, and a switch for the search around the best plan.

    With ``neighbourhoods`` CP-SAT's own improve the best plan. The largest model that is tried has
    so many ``literals``. All models together have so much of the solver's own deterministic time
    (``deterministic_limit``; ``None`` for no limit), ``tie_breaks`` of it for each objective behind
    the first.
    """

    neighbourhoods: bool = True
    literals: int = 2_000_000
    deterministic_limit: float | None = None
    tie_breaks: float = 3.0


DEFAULTS = CpSatOptions()

REPACKING = 0.1
"""Share of the time limit by which the first plan has its new times and addresses."""

PLANS = Budget(0.75)
"""Of the search for plans of the whole problem."""

PLANS_OF_SMALL = Budget(0.3)
"""The same where neighbourhoods are searched afterwards."""

PLANS_WITH_PROOF = Budget(0.95)
"""The same where the model of plans is exact, so that its bounds are proofs."""

TURN = Budget(0.75, 0.2, neighbourhoods=True)
"""Of one search around the best plan; a unit of deterministic time takes 10 to 30 seconds."""

LITERALS_PER_SECOND = 10_000
"""Literals of a model that are built in a second, about. A model that would take more than half of
the time left is not built."""

STRUCTURES = 3
"""Until there is a model to solve, about so many times the seconds of the first structure pass."""


class CpSatSolver(Solver):
    """Decides cores, residencies, transfers, times and addresses together.

    The list scheduler's plan is the start, and no plan worse than it is returned. Then, for the
    first objective:

    1. *Neighbourhoods* of the best plan: CP-SAT's own, as long as they pay. At first the plan keeps
       its residencies and every task its pool of cores, then pools alone, then nothing: the fewer
       decisions a model has, the more steps CP-SAT makes in it.
    2. *Plans*: everything is free, but a slice has only so many residencies in a memory. Addresses
       are found by packing; a set of residencies that has none gets its addresses into the model.
    3. *Proof*: a relaxation that no number of residencies limits (see
       :class:`~spmilp.solvers.exact.formulation.candidates.Lifecycle`), without addresses, is
       searched for anything better. Where its best solution needs more residencies than the plans
       may have, they get them, and the search begins again.

    Bounds come from the relaxation, and ``optimal`` and ``infeasible`` rest on it alone. Where
    nothing limits the model of plans, steps 2 and 3 are one. Problems of a dozen tasks begin with
    step 2, and come to step 1 if that leads to no end.

    The objectives behind the first are made small in turn, each with those before it held, within
    the scope of step 2 and the time that is left; nothing is claimed of them.
    """

    name = "cpsat"
    keeps = frozenset(PinKind)

    def __init__(self, settings: CpSatOptions = DEFAULTS) -> None:
        self._settings = settings

    def search(self, context: SearchContext) -> SolverResult:
        """Return the best plan found, never worse than the list scheduler's or a valid hint."""
        start = ListScheduler().search_within_pins(context)
        if start.status is SolveStatus.INFEASIBLE:
            return start
        search = CpSatSearch(context, self._settings, start)
        search.clock.deterministic = self._settings.deterministic_limit
        for plan in (start.plan, context.valid_hint):
            if plan is not None:
                search.offer(plan)
        with context.until_interrupted(lambda: search.incumbent.plan is not None):
            if not start.interrupted:
                search.run()
        return search.result((("model", search.note),) if search.note else ())


class CpSatSearch(ExactSearch[CpSatOptions]):
    """The search of one solve.

    The ``note`` says why no model was solved; it is empty where one was.
    """

    name = CpSatSolver.name
    note = ""
    _has_improved = False

    def run(self) -> None:
        """Improve and prove the first objective, then improve the others in turn."""
        pairs = len(self.problem.slices) * len(self.problem.machine.memories) ** 2
        seconds = STRUCTURES * self.clock.pace.seconds(Step.STRUCTURE, pairs)
        if self.incumbent.plan is not None and not self.clock.has_seconds(seconds):
            self.note = f"{pairs:,} transfers to choose from: {seconds:.0f} s for a model"
            return
        if not all(self.tables.pools_of(task.index) for task in self.problem.tasks):
            self.conclude_infeasible()
            return
        with self.clock.pace.measured(Step.STRUCTURE, pairs):
            literals = self.builder.structure(relaxed=False).literals
        small = len(self.problem.tasks) <= SMALL
        if not small or literals > self.settings.literals:
            self._repack()
        if literals > self.settings.literals:
            self.note = f"about {literals} literals > {self.settings.literals}: only repacked"
            return
        is_exact = self.builder.is_exact()
        if not small and not is_exact:
            self.improve()
        plans = PLANS_OF_SMALL if small else PLANS
        self.find_and_prove(PLANS_WITH_PROOF if is_exact else plans)
        self.break_ties(self.settings.tie_breaks)

    def _repack(self) -> None:
        """Choose times and addresses of the first plan anew, its other decisions kept."""
        plan = self.incumbent.plan
        if plan is not None and not self.is_done:
            self.offer(repacked_plan(self.context, plan, REPACKING))

    def improve(self) -> None:
        """Improve the incumbent by CP-SAT's neighbourhoods, until a turn finds nothing."""
        if self.incumbent.plan is None or self._has_improved or not self.settings.neighbourhoods:
            return
        self._has_improved = True
        turn, gains = 0, {"residencies", "cores", "nothing"}
        while gains:
            for keeps in ("residencies", "cores", "nothing"):
                if self.is_done or self.clock.is_over(TURN.share):
                    return
                before, turn = self.incumbent.values[0], turn + 1
                scope, addressed = self._scope(keeps), self.addressed_memories()
                structure = StructureFinder(self.tables, scope, addressed).structure()
                self.find_plans(TURN._replace(turn=turn), structure)
                gains = (gains | {keeps}) if self.incumbent.values[0] < before else gains - {keeps}

    def _scope(self, keeps: str) -> Scope:
        """Return the scope in which the best plan keeps its cores, and its residencies, or not."""
        whole, plan = self.builder.scope(relaxed=False), self.incumbent.plan
        if plan is None or keeps == "nothing":
            return whole
        pools = tuple((pool,) for pool in self.tables.pools_of_plan(plan))
        kept = Reading(self.problem, plan) if keeps == "residencies" else None
        return scope_around(self.tables, whole, pools, kept)

    def can_build(self, structure: Structure, budget: Budget) -> bool:
        """Say whether a model can be built in good time before a budget is spent."""
        left = self.clock.seconds_left(budget.share)
        in_time = left is None or structure.literals <= LITERALS_PER_SECOND * left / 2
        return in_time and structure.literals <= self.settings.literals

    def solve(
        self, model: Model, budget: Budget, *, finds: bool = False, proves: bool = False
    ) -> Found:
        """Run CP-SAT on a model within a budget."""
        incumbent, options = self.incumbent, self.context.options
        bound, constraints = incumbent.bound.value, len(model.cp.proto.constraints)
        limits = Limits(
            seconds=self.clock.engine_seconds(budget.share),
            deterministic=self.clock.deterministic_left(
                budget.deterministic, budget.share, constraints
            ),
            workers=options.workers,
            seed=options.seed + budget.turn,
            enough=max(bound, int(bound / max(1e-9, 1.0 - options.gap))) if finds else None,
            neighbourhoods=budget.neighbourhoods,
        )
        found = run(
            model,
            limits,
            self.context.reports,
            proves=proves,
            on_solution=lambda value: incumbent.report(value) if finds else None,
            on_bound=lambda bound: incumbent.prove(bound) if proves else None,
        )
        self.clock.spend(found.deterministic, constraints)
        if found.interrupted:
            if finds:
                self.take(found)
            raise KeyboardInterrupt
        return found
