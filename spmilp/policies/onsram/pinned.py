"""Plans in which some structures are pinned, and all others go through DRAM task by task."""

from collections.abc import Callable, Iterator, Sequence

from spmilp.plan.plan import Plan
from spmilp.policies.one_after_another import (
    NotTakenError,
    OneAfterAnother,
    addressed,
    made_short,
    the_dram,
)
from spmilp.policies.onsram.order import breadth_or_depth_first, task_classes
from spmilp.policies.onsram.structure import Pins
from spmilp.policies.onsram.task_structures import TaskStructures
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.formulation.addresses import ConflictSet
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.list_scheduler.assignments import contiguous
from spmilp.solvers.residency.scope import TaskSequence
from spmilp.units import CoreIdx, MemoryIdx, TaskIdx


class PinnedPlans:
    """Makes plans of one problem, on given cores in a given order.

    Parameters
    ----------
    policy
        Named by refusals.

    Raises
    ------
    NotTakenError
        If the problem is none for pinning, or a task does not fit with all that it streams.
    """

    def __init__(self, context: SearchContext, policy: str) -> None:
        self._context = context
        self._policy = policy
        self._tables = tables = ProblemTables(context.problem)
        dram = the_dram(context.problem, policy)
        self._cores = cores_of(tables)
        self.structures = structures_of(tables, self._cores, dram)
        for reason in misfits(self.structures, policy):
            raise NotTakenError(reason)

    def result(self, pins: Pins, plan: Plan | None) -> SolverResult:
        """Return the answer that a plan is, with times made short."""
        if plan is None:
            name = self._context.problem.name
            return self._context.unknown(f"{name}: no addresses, even with nothing pinned")
        bound = self._context.bound
        plan = made_short(self._context, plan)
        self._context.report(self._context.values(plan)[0], bound.value, self._policy)
        candidates = len(self.structures.all)
        options = (("pinned", str(len(pins))), ("candidates", str(candidates)))
        return self._context.found(plan, bound, self._policy, options)

    def in_turn(
        self, order: Sequence[int], choose: Callable[[Sequence[int]], Pins]
    ) -> tuple[Pins, Plan | None]:
        """Return what is chosen in an order, and its plan.

        Of structures that have no addresses together the last one is left out from then on.
        """
        while True:
            pins = choose(order)
            found = self.plan(pins)
            if isinstance(found, Plan):
                return pins, found
            rivals = self.rivals(found, pins)
            if not rivals:
                return pins, None
            last = max(rivals, key=order.index)
            order = tuple(index for index in order if index != last)

    def plan(self, pins: Pins) -> Plan | ConflictSet:
        """Return the plan of some pins; or what has no addresses together."""
        decisions = self._taken_down(pins).decisions()
        return addressed(
            self._tables, decisions, dict(enumerate(self._cores)), self._context.fast_bound
        )

    def rivals(self, found: ConflictSet, pins: Pins) -> Pins:
        """Return the pinned structures among those that have no addresses together."""
        numbers = (
            self.structures.find(item.slice, item.memory)
            for item in found.items
            if isinstance(item, CandidateResidency)
        )
        return frozenset(one for one in numbers if one is not None and one in pins)

    def _taken_down(self, pins: Pins) -> OneAfterAnother:
        structures, tables = self.structures, self._tables
        written = OneAfterAnother(tables, structures.dram)
        held: dict[int, CandidateResidency] = {}
        for number, step in enumerate(structures.steps):
            pool = structures.sequence.pools[step.task]
            operands = self._operands(number, pins, written, held)
            results = written.run(step.task, pool, operands)
            for one in structures.chosen_overwrites(number, pins):
                written.overwrite(step.task, operands[one.position], results[one.buffer])
            for buffer, result in results.items():
                index = structures.find(buffer, step.memory)
                if index is not None and index in pins:
                    held[index] = result
                if self._goes_to_dram(buffer, index, pins):
                    written.store(result)
        return written

    def _goes_to_dram(self, buffer: int, index: int | None, pins: Pins) -> bool:
        if buffer in self.structures.stored:
            return True
        return self.structures.is_read(buffer) and index not in pins

    def _operands(
        self,
        number: int,
        pins: Pins,
        written: OneAfterAnother,
        held: dict[int, CandidateResidency],
    ) -> list[CandidateResidency]:
        """Load what is not held, each once; return what serves each read."""
        step, problem = self.structures.steps[number], self._tables.problem
        streamed: dict[int, CandidateResidency] = {}
        operands = []
        for holder in step.holders:
            buffer = problem.slices[holder].buffer
            index = self.structures.find(buffer, step.memory)
            if index is not None and index in pins:
                if index not in held:
                    held[index] = written.load(buffer, step.memory)
                operands.append(held[index])
                continue
            if holder not in streamed:
                streamed[holder] = written.load(holder, step.memory)
            operands.append(streamed[holder])
        return operands


def misfits(structures: TaskStructures, policy: str) -> Iterator[str]:
    """Yield which tasks do not fit their memory with nothing pinned, and by how much."""
    problem = structures.tables.problem
    for number, step in enumerate(structures.steps):
        capacity, used = structures.capacity(number), structures.used(number, Pins())
        if capacity is not None and used > capacity:
            memory = problem.machine.memories[step.memory]
            block = memory.alignment
            yield (
                f"task {problem.tasks[step.task].name}: {policy} streams {used * block} B > "
                f"{capacity * block} B in {memory.name}; use smaller tiles or a larger scratchpad"
            )


def cores_of(tables: ProblemTables) -> tuple[CoreIdx, ...]:
    """Return the core of each task: runs of neighbouring tiles of an operator on each.

    A task whose core is open, or too small for its results, gets the first core that can run it.

    Raises
    ------
    NotTakenError
        If no core can.
    """
    chosen = contiguous(tables.problem).tolist()
    return tuple(_able_core(tables, task, core) for task, core in enumerate(chosen))


def _able_core(tables: ProblemTables, task: TaskIdx, chosen: CoreIdx) -> CoreIdx:
    able = [core for pool in tables.pools_of(task) for core in tables.pools[pool].cores]
    if not able:
        name = tables.problem.tasks[task].name
        raise NotTakenError(f"task {name}: no core that can run it has room for its results")
    return chosen if chosen in able else able[0]


def structures_of(
    tables: ProblemTables, cores: Sequence[CoreIdx], dram: MemoryIdx
) -> TaskStructures:
    """Return the structures of the policy's own order, each task on its core."""
    pool_of = {core: pool.index for pool in tables.pools for core in pool.cores}
    pools = tuple(pool_of[core] for core in cores)
    order = breadth_or_depth_first(tables.predecessors, task_classes(tables, pools, dram))
    return TaskStructures(tables, TaskSequence(order, pools), dram)
