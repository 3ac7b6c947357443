"""The policy as a solver: an order, the structures that are pinned, and their plan."""

from collections.abc import Iterator, Sequence

from spmilp.plan.plan import Plan
from spmilp.policies.one_after_another import (
    NotTakenError,
    OneAfterAnother,
    addressed,
    made_short,
    the_dram,
)
from spmilp.policies.onsram.exact import PinningProgram
from spmilp.policies.onsram.merit import by_merit, filled_up, pinned_in_turn
from spmilp.policies.onsram.order import breadth_or_depth_first, task_classes
from spmilp.policies.onsram.structure import Pins
from spmilp.policies.onsram.task_structures import TaskStructures
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.formulation.addresses import ConflictSet
from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.list_scheduler.assignments import contiguous
from spmilp.solvers.milp.messages import Limits
from spmilp.solvers.residency.scope import TaskSequence
from spmilp.units import CoreIdx, MemoryIdx, TaskIdx


class OnSram(Solver):
    """Pins data structures in scratchpads for their whole lives, and sends the rest through DRAM.

    Parameters
    ----------
    exact
        Choose what is pinned by a 0/1 program instead of the figure of merit.
    """

    def __init__(self, *, exact: bool = False) -> None:
        self._exact = exact
        self.name = "onsram:exact" if exact else "onsram"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the plan of the policy; a problem that it does not take stays without one."""
        if context.misfit:
            return context.infeasible(context.misfit)
        try:
            return _Policy(context, self.name).result(exact=self._exact)
        except NotTakenError as error:
            return context.unknown(str(error))


class _Policy:
    def __init__(self, context: SearchContext, name: str) -> None:
        self._context = context
        self._name = name
        self._tables = tables = ProblemTables(context.problem)
        dram = the_dram(context.problem, "onsram")
        self._cores = cores_of(tables)
        self._structures = structures_of(tables, self._cores, dram)

    def result(self, *, exact: bool) -> SolverResult:
        """Return the plan, with times made short."""
        reason = what_has_no_room(self._structures)
        if reason:
            return self._context.unknown(reason)
        pins, plan = self._by_merit()
        if exact and plan is not None:
            pins, plan = self._exactly(pins, plan)
        if plan is None:
            name = self._context.problem.name
            return self._context.unknown(f"{name}: no addresses, even with nothing pinned")
        bound = self._context.bound
        plan = made_short(self._context, plan)
        self._context.report(self._context.values(plan)[0], bound.value, self._name)
        candidates = len(self._structures.all)
        options = (("pinned", str(len(pins))), ("candidates", str(candidates)))
        return self._context.found(plan, bound, self._name, options)

    def _by_merit(self) -> tuple[Pins, Plan | None]:
        """Return pins by merit and their plan; the least of those without addresses is not one."""
        order = by_merit(self._structures)
        while True:
            pins = pinned_in_turn(self._structures, order)
            found = self._plan(pins)
            if isinstance(found, Plan):
                return pins, found
            rivals = self._rivals(found, pins)
            if not rivals:
                return pins, None
            least = max(rivals, key=order.index)
            order = tuple(index for index in order if index != least)

    def _exactly(self, pins: Pins, plan: Plan) -> tuple[Pins, Plan]:
        """Return the best pins with addresses; those by merit where none are found to be better."""
        structures, clock, options = self._structures, self._context.clock, self._context.options
        apart: list[Pins] = []
        with self._context.until_interrupted(lambda: True):
            while not clock.is_over():
                seconds = clock.seconds_left()
                limits = Limits(seconds=seconds, threads=options.workers, seed=options.seed)
                chosen = PinningProgram(structures, apart).solve(limits)
                if chosen is None or structures.cost(chosen) >= structures.cost(pins):
                    break
                filled = filled_up(structures, chosen)
                if isinstance(found := self._plan(filled), Plan):
                    return filled, found
                if isinstance(found := self._plan(chosen), Plan):
                    return chosen, found
                rivals = self._rivals(found, chosen)
                if not rivals:
                    break
                apart.append(rivals)
        return pins, plan

    def _plan(self, pins: Pins) -> Plan | ConflictSet:
        decisions = self._taken_down(pins).decisions()
        return addressed(
            self._tables, decisions, dict(enumerate(self._cores)), self._context.fast_bound
        )

    def _rivals(self, found: ConflictSet, pins: Pins) -> Pins:
        """Return the pinned structures among those that have no addresses together."""
        numbers = (
            self._structures.find(item.slice, item.memory)
            for item in found.items
            if isinstance(item, CandidateResidency)
        )
        return frozenset(one for one in numbers if one is not None and one in pins)

    def _taken_down(self, pins: Pins) -> OneAfterAnother:
        structures, tables = self._structures, self._tables
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
        if buffer in self._structures.stored:
            return True
        return self._structures.is_read(buffer) and index not in pins

    def _operands(
        self,
        number: int,
        pins: Pins,
        written: OneAfterAnother,
        held: dict[int, CandidateResidency],
    ) -> list[CandidateResidency]:
        """Load what is not held, each once; return what serves each read."""
        step, problem = self._structures.steps[number], self._tables.problem
        streamed: dict[int, CandidateResidency] = {}
        operands = []
        for holder in step.holders:
            buffer = problem.slices[holder].buffer
            index = self._structures.find(buffer, step.memory)
            if index is not None and index in pins:
                if index not in held:
                    held[index] = written.load(buffer, step.memory)
                operands.append(held[index])
                continue
            if holder not in streamed:
                streamed[holder] = written.load(holder, step.memory)
            operands.append(streamed[holder])
        return operands


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


def what_has_no_room(structures: TaskStructures) -> str:
    """Return which task does not fit its memory with nothing pinned; empty if all do."""
    return next(_misfits(structures), "")


def _misfits(structures: TaskStructures) -> Iterator[str]:
    problem: Problem = structures.tables.problem
    for number, step in enumerate(structures.steps):
        capacity, used = structures.capacity(number), structures.used(number, frozenset())
        if capacity is not None and used > capacity:
            memory = problem.machine.memories[step.memory]
            block = memory.alignment
            yield (
                f"task {problem.tasks[step.task].name}: onsram streams {used * block} B > "
                f"{capacity * block} B in {memory.name}; use smaller tiles or a larger scratchpad"
            )
