"""What exact solvers share beside the model: the steps of a search, and what it knows.

A search finds plans in the model of so many residencies, and proves bounds in the relaxation with
open candidates (:class:`~spmilp.solvers.exact.formulation.candidates.Lifecycle`). Where the
relaxation's best solution uses a slice late, the slice gets one more residency. Where a solution
has no addresses, those that stand in each other's way get theirs into the models. Then both are
solved again.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from ortools.sat.python import cp_model

from spmilp.bounds.best import Bound
from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Incumbent
from spmilp.solvers.exact.formulation.addresses import ConflictSet, find_addresses
from spmilp.solvers.exact.formulation.candidates import CandidateResidency, Reading, Structure
from spmilp.solvers.exact.formulation.capacity import Addressed, CapacityModel
from spmilp.solvers.exact.formulation.constraints import Constraints
from spmilp.solvers.exact.formulation.extraction import Decisions, Item, extract
from spmilp.solvers.exact.formulation.model import Model, ModelOptions, StructureBuilder
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.exact.formulation.variables import Variables
from spmilp.units import Bytes, Cycles, MemoryIdx

SECONDS = 10.0
"""CP-SAT's deterministic time (about seconds) for finding out how many bytes are short."""


def why_infeasible(tables: ProblemTables, relaxed: Structure, seed: int) -> str:
    """Return why the relaxation has no solution: what cannot be reached, or the bytes short."""
    problem = tables.problem
    for task in problem.tasks:
        if not relaxed.scope.pools[task.index]:
            largest = max([task.scratch, *(problem.buffers[b].bytes for b in task.writes)])
            return (
                f"task {task.name}: no memory of a core that can run it has {largest} B in one "
                "piece for a result or its scratch; use smaller tiles or a larger scratchpad"
            )
        for position, read in enumerate(task.reads):
            if not relaxed.servers[task.index, position]:
                slice_ = problem.slices[read]
                name = problem.buffers[slice_.buffer].name
                return (
                    f"task {task.name}: no engine can bring {name} ({slice_.bytes} B) to a core "
                    "that can run the task; check the engines' reach, longest transfer, dimensions "
                    "and congruence"
                )
    ending = {key[:2] for key in relaxed.lifecycles}
    for buffer in problem.buffers:
        if buffer.ends_in is not None and (buffer.index, buffer.ends_in) not in ending:
            name = problem.machine.memories[buffer.ends_in].name
            return f"buffer {buffer.name} ({buffer.bytes} B): no engine can bring it to {name}"
    short = _bytes_short(tables, relaxed, seed)
    if short is None and problem.pins:
        kinds = ", ".join(sorted(problem.pins.kinds()))
        return f"no plan keeps to all pins ({kinds}): leave some out"
    if short is None:
        return "no plan exists: the tasks' operands and results do not fit the memories"
    if not any(short.values()):
        return "no plan exists: reserved ranges leave no piece that is long enough"
    memories = problem.machine.memories
    lacking = [f"{memories[m].name} is {size} B short" for m, size in sorted(short.items()) if size]
    return (
        f"no plan exists: {' and '.join(lacking)} for all operands and results that have to lie "
        "there at one time, in any order of the tasks; use smaller tiles or a larger memory"
    )


def _bytes_short(
    tables: ProblemTables, relaxed: Structure, seed: int
) -> dict[MemoryIdx, Bytes] | None:
    """Let every memory be larger than it is, and return how much each needs at the least."""
    model = cp_model.CpModel()
    variables = Variables(model, tables, relaxed, relaxed.sequential_cycles(tables))
    capacity = CapacityModel(variables, Addressed(), may_grow=True)
    Constraints(variables, capacity).add_all()
    memories = tables.machine.memories
    model.minimize(sum(memories[m].alignment * more for m, more in capacity.growth.items()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = SECONDS
    solver.parameters.catch_sigint_signal = False
    if solver.solve(model) != cp_model.OPTIMAL:
        return None
    return {m: solver.value(more) * memories[m].alignment for m, more in capacity.growth.items()}


@dataclass(slots=True, kw_only=True)
class Found:
    """What a run has found.

    It is ``infeasible`` if the model is proven to have no solution, ``complete`` if the best
    solution is the model's best. ``bound`` is proven on the model's objective, ``None`` when
    nothing is known. ``solutions`` are the last few, the best one last. ``interrupted``: the user
    has asked to stop.
    """

    infeasible: bool = False
    complete: bool = False
    bound: int | None = None
    solutions: list[Decisions] = field(default_factory=list)
    interrupted: bool = False
    deterministic: float = 0.0


class Budget(NamedTuple):
    """What a step may spend.

    It has ended by a ``share`` of the time limit; each run of CP-SAT has so much ``deterministic``
    time, ``None`` for no limit of its own. With ``neighbourhoods`` CP-SAT's own large-neighbourhood
    search works alone, from the best plan. Another ``turn`` may find others than an earlier one.
    """

    share: float
    deterministic: float | None = None
    neighbourhoods: bool = False
    turn: int = 0


ROUNDS = 12
"""Models built in one step to make packings possible."""

PROOF = Budget(0.95)

TIES = 0.99
"""The share of the time limit by which later objectives have been made small."""

Options = TypeVar("Options", bound=ModelOptions)


class ExactSearch(ABC, Generic[Options]):
    """One search: its steps, and what they read and change.

    It begins with the list scheduler's answer, ``start``: its bound, and the reason if it has no
    plan. ``name`` is the solver's; ``infeasible`` says why no plan exists, once that is proven.
    """

    name = ""

    def __init__(self, context: SearchContext, settings: Options, start: SolverResult) -> None:
        self.context = context
        self.problem = context.problem
        self.clock = context.clock
        self.settings = settings
        self.tables = ProblemTables(self.problem)
        self.order = self.problem.objective.order
        self.builder = StructureBuilder(self.tables, settings)
        self.builder.ample = self.order[0] is not Quantity.PEAK_SPM
        self.incumbent = Incumbent(
            context, Bound(start.bound_source, self.order[0], start.bound), self.name
        )
        self.infeasible = ""
        self._start = start
        self._conflict_sets: dict[MemoryIdx, tuple[frozenset[Item], ...]] = {}

    @abstractmethod
    def solve(
        self, model: Model, budget: Budget, *, finds: bool = False, proves: bool = False
    ) -> Found:
        """Run a model within a budget.

        It may find values of the first quantity (``finds``), or prove bounds on it. A
        ``KeyboardInterrupt`` is raised when the user asks to stop; solutions found by then are
        taken before.
        """

    @abstractmethod
    def can_build(self, structure: Structure, budget: Budget) -> bool:
        """Say whether a model can be built in good time before a budget is spent."""

    def improve(self) -> None:
        """Improve the incumbent in some other way, where its model was not searched to the end."""

    @property
    def is_done(self) -> bool:
        """Whether the gap asked for is reached, or no plan exists."""
        return self.incumbent.is_enough or bool(self.infeasible)

    def offer(self, plan: Plan) -> bool:
        """Take a plan that the checker accepts as incumbent if it is better; say if it accepts."""
        if not self.context.accepts(plan):
            return False
        if self.context.values(plan)[0] < self.incumbent.bound.value:
            # No plan is below a bound, so the solver was wrong that has claimed to prove it.
            self.incumbent.bound = self.context.bound
        if self.incumbent.offer(plan):
            self.builder.represent(Reading(self.problem, plan))
        return True

    def find_and_prove(self, plans: Budget) -> None:
        """Search plans and proofs in turn, with more candidates each time a proof needs them.

        Where nothing limits the model of plans, its bound is a proof.
        """
        while not self.is_done and not self.clock.is_over(PROOF.share):
            found, is_exact = self.find_plans(plans), self.builder.is_exact()
            if not is_exact and (found is None or not found.complete):
                self.improve()
            if found is not None and is_exact:
                self._conclude(found)
            if self.is_done or not self._prove():
                return

    def find_plans(
        self, budget: Budget, structure: Structure | None = None, position: int = 0
    ) -> Found | None:
        """Improve one of the quantities within a structure, by default the whole problem's.

        Returns the last run; ``None`` if its best solution has no addresses, or time was out
        before.
        """
        for _ in range(ROUNDS):
            if self.clock.is_over(budget.share):
                return None
            within = structure or self.structure(relaxed=False)
            if not self.can_build(within, budget):
                return None
            found = self.solve(self.model(within, position), budget, finds=position == 0)
            conflict = self.take(found)
            if conflict is None:
                return found
            if not self._learn(conflict):
                return None
        return None

    def _prove(self) -> bool:
        """Search the relaxation for anything better; say whether more candidates may help.

        A solution that is better and uses nothing late would be a plan if it had addresses.
        """
        for _ in range(ROUNDS):
            structure = self.structure(relaxed=True)
            if not self.can_build(structure, PROOF):
                return False
            found = self.solve(self.model(structure, 0), PROOF, proves=True)
            self._conclude(found)
            conflict = self.take(found)
            if self.is_done or not found.solutions or not found.complete:
                return False
            late = found.solutions[-1].late
            if late:
                return self.builder.add_candidates(late)
            if conflict is None or not self._learn(conflict):
                return False
        return False

    def break_ties(self, deterministic: float | None = None) -> None:
        """Make the later quantities small in turn, each with those before it held."""
        for position in range(1, len(self.order)):
            if self.incumbent.plan is None or self.clock.is_over(TIES):
                return
            if self.order[position] is Quantity.PEAK_SPM:
                self.builder.ample = False
            self.find_plans(Budget(TIES, deterministic), position=position)

    def result(self, options: tuple[tuple[str, str], ...] = ()) -> SolverResult:
        """Return what was found, or why nothing was."""
        plan, bound = self.incumbent.plan, self.incumbent.bound
        if plan is not None:
            return self.context.found(plan, bound, self.name, options)
        if self.infeasible:
            return self.context.infeasible(self.infeasible, bound)
        reason = "a limit was reached before a plan was found"
        if self._start.reason:
            reason += f"; where the list scheduler got stuck: {self._start.reason}"
        return self.context.unknown(reason, bound)

    def structure(self, *, relaxed: bool) -> Structure:
        """Return the structure of the whole problem."""
        return self.builder.structure(relaxed=relaxed, addressed=self.addressed_memories())

    def addressed_memories(self) -> frozenset[MemoryIdx]:
        """Return the memories whose addresses the models know."""
        memories = frozenset(self._conflict_sets) | self.tables.fixed_memories
        if self._knows_addresses(0):
            spms = (m for m in self.tables.machine.memories if m.kind is MemoryKind.SPM)
            memories |= {memory.index for memory in spms}
        return memories

    def model(self, structure: Structure, position: int) -> Model:
        """Return the model that makes one of the quantities small within a structure."""
        quantity, incumbent = self.order[position], self.incumbent
        known = incumbent.bound if position == 0 else self.context.bound_on(quantity)
        plan = incumbent.plan
        return Model(
            self.tables,
            structure,
            Addressed(
                conflict_sets=self._conflict_sets, everywhere=self._knows_addresses(position)
            ),
            quantity,
            horizon=self._horizon(structure, position),
            low=known.value,
            high=None if plan is None else incumbent.values[position],
            ceilings=dict(zip(self.order[:position], incumbent.values, strict=False)),
            reading=None if plan is None else Reading(self.problem, plan),
        )

    def _knows_addresses(self, position: int) -> bool:
        """Say whether every address in a scratchpad is in the model, as the peak needs it."""
        wanted = Quantity.PEAK_SPM in self.order[: position + 1]
        asked = self.settings.addresses_in_model
        if asked is None:
            moves_bytes = self.order[0] in (Quantity.DRAM_TRAFFIC, Quantity.ENERGY)
            asked = moves_bytes and len({pool.memory for pool in self.tables.pools}) == 1
        return wanted or asked

    def _horizon(self, structure: Structure, position: int) -> Cycles:
        """Return a cycle by which some best plan has ended.

        Where the makespan is an objective up to this one, the incumbent's. Otherwise all tasks and
        transfers one after another: a plan in which nothing happens at some cycle can be shortened.
        """
        makespan = 0
        if self.incumbent.plan is not None:
            makespan = self.incumbent.plan.claim.makespan
            if Quantity.MAKESPAN in self.order[: position + 1]:
                return makespan
        return max(makespan, structure.sequential_cycles(self.tables))

    def take(self, found: Found) -> ConflictSet | None:
        """Make the best solution with addresses the incumbent.

        Returns the conflict set for which a better solution has none; ``None`` if all goes well.
        """
        stopped = None
        for decisions in reversed(found.solutions):
            if decisions.late:
                continue
            conflict = self._take_one(decisions)
            if conflict is None:
                break
            stopped = stopped or conflict
        return stopped

    def _take_one(self, decisions: Decisions) -> ConflictSet | None:
        timed = extract(self.tables, decisions)
        low = self.order[0] is Quantity.PEAK_SPM
        found = find_addresses(self.tables, timed, low=low, clock=self.clock)
        if isinstance(found, ConflictSet):
            return found
        if self.offer(found.plan(self.tables, timed, self.incumbent.bound, self.name)):
            return None
        # An engine cannot reach the addresses of both ends of a transfer.
        return ConflictSet(memory=self.tables.machine.memories[0].index, items=frozenset())

    def _learn(self, conflict: ConflictSet) -> bool:
        """Model the addresses of a conflict set from now on; say whether that is new."""
        if not conflict.items:
            return False
        if self.builder.ample and any(self._lasts(item) for item in conflict.items):
            self.builder.ample = False
            return True
        known = self._conflict_sets.get(conflict.memory, ())
        self._conflict_sets[conflict.memory] = (*known, conflict.items)
        return conflict.items not in known

    def _lasts(self, item: Item) -> bool:
        """Say whether the model of plans has no address for an item of a memory of limited size."""
        lasting = self.builder.scope(relaxed=False).lasting
        return isinstance(item, CandidateResidency) and item[:2] in lasting

    def _conclude(self, found: Found) -> None:
        """Take what a run has proven, of a model whose optimum is no worse than the problem's."""
        value = self.incumbent.value
        if found.infeasible and value is None:
            self.conclude_infeasible()
        elif found.infeasible and value is not None:
            self.incumbent.prove(value)
        elif found.bound is not None:
            self.incumbent.prove(found.bound)

    def conclude_infeasible(self) -> None:
        """Note that no plan exists, and why."""
        relaxed = self.builder.structure(relaxed=True)
        self.infeasible = why_infeasible(self.tables, relaxed, self.context.options.seed)
