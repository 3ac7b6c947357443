"""The course of one solve: what is tried in which order, the incumbent and the bound."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from spmilp.bounds.bound import Bound
from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.incumbent import Incumbent
from spmilp.solvers.milp.addresses import find_addresses
from spmilp.solvers.milp.decisions import Decisions, read_decisions
from spmilp.solvers.milp.extract import extract
from spmilp.solvers.milp.lookup import Lookup
from spmilp.solvers.milp.model import Aim, Model, cycles_in_turn
from spmilp.solvers.milp.options import MilpOptions
from spmilp.solvers.milp.outcome import Limits, Outcome
from spmilp.solvers.milp.process import run
from spmilp.solvers.milp.repair import repaired
from spmilp.solvers.milp.size import TooLargeError, refuse_program, refuse_structure
from spmilp.solvers.milp.stays import Stay, Structure, structure_of
from spmilp.units import Cycles, MemoryIdx, SliceIdx

ROUNDS = 8
"""Models with open stays built for one quantity."""

BOUND_SHARE = 0.6
"""The share of the time left that a model with open stays may take."""

NAME = "milp"


class Found(NamedTuple):
    """A run, and the decisions that its solution was repaired to."""

    outcome: Outcome
    decisions: Decisions | None


class Session:
    """One solve.

    Parameters
    ----------
    backend
        The name that PuLP has for the solver.
    start
        What is known without a model: a bound, and the reason if there is no plan.
    """

    def __init__(
        self,
        context: SearchContext,
        settings: MilpOptions,
        backend: str,
        start: SolverResult,
    ) -> None:
        self._context = context
        self._problem = problem = context.problem
        self._options = context.options
        self._settings = settings
        self._backend = backend
        self._lookup = Lookup(problem)
        self._order = problem.objective.order
        self._counts: Counter[tuple[SliceIdx, MemoryIdx]] = Counter()
        self._reason = start.reason or "a limit was reached before a plan was found"
        self._known = Bound(start.bound_source, self._order[0], start.bound)
        self._believed = True
        self._runs = 0
        self._infeasible = False
        self._ties_proven = False
        self.incumbent = Incumbent(context, self._known, NAME)

    def offer(self, plan: Plan) -> bool:
        """Take a plan that the checker accepts as incumbent if it is better; say if it is valid."""
        if not self._context.accepts(plan):
            return False
        if self._context.values(plan)[0] < self.incumbent.bound.value:
            # No plan is below a bound, so the backend was wrong: nothing it proves counts.
            self._believed = False
            self.incumbent.bound = self._known
        self.incumbent.offer(plan)
        return True

    def search(self) -> None:
        """Make one quantity after the other small, with those before it held.

        Raises
        ------
        TooLargeError
            If already the first model of the first quantity is too large.
        """
        self._ties_proven = True
        for position in range(len(self._order)):
            try:
                proven = self._minimise(position)
            except TooLargeError:
                if position == 0 and self._runs == 0:
                    raise
                proven = False
            if position and not proven:
                self._ties_proven = False
            if self.incumbent.plan is None:
                return

    def result(self) -> SolverResult:
        """Return what was found."""
        plan, bound = self.incumbent.plan, self.incumbent.bound
        if plan is None and self._infeasible:
            return self._context.infeasible(self._reason, bound)
        if plan is None:
            return self._context.unknown(self._reason, bound)
        is_proven = self.incumbent.value == bound.value and self._ties_proven
        options = (("backend", self._backend), ("tie_breakers", "proven" if is_proven else "open"))
        return self._context.found(plan, bound, NAME, options)

    def _minimise(self, position: int) -> bool:
        """Make a quantity small; say whether it is proven that it cannot be smaller.

        A model with open stays gives a bound; what its solution uses late may stand against its
        being a plan. The same model without late uses then gives a plan. If that does not reach the
        bound, the slices that were used late get one more stay, and both are built again.
        """
        floor = self._floor(position)
        for _ in range(ROUNDS):
            if self._is_reached(position, floor) or self._is_over():
                break
            structure = self._structure(position, relaxed=True)
            is_open = any(shape.open for shape in structure.shapes.values())
            found = self._run(structure, position, floor, BOUND_SHARE if is_open else 1.0)
            if not structure.restricted:
                floor = self._conclude(found, position, floor)
            if self._infeasible or self._is_reached(position, floor) or self._is_over():
                break
            late = found.decisions.late if found.decisions is not None else frozenset()
            complete = found.outcome.complete
            if late or structure.restricted or (is_open and not complete):
                self._run(self._structure(position, relaxed=False), position, floor, 1.0)
            if structure.restricted or not complete or not self._raise_stays(late):
                break
        return self._is_proven(position, floor)

    def _floor(self, position: int) -> int:
        known = self._context.bound_on(self._order[position]).value
        return max(known, self.incumbent.bound.value) if position == 0 else known

    def _conclude(self, found: Found, position: int, floor: int) -> int:
        """Return the new floor of a quantity, after a run whose model leaves nothing out."""
        outcome = found.outcome
        if not self._believed:
            return self._floor(position)
        if outcome.infeasible and self.incumbent.plan is None:
            self._infeasible = True
            self._reason = self._why_impossible()
        elif outcome.infeasible:
            floor = max(floor, self.incumbent.values[position])
        elif outcome.bound is not None:
            floor = max(floor, outcome.bound)
        if position == 0 and self.incumbent.value is not None:
            floor = min(floor, self.incumbent.value)
        if position == 0:
            self.incumbent.prove(floor, f"{NAME} ({self._backend})")
        return floor

    def _why_impossible(self) -> str:
        from spmilp.solvers.milp.reasons import why_impossible

        structure = self._structure(0, relaxed=True)
        limits = self._limits(0.5, 0)
        return why_impossible(self._lookup, structure, self._settings, self._backend, limits)

    def _raise_stays(self, late: frozenset[Stay]) -> bool:
        """Allow one more transfer of what was used late; say whether the settings let that be."""
        able = {s[:2] for s in late if self._count(s[:2]) < self._settings.most_stays}
        for pair in able:
            self._counts[pair] += 1
        return bool(able)

    def _count(self, pair: tuple[SliceIdx, MemoryIdx]) -> int:
        return 1 + self._counts[pair]

    def _structure(self, position: int, *, relaxed: bool) -> Structure:
        counts = {pair: self._count(pair) for pair in self._lookup.pairs}
        addressed = Quantity.PEAK_SPM in self._order[: position + 1]
        return structure_of(self._lookup, counts, relaxed=relaxed, addressed=addressed)

    def _run(self, structure: Structure, position: int, floor: int, share: float) -> Found:
        """Solve a model of a structure, and offer what is a plan."""
        refuse_structure(structure, self._settings)
        model = Model(
            self._lookup, structure, self._settings, self._aim(structure, position, floor)
        )
        refuse_program(model.program, self._settings)
        self._runs += 1
        outcome = run(model.program, self._backend, self._limits(share, position))
        decisions = None
        if outcome.values is not None:
            values = repaired(model.program, outcome.values)
            decisions = None if values is None else read_decisions(model, values)
        if decisions is not None and not decisions.late:
            self._take(decisions, structure)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return Found(outcome, decisions)

    def _aim(self, structure: Structure, position: int, floor: int) -> Aim:
        """Return what to look for: anything better than the incumbent."""
        incumbent = self.incumbent
        ceilings: Mapping[Quantity, int] = {}
        ceiling = None
        if incumbent.plan is not None:
            ceilings = dict(zip(self._order[:position], incumbent.values, strict=False))
            ceiling = incumbent.values[position] - 1
        return Aim(
            quantity=self._order[position],
            ceilings=ceilings,
            floor=floor,
            ceiling=ceiling,
            horizon=self._horizon(structure, position),
        )

    def _horizon(self, structure: Structure, position: int) -> Cycles:
        if self.incumbent.plan is not None:
            makespan = self.incumbent.plan.claim.makespan
            if self._order[position] is Quantity.MAKESPAN:
                return makespan - 1
            if Quantity.MAKESPAN in self._order[:position]:
                return makespan
        return cycles_in_turn(self._lookup, structure)

    def _limits(self, share: float, position: int) -> Limits:
        left = self._context.clock.seconds_left()
        return Limits(
            seconds=None if left is None else share * left,
            threads=self._options.workers,
            seed=self._options.seed,
            gap=self._options.gap if position == 0 else 0.0,
            log=self._settings.log,
        )

    def _take(self, decisions: Decisions, structure: Structure) -> None:
        """Make a plan of decisions, and offer it."""
        draft = extract(self._lookup, decisions)
        layout = find_addresses(self._lookup, draft, decisions, structure.roomy)
        if layout is None:
            return
        measures = measure(self._problem, draft.placements, layout.residencies, draft.transfers)
        bound = min(self.incumbent.bound.value, measures.of(self._order[0]))
        self.offer(
            Plan(
                placements=draft.placements,
                residencies=layout.residencies,
                transfers=draft.transfers,
                tensors=layout.tensors,
                claim=claim_of(measures, bound, self.incumbent.bound.name),
                solver=NAME,
            )
        )

    def _is_over(self) -> bool:
        return self._context.clock.is_over()

    def _is_reached(self, position: int, floor: int) -> bool:
        """Say whether the incumbent is as near to the floor as was asked for."""
        if self.incumbent.plan is None:
            return False
        value = self.incumbent.values[position]
        allowed = self._options.gap * value if position == 0 else 0
        return value - floor <= allowed

    def _is_proven(self, position: int, floor: int) -> bool:
        reached = self.incumbent.plan is not None and self.incumbent.values[position] <= floor
        return reached and self._believed
