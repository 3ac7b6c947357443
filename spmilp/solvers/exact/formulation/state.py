"""The state of one search: what models know, the best plan and bound, or why no plan exists."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

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

    Parameters
    ----------
    infeasible
        It is proven that the model has no solution.
    complete
        The search has come to its end: the best solution is the model's best.
    bound
        Proven on the model's objective; ``None`` when nothing is known.
    solutions
        The last few, the best one last.
    interrupted
        The user has asked to stop.
    """

    infeasible: bool = False
    complete: bool = False
    bound: int | None = None
    solutions: list[Decisions] = field(default_factory=list)
    interrupted: bool = False
    deterministic: float = 0.0


Options = TypeVar("Options", bound=ModelOptions)


class SearchState(Generic[Options]):
    """What every step of one search reads and changes.

    Parameters
    ----------
    start
        The list scheduler's answer: its bound, and the reason if it has no plan.
    name
        Of the solver.

    Attributes
    ----------
    infeasible
        Why no plan exists, once that is proven; empty before.
    note
        What the plan is to say of how it was made.
    """

    def __init__(
        self, context: SearchContext, settings: Options, start: SolverResult, name: str
    ) -> None:
        self.context = context
        self.name = name
        self.problem = context.problem
        self.clock = context.clock
        self.settings = settings
        self.tables = ProblemTables(self.problem)
        self.order = self.problem.objective.order
        self.builder = StructureBuilder(self.tables, settings)
        self.builder.ample = self.order[0] is not Quantity.PEAK_SPM
        self.incumbent = Incumbent(
            context, Bound(start.bound_source, self.order[0], start.bound), name
        )
        self.infeasible = ""
        self.note = ""
        self._conflict_sets: dict[MemoryIdx, tuple[frozenset[Item], ...]] = {}

    @property
    def is_done(self) -> bool:
        """Whether the gap asked for is reached."""
        return self.incumbent.is_enough

    @property
    def enough(self) -> int:
        """The value of the first quantity at which the gap asked for is reached."""
        bound = self.incumbent.bound.value
        return max(bound, int(bound / max(1e-9, 1.0 - self.context.options.gap)))

    def offer(self, plan: Plan) -> None:
        """Take a valid plan as incumbent if it is better than the one there is."""
        if self.incumbent.offer(plan):
            self.builder.represent(Reading(self.problem, plan))

    def reading(self) -> Reading | None:
        """Return the incumbent in the model's terms."""
        plan = self.incumbent.plan
        return None if plan is None else Reading(self.problem, plan)

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
        return Model(
            self.tables,
            structure,
            self.settings,
            Addressed(
                conflict_sets=self._conflict_sets, everywhere=self._knows_addresses(position)
            ),
            quantity,
            horizon=self._horizon(structure, position),
            low=known.value,
            high=None if incumbent.plan is None else incumbent.values[position],
            ceilings=dict(zip(self.order[:position], incumbent.values, strict=False)),
            reading=self.reading(),
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
        found = find_addresses(self.tables, timed, low=low, clock=self.context.clock)
        if isinstance(found, ConflictSet):
            return found
        self.offer(found.plan(self.tables, timed, self.incumbent.bound, self.name))
        return None

    def learn(self, conflict: ConflictSet) -> bool:
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

    def conclude(self, found: Found) -> None:
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
