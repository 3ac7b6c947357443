"""The course of one solve: what is tried in which order, the incumbent and the bound."""

from dataclasses import replace

from spmilp.bounds.bound import Bound
from spmilp.machine.machine import MemoryKind
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.background import Background
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.incumbent import Incumbent
from spmilp.solvers.cpsat.arrivals.model import ArrivalsModel, can_relax
from spmilp.solvers.cpsat.builder import SMALL, Builder
from spmilp.solvers.cpsat.model import Model
from spmilp.solvers.cpsat.neighbourhood import free_sets, pools_of_plan, scope_around
from spmilp.solvers.cpsat.options import CpSatOptions
from spmilp.solvers.cpsat.reading import Reading
from spmilp.solvers.cpsat.reasons import why_impossible
from spmilp.solvers.cpsat.retime import scope_of_plan
from spmilp.solvers.cpsat.search import Found, Limits, run
from spmilp.solvers.cpsat.structure import Structure, structure_of
from spmilp.solvers.formulation.addresses import ConflictSet, find_addresses
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.decisions import Decisions
from spmilp.solvers.formulation.extraction import Item, extract
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import Cycles, MemoryIdx, TaskIdx

RETIMING, AROUND, PLANS, PROOF, TIES = 0.1, 0.6, 0.75, 0.95, 0.99
"""Shares of the time limit by which each step has ended."""

ARRIVALS = {False: 0.2, True: 0.3}
"""Those of the small relaxations at first, without and with what memories keep."""

LAST_ARRIVALS = {False: 0.82, True: PROOF}
"""Those of the small relaxations when plans have been looked for."""

RETIMING_LIMIT = 2.0
"""Deterministic time for retiming."""

ARRIVALS_LIMIT = 20.0
"""Deterministic time for a small relaxation where nothing else limits it."""

AROUND_LIMIT = 0.5
"""Deterministic time for one neighbourhood."""

FOLLOWED = 2
"""Solutions of each small relaxation whose pools are tried."""

LITERALS_PER_SECOND = 10_000
"""What of a model is built in a second; one that takes more than half of the time left is not."""

ROUNDS = 12
"""Models built in one step to make packings possible."""


class Session:
    """One solve.

    Parameters
    ----------
    start
        The list scheduler's answer: its bound, and the reason if it has no plan.
    """

    def __init__(self, context: SearchContext, settings: CpSatOptions, start: SolverResult) -> None:
        self._context = context
        self._problem = problem = context.problem
        self._options = context.options
        self._settings = settings
        self._tables = ProblemTables(problem)
        self._builder = Builder(self._tables, settings)
        self._clock = context.clock
        self._clock.deterministic = settings.deterministic_limit
        self._order = problem.objective.order
        self._builder.ample = self._order[0] is not Quantity.PEAK_SPM
        self._crowds: dict[MemoryIdx, tuple[frozenset[Item], ...]] = {}
        self._note = ""
        self._infeasible = False
        self._open_arrivals: set[bool] = set()
        self._reason = "a limit was reached before a plan was found"
        if start.reason:
            self._reason += f"; where the list scheduler got stuck: {start.reason}"
        bound = Bound(start.bound_source, self._order[0], start.bound)
        self.incumbent = Incumbent(context, bound, "cpsat")

    def offer(self, plan: Plan) -> None:
        """Take a valid plan as incumbent if it is better than the one there is."""
        if self.incumbent.offer(plan):
            self._builder.represent(Reading(self._problem, plan))

    def search(self) -> None:
        """Improve and prove the first objective, then improve the others in turn."""
        tables = self._tables
        if not all(tables.pools_of(task.index) for task in self._problem.tasks):
            self._is_impossible()
            return
        literals = self._builder.structure(relaxed=False).literals
        if literals > self._settings.literals:
            self._note = f"about {literals} literals > {self._settings.literals}: only retimed"
        self._retime()
        if self._note:
            return
        if len(self._problem.tasks) > SMALL and not self._builder.is_exact():
            self._follow_arrivals()
            self._improve_around()
        self._improve_and_prove()
        for position in range(1, len(self._order)):
            if self.incumbent.plan is not None and not self._clock.is_over(TIES):
                self._break_ties(position)

    def result(self) -> SolverResult:
        """Return what was found."""
        plan, bound = self.incumbent.plan, self.incumbent.bound
        if plan is None and self._infeasible:
            return self._context.infeasible(self._reason, bound)
        if plan is None:
            return self._context.unknown(self._reason, bound)
        options = (("model", self._note),) if self._note else ()
        return self._context.found(plan, bound, "cpsat", options)

    def _retime(self) -> None:
        """Choose the times of the incumbent anew, its other decisions kept."""
        wanted = self._settings.retime and self._order[0] is Quantity.MAKESPAN
        plan = self.incumbent.plan
        if plan is None or not wanted or self._is_done():
            return
        reading = Reading(self._problem, plan)
        scope = scope_of_plan(self._tables, reading, self._builder.scope(relaxed=False))
        structure = structure_of(self._tables, scope, frozenset())
        if structure.literals <= self._settings.literals:
            self._find_plans(structure, 0, RETIMING, RETIMING_LIMIT)

    def _follow_arrivals(self) -> None:
        """Prove what the small relaxations can, then plan with the pools that they chose."""
        solutions: list[Decisions] = []
        for keeping, share in ARRIVALS.items():
            found = self._relax_to_arrivals(share, keeping)
            solutions += [] if found is None else found.solutions[-FOLLOWED:]
        for decisions in reversed(solutions):
            self._plan_around(tuple(run.pool for run in decisions.runs), frozenset())

    def _relax_to_arrivals(self, share: float, keeping: bool) -> Found | None:
        """Search a small relaxation for anything better than the incumbent."""
        quantity, wanted = self._order[0], self._settings.arrivals
        if keeping:
            wanted = self._settings.kept
        if not wanted or not can_relax(self._tables, quantity) or self._is_done():
            return None
        if self._clock.is_over(share):
            return None
        incumbent = self.incumbent
        model = ArrivalsModel(
            self._tables,
            quantity=quantity,
            horizon=self._horizon(self._builder.structure(relaxed=True), 0),
            floor=incumbent.bound.value,
            best=incumbent.value,
            reading=None if incumbent.plan is None else Reading(self._problem, incumbent.plan),
            keeping=keeping,
        )
        limit = None if self._clock.is_limited else ARRIVALS_LIMIT
        found = self._search_for(model, self._limits(share, limit), proves=True)
        self._conclude(found)
        self._open_arrivals -= {keeping}
        if not found.complete:
            self._open_arrivals |= {keeping}
        return found

    def _improve_around(self) -> None:
        """Improve the incumbent: most tasks keep their pools, some are free."""
        plan = self.incumbent.plan
        if plan is None or not self._settings.neighbourhoods:
            return
        for free in free_sets(plan, self._options.seed):
            if self._is_done() or self._clock.is_over(AROUND):
                return
            best = self.incumbent.plan or plan
            self._plan_around(pools_of_plan(self._tables, best), free)

    def _plan_around(self, pools: tuple[int, ...], free: frozenset[TaskIdx]) -> None:
        if self._is_done() or self._clock.is_over(AROUND):
            return
        scope = scope_around(self._tables, self._builder.scope(relaxed=False), pools, free)
        structure = structure_of(self._tables, scope, self._moving())
        self._find_plans(structure, 0, AROUND, AROUND_LIMIT)

    def _improve_and_prove(self) -> None:
        """Search plans and proofs in turn, with more stays each time a proof needs them."""
        while not self._is_done() and not self._clock.is_over(PLANS):
            found = self._find_plans(None, 0, PLANS, None)
            if found is not None and self._builder.is_exact():
                self._conclude(found)
            if self._is_done() or not self._settings.relax or not self._prove():
                return

    def _prove(self) -> bool:
        """Search the relaxation for anything better; say whether more stays may help.

        A solution that is better and needs no stay late would be a plan if it had addresses. What
        has none becomes a crowd, in the plans' model as in this one, and the search begins again.
        As long as the small relaxations are not through, they are worth more time than this one.
        """
        if self._open_arrivals and self._clock.is_limited:
            for keeping in sorted(self._open_arrivals):
                self._relax_to_arrivals(LAST_ARRIVALS[keeping], keeping)
            return False
        for _ in range(ROUNDS):
            structure = self._structure(relaxed=True)
            if not self._has_time_for(structure, PROOF):
                return False
            found = self._run(structure, 0, PROOF, None)
            self._conclude(found)
            crowd = self._take(found)
            if self._is_done() or not found.solutions or not found.complete:
                return False
            late = found.solutions[-1].late
            if late:
                return self._builder.raise_stays(late)
            if not self._takes_note(crowd):
                return False
        return False

    def _structure(self, *, relaxed: bool) -> Structure:
        return self._builder.structure(relaxed=relaxed, moving=self._moving())

    def _moving(self) -> frozenset[MemoryIdx]:
        """Return the memories whose addresses the models know."""
        moving = frozenset(self._crowds)
        if self._knows_addresses(0):
            memories = self._problem.machine.memories
            moving |= {m.index for m in memories if m.kind is MemoryKind.SPM}
        return moving

    def _break_ties(self, position: int) -> None:
        """Make a later quantity small, with those before it held."""
        if self._order[position] is Quantity.PEAK_SPM:
            self._builder.ample = False
        if self._structure(relaxed=False).literals <= self._settings.literals:
            self._find_plans(None, position, TIES, self._settings.tie_breaks)

    def _find_plans(
        self,
        structure: Structure | None,
        position: int,
        share: float,
        deterministic: float | None,
    ) -> Found | None:
        """Improve one of the quantities within a structure, by default the whole problem's.

        Returns the last run, unless its best solution has no addresses.
        """
        for _ in range(ROUNDS):
            if self._clock.is_over(share):
                return None
            within = structure or self._structure(relaxed=False)
            if not self._has_time_for(within, share):
                return None
            found = self._run(within, position, share, deterministic)
            crowd = self._take(found)
            if crowd is None:
                return found
            if not self._takes_note(crowd):
                return None
        return None

    def _has_time_for(self, structure: Structure, share: float) -> bool:
        """Say whether a model can be built in good time before a share of the limit is used."""
        left = self._clock.seconds_left(share)
        return left is None or structure.literals <= LITERALS_PER_SECOND * left / 2

    def _takes_note(self, crowd: ConflictSet | None) -> bool:
        """Have a crowd's addresses in all further models; say whether that is new."""
        if crowd is None or not crowd.items:
            return False
        if self._builder.ample and any(self._lasts(item) for item in crowd.items):
            self._builder.ample = False
            return True
        known = self._crowds.get(crowd.memory, ())
        self._crowds[crowd.memory] = (*known, crowd.items)
        return crowd.items not in known

    def _lasts(self, item: Item) -> bool:
        """Say whether the model of plans has no address for an item of a memory of limited size."""
        lasting = self._builder.scope(relaxed=False).lasting
        return isinstance(item, CandidateResidency) and item[:2] in lasting

    def _conclude(self, found: Found) -> None:
        """Take bound and plan of a run whose model leaves nothing out that could be better."""
        if found.infeasible and self.incumbent.value is None:
            self._is_impossible()
        elif found.infeasible and self.incumbent.value is not None:
            self.incumbent.prove(self.incumbent.value)
        elif found.bound is not None:
            self.incumbent.prove(found.bound)

    def _is_impossible(self) -> None:
        """Note that no plan exists, and why."""
        self._infeasible = True
        self._reason = why_impossible(self._tables, self._builder, self._options.seed)

    def _run(
        self,
        structure: Structure,
        position: int,
        share: float,
        deterministic: float | None,
    ) -> Found:
        relaxed = structure.scope.relaxed
        model = self._model(structure, position)
        limits = self._limits(share, deterministic)
        if position == 0 and not relaxed:
            limits = replace(limits, enough=self._enough())
        if position > 0:
            return self._search_for(model, limits)
        return self._search_for(model, limits, finds=not relaxed, proves=relaxed)

    def _limits(self, share: float, deterministic: float | None) -> Limits:
        return Limits(
            seconds=self._clock.seconds_left(share),
            deterministic=self._clock.deterministic_left(deterministic),
            workers=self._options.workers,
            seed=self._options.seed,
            turns=self._settings.turns,
            log=self._settings.log,
        )

    def _search_for(
        self,
        model: Model | ArrivalsModel,
        limits: Limits,
        *,
        finds: bool = False,
        proves: bool = False,
    ) -> Found:
        """Run a model; it may find values of the first quantity, or prove bounds on it."""

        def on_solution(value: int) -> None:
            if finds:
                self.incumbent.report(value)

        def on_bound(bound: int) -> None:
            if proves:
                self.incumbent.prove(bound)

        found = run(
            model,
            limits,
            Background(self._context),
            proves=proves,
            on_solution=on_solution,
            on_bound=on_bound,
        )
        self._clock.spend(found.deterministic)
        if found.interrupted:
            if finds:
                self._take(found)
            raise KeyboardInterrupt
        return found

    def _model(self, structure: Structure, position: int) -> Model:
        """Return the model of a structure, with the incumbent as hint."""
        quantity = self._order[position]
        incumbent = self.incumbent
        ceilings: dict[Quantity, int] = {}
        best = reading = None
        if incumbent.plan is not None:
            ceilings = dict(zip(self._order[:position], incumbent.values, strict=False))
            best = incumbent.values[position]
            reading = Reading(self._problem, incumbent.plan)
        known = incumbent.bound if position == 0 else self._context.bound_on(quantity)
        return Model(
            self._tables,
            structure,
            self._settings,
            horizon=self._horizon(structure, position),
            quantity=quantity,
            ceilings=ceilings,
            floor=known.value,
            best=best,
            crowds=self._crowds,
            everywhere=self._knows_addresses(position),
            reading=reading,
        )

    def _knows_addresses(self, position: int) -> bool:
        """Say whether every address in a scratchpad is in the model, as the peak needs it."""
        wanted = Quantity.PEAK_SPM in self._order[: position + 1]
        asked = self._settings.addresses_in_model
        if asked is None:
            moves_bytes = self._order[0] in (Quantity.DRAM_TRAFFIC, Quantity.ENERGY)
            asked = moves_bytes and len({pool.memory for pool in self._tables.pools}) == 1
        return wanted or asked

    def _horizon(self, structure: Structure, position: int) -> Cycles:
        """Return a cycle by which some best plan has ended.

        Where the makespan is an objective up to this one, the incumbent's. Otherwise all tasks and
        transfers one after another: a plan in which nothing happens at some cycle can be shortened.
        """
        makespan = 0
        if self.incumbent.plan is not None:
            makespan = self.incumbent.plan.claim.makespan
            if Quantity.MAKESPAN in self._order[: position + 1]:
                return makespan
        return max(makespan, structure.cycles_in_turn(self._tables))

    def _take(self, found: Found) -> ConflictSet | None:
        """Make the best solution that has addresses the incumbent; say what stops the best one."""
        stopped = None
        for decisions in reversed(found.solutions):
            if decisions.late:
                continue
            crowd = self._take_one(decisions)
            if crowd is None:
                break
            stopped = stopped or crowd
        return stopped

    def _take_one(self, decisions: Decisions) -> ConflictSet | None:
        draft = extract(self._tables, decisions)
        low = self._order[0] is Quantity.PEAK_SPM
        found = find_addresses(self._tables, draft, low=low)
        if isinstance(found, ConflictSet):
            return found
        measures = measure(self._problem, draft.placements, found.residencies, draft.transfers)
        bound = self.incumbent.bound
        self.offer(
            Plan(
                placements=draft.placements,
                residencies=found.residencies,
                transfers=draft.transfers,
                tensors=found.tensors,
                claim=claim_of(measures, bound.value, bound.name),
                solver="cpsat",
            )
        )
        return None

    def _enough(self) -> int:
        """Return the value at which the gap asked for is reached."""
        bound = self.incumbent.bound.value
        return max(bound, int(bound / max(1e-9, 1.0 - self._options.gap)))

    def _is_done(self) -> bool:
        return self.incumbent.is_enough
