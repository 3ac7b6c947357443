"""One solve: the sequence of models, the incumbent and the bound; or why there is no plan."""

from collections import Counter
from typing import NamedTuple

from spmilp.plan.measures import claim_of, measure
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Incumbent
from spmilp.solvers.formulation.addresses import ConflictSet, find_addresses
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.extraction import Decisions, extract
from spmilp.solvers.formulation.infeasibility import what_cannot_be, what_is_short
from spmilp.solvers.formulation.places import SliceInMemory
from spmilp.solvers.milp.messages import Limits, Outcome
from spmilp.solvers.milp.model import Aim, Model, cycles_in_turn
from spmilp.solvers.milp.options import MilpOptions, TooLargeError, refuse_program, refuse_structure
from spmilp.solvers.milp.process import run
from spmilp.solvers.milp.solution import read_decisions, repaired
from spmilp.solvers.milp.structure import Structure, structure_of
from spmilp.solvers.milp.tables import MilpTables
from spmilp.units import Bytes, Cycles, MemoryIdx

ROUNDS = 8
"""Models with open candidates built for one quantity."""

BOUND_SHARE = 0.6
"""The share of the time left that a model with open candidates may take."""

NAME = "milp"


class Found(NamedTuple):
    """A run, and the decisions that its solution was repaired to."""

    outcome: Outcome
    decisions: Decisions | None


class MilpSearch:
    """The search of one solve.

    Parameters
    ----------
    backend
        The name that PuLP has for the solver.
    """

    def __init__(self, context: SearchContext, settings: MilpOptions, backend: str) -> None:
        self.context = context
        self._settings = settings
        self.backend = backend
        self._tables = MilpTables(context.problem)
        self._order = context.problem.objective.order
        self._counts: Counter[SliceInMemory] = Counter()
        self.is_believed = True
        self._runs = 0
        self._why_infeasible = ""
        self._ties_proven = False
        self.incumbent = Incumbent(context, context.bound, NAME)

    def offer(self, plan: Plan) -> None:
        """Take a plan that the checker accepts as incumbent if it is better."""
        if not self.context.accepts(plan):
            return
        if self.context.values(plan)[0] < self.incumbent.bound.value:
            # No plan is below a bound, so the backend was wrong: nothing it proves counts.
            self.is_believed = False
            self.incumbent.bound = self.context.bound
        self.incumbent.offer(plan)

    def run(self) -> None:
        """Minimise one quantity after the other, with those before it held.

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

    def result(self, reason: str) -> SolverResult:
        """Return what was found; without a plan for that reason, unless infeasibility is proven."""
        plan, bound = self.incumbent.plan, self.incumbent.bound
        if plan is None and self._why_infeasible:
            return self.context.infeasible(self._why_infeasible, bound)
        if plan is None:
            return self.context.unknown(reason, bound)
        is_proven = self.incumbent.value == bound.value and self._ties_proven
        options = (("backend", self.backend), ("tie_breakers", "proven" if is_proven else "open"))
        return self.context.found(plan, bound, NAME, options)

    def _minimise(self, position: int) -> bool:
        """Minimise a quantity; say whether it is proven that it cannot be smaller.

        A model with open candidates gives a bound; late uses may keep its solution from being a
        plan. The same model without late uses then gives a plan. If that does not reach the bound,
        the slices that were used late get one more candidate, and both are built again.
        """
        floor = self._floor(position)
        for _ in range(ROUNDS):
            if self._is_reached(position, floor) or self.context.clock.is_over():
                break
            structure = self._structure(position, relaxed=True)
            is_open = any(shape.open for shape in structure.shapes.values())
            found = self._run(structure, position, floor, BOUND_SHARE if is_open else 1.0)
            if not structure.restricted:
                floor = self._conclude(found.outcome, position, floor)
            if (
                self._why_infeasible
                or self._is_reached(position, floor)
                or self.context.clock.is_over()
            ):
                break
            late = found.decisions.late if found.decisions is not None else frozenset()
            complete = found.outcome.complete
            if late or structure.restricted or (is_open and not complete):
                self._run(self._structure(position, relaxed=False), position, floor, 1.0)
            if structure.restricted or not complete or not self._allow_more(late):
                break
        reached = self.incumbent.plan is not None and self.incumbent.values[position] <= floor
        return reached and self.is_believed

    def _floor(self, position: int) -> int:
        known = self.context.bound_on(self._order[position]).value
        return max(known, self.incumbent.bound.value) if position == 0 else known

    def _conclude(self, outcome: Outcome, position: int, floor: int) -> int:
        """Return the new floor of a quantity, after a run whose model leaves nothing out."""
        if not self.is_believed:
            return self._floor(position)
        if outcome.infeasible and self.incumbent.plan is None:
            structure = self._structure(0, relaxed=True)
            limits = self._limits(0.5, 0)
            self._why_infeasible = why_impossible(
                self._tables, structure, self._settings, self.backend, limits
            )
        elif outcome.infeasible:
            floor = max(floor, self.incumbent.values[position])
        elif outcome.bound is not None:
            floor = max(floor, outcome.bound)
        if position == 0 and self.incumbent.value is not None:
            floor = min(floor, self.incumbent.value)
        if position == 0:
            self.incumbent.prove(floor, f"{NAME} ({self.backend})")
        return floor

    def _allow_more(self, late: frozenset[CandidateResidency]) -> bool:
        """Allow one more transfer of slices used late; say whether the settings let that be."""
        most = self._settings.most_candidates
        able = {key[:2] for key in late if 1 + self._counts[key[:2]] < most}
        self._counts.update(able)
        return bool(able)

    def _structure(self, position: int, *, relaxed: bool) -> Structure:
        counts = {pair: 1 + self._counts[pair] for pair in self._tables.pairs}
        addressed = self._is_addressed(position)
        return structure_of(self._tables, counts, relaxed=relaxed, addressed=addressed)

    def _is_addressed(self, position: int) -> bool:
        """Say whether every address in a scratchpad counts, up to a quantity."""
        return Quantity.PEAK_SPM in self._order[: position + 1]

    def _run(self, structure: Structure, position: int, floor: int, share: float) -> Found:
        """Solve a model of a structure, and offer its solution if that is a plan."""
        refuse_structure(structure, self._settings)
        aim = self._aim(structure, position, floor)
        model = Model(self._tables, structure, aim)
        refuse_program(model.program, self._settings)
        self._runs += 1
        outcome = run(model.program, self.backend, self._limits(share, position))
        decisions = None
        if outcome.values is not None:
            values = repaired(model.program, outcome.values)
            decisions = None if values is None else read_decisions(model, values)
        if decisions is not None and not decisions.late:
            self.take(decisions, position)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return Found(outcome, decisions)

    def _aim(self, structure: Structure, position: int, floor: int) -> Aim:
        """Look for anything better than the incumbent."""
        known = self.incumbent.values
        return Aim(
            quantity=self._order[position],
            ceilings=dict(zip(self._order[:position], known, strict=False)),
            floor=floor,
            ceiling=known[position] - 1 if known else None,
            horizon=self._horizon(structure, position),
        )

    def _horizon(self, structure: Structure, position: int) -> Cycles:
        if self.incumbent.plan is not None:
            makespan = self.incumbent.plan.claim.makespan
            if self._order[position] is Quantity.MAKESPAN:
                return makespan - 1
            if Quantity.MAKESPAN in self._order[:position]:
                return makespan
        return cycles_in_turn(self._tables, structure)

    def _limits(self, share: float, position: int) -> Limits:
        options, left = self.context.options, self.context.clock.seconds_left()
        return Limits(
            seconds=None if left is None else share * left,
            threads=options.workers,
            seed=options.seed,
            gap=options.gap if position == 0 else 0.0,
        )

    def take(self, decisions: Decisions, position: int = 0) -> None:
        """Make a plan of decisions, and offer it."""
        timed = extract(self._tables, decisions)
        found = find_addresses(
            self._tables, timed, low=self._is_addressed(position), clock=self.context.clock
        )
        if isinstance(found, ConflictSet):
            return
        problem = self.context.problem
        measures = measure(problem, timed.placements, found.residencies, timed.transfers)
        proven = self.incumbent.bound
        bound = min(proven.value, measures.of(self._order[0]))
        self.offer(
            Plan(
                placements=timed.placements,
                residencies=found.residencies,
                transfers=timed.transfers,
                tensors=found.tensors,
                claim=claim_of(measures, bound, proven.name),
                solver=NAME,
            )
        )

    def _is_reached(self, position: int, floor: int) -> bool:
        """Say whether the incumbent is as near to the floor as was asked for."""
        if self.incumbent.plan is None:
            return False
        value = self.incumbent.values[position]
        if position == 0:
            return self.context.is_enough(value, floor)
        return value <= floor


def why_impossible(
    tables: MilpTables, structure: Structure, settings: MilpOptions, backend: str, limits: Limits
) -> str:
    """Return the first task, read or buffer that is impossible, or how many bytes are short."""
    reason = what_cannot_be(
        tables.problem,
        runs=lambda task: bool(tables.memories_of(task)),
        is_served=lambda task, position: bool(structure.servers[task, position]),
        ends=lambda buffer, memory: bool(structure.of(buffer, memory)),
    )
    return reason or what_is_short(
        tables.problem, _bytes_short(tables, structure, settings, backend, limits)
    )


def _bytes_short(
    tables: MilpTables, structure: Structure, settings: MilpOptions, backend: str, limits: Limits
) -> dict[MemoryIdx, Bytes] | None:
    """Let every memory grow, and return by how much each has to at the least."""
    aim = Aim(
        quantity=Quantity.MAKESPAN,
        ceilings={},
        floor=0,
        ceiling=None,
        horizon=cycles_in_turn(tables, structure),
    )
    model = Model(tables, structure, aim, growing=True)
    outcome = run(model.program, backend, limits)
    values = repaired(model.program, outcome.values) if outcome.values is not None else None
    if values is None or not outcome.complete:
        return None
    memories = tables.machine.memories
    return {
        m: more.value(values) * memories[m].alignment for m, more in model.addresses.growth.items()
    }
