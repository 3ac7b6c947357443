"""The course of one solve: what is tried in which order, the incumbent and the bound."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic
from typing import NamedTuple

from spmilp.bounds.best import best_bound
from spmilp.checker.check import check
from spmilp.plan.measures import claim_of, claimed, measure
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.solvers.base import Progress, SolveOptions, SolverResult, SolveStatus
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


class Incumbent(NamedTuple):
    """The best plan so far, and its quantities in the objective's order."""

    plan: Plan
    values: tuple[int, ...]


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
        problem: Problem,
        options: SolveOptions,
        settings: MilpOptions,
        backend: str,
        start: SolverResult,
    ) -> None:
        self._problem = problem
        self._options = options
        self._settings = settings
        self._backend = backend
        self._lookup = Lookup(problem)
        self._order = problem.objective.order
        limit = options.time_limit
        self._deadline = None if limit is None else monotonic() + limit
        self._counts: Counter[tuple[SliceIdx, MemoryIdx]] = Counter()
        self._reason = start.reason or "a limit was reached before a plan was found"
        self._bound, self._source = start.bound, start.bound_source
        self._known = start.bound, start.bound_source
        self._believed = True
        self._runs = 0
        self._infeasible = False
        self._ties_proven = False
        self.incumbent: Incumbent | None = None

    def offer(self, plan: Plan) -> bool:
        """Take a plan that the checker accepts as incumbent if it is better; say if it is valid."""
        if check(self._problem, plan):
            return False
        measures = claimed(plan.claim)
        values = tuple(measures.of(quantity) for quantity in self._order)
        if self.incumbent is None or values < self.incumbent.values:
            self.incumbent = Incumbent(plan, values)
            if values[0] < self._bound:
                # No plan is below a bound, so the backend was wrong: nothing it proves counts.
                self._believed = False
                self._bound, self._source = self._known
            self._tell()
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
            if self.incumbent is None:
                return

    def result(self) -> SolverResult:
        """Return what was found."""
        if self.incumbent is None:
            return SolverResult(
                status=SolveStatus.INFEASIBLE if self._infeasible else SolveStatus.UNKNOWN,
                plan=None,
                bound=self._bound,
                bound_source=self._source,
                reason=self._reason,
            )
        plan, values = self.incumbent
        is_optimal = values[0] == self._bound
        ties = "proven" if is_optimal and self._ties_proven else "open"
        claim = replace(plan.claim, bound=self._bound, bound_source=self._source)
        return SolverResult(
            status=SolveStatus.OPTIMAL if is_optimal else SolveStatus.FEASIBLE,
            plan=replace(
                plan,
                claim=claim,
                solver=NAME,
                options=(("backend", self._backend), ("tie_breakers", ties)),
            ),
            bound=self._bound,
            bound_source=self._source,
        )

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
        known = best_bound(self._problem, self._order[position]).value
        return max(known, self._bound) if position == 0 else known

    def _conclude(self, found: Found, position: int, floor: int) -> int:
        """Return the new floor of a quantity, after a run whose model leaves nothing out."""
        outcome = found.outcome
        if not self._believed:
            return self._floor(position)
        if outcome.infeasible and self.incumbent is None:
            self._infeasible = True
            self._reason = self._why_impossible()
        elif outcome.infeasible and self.incumbent is not None:
            floor = max(floor, self.incumbent.values[position])
        elif outcome.bound is not None:
            floor = max(floor, outcome.bound)
        if position == 0 and self.incumbent is not None:
            floor = min(floor, self.incumbent.values[0])
        if position == 0 and floor > self._bound:
            self._bound, self._source = floor, f"{NAME} ({self._backend})"
            self._tell()
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
        if incumbent is not None:
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
        if self.incumbent is not None:
            makespan = self.incumbent.plan.claim.makespan
            if self._order[position] is Quantity.MAKESPAN:
                return makespan - 1
            if Quantity.MAKESPAN in self._order[:position]:
                return makespan
        return cycles_in_turn(self._lookup, structure)

    def _limits(self, share: float, position: int) -> Limits:
        seconds = None
        if self._deadline is not None:
            seconds = share * max(0.0, self._deadline - monotonic())
        return Limits(
            seconds=seconds,
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
        bound = min(self._bound, measures.of(self._order[0]))
        self.offer(
            Plan(
                placements=draft.placements,
                residencies=layout.residencies,
                transfers=draft.transfers,
                tensors=layout.tensors,
                claim=claim_of(measures, bound, self._source),
                solver=NAME,
            )
        )

    def _is_over(self) -> bool:
        return self._deadline is not None and monotonic() >= self._deadline

    def _is_reached(self, position: int, floor: int) -> bool:
        """Say whether the incumbent is as near to the floor as was asked for."""
        if self.incumbent is None:
            return False
        value = self.incumbent.values[position]
        allowed = self._options.gap * value if position == 0 else 0
        return value - floor <= allowed

    def _is_proven(self, position: int, floor: int) -> bool:
        reached = self.incumbent is not None and self.incumbent.values[position] <= floor
        return reached and self._believed

    def _tell(self) -> None:
        if self._options.on_progress is not None:
            value = None if self.incumbent is None else self.incumbent.values[0]
            self._options.on_progress(Progress(incumbent=value, bound=self._bound, source=NAME))
