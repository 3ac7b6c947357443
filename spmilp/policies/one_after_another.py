"""What policies share: refusals, a core for each task, and a plan written down step by step.

A policy says what is loaded, what runs and what is stored, in which order. :class:`OneAfterAnother`
keeps the times and the numbers of residencies. Such a plan is valid whatever the cycles; its times
are made short once it has addresses.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from spmilp.bounds.best import Bound
from spmilp.errors import SpmilpError
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.formulation.addresses import ConflictSet, find_addresses
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.formulation.extraction import Decisions, Fill, TaskRun, extract
from spmilp.solvers.exact.formulation.tables import ProblemTables, TransferOption
from spmilp.solvers.justify.shortening import repacked_plan, shortened
from spmilp.solvers.schedule.assignments import contiguous
from spmilp.units import BufferIdx, CoreIdx, Cycles, MemoryIdx, SliceIdx, TaskIdx


class NotTakenError(SpmilpError):
    """A policy does not take a problem; the message says what of it, and why."""


class Policy(Solver):
    """A published system: it makes one plan of its own, or says why it does not take a problem."""

    def search(self, context: SearchContext) -> SolverResult:
        """Return the plan of the policy; a problem that it does not take stays without one."""
        if context.misfit:
            return context.infeasible(context.misfit)
        try:
            return self.find(context)
        except NotTakenError as error:
            return context.unknown(str(error))

    @abstractmethod
    def find(self, context: SearchContext) -> SolverResult:
        """Return the plan of the policy; a ``NotTakenError`` if it does not take the problem."""

    def answer(
        self,
        context: SearchContext,
        plan: Plan,
        options: tuple[tuple[str, str], ...] = (),
        *,
        is_short: bool = False,
        keeps_transfers: bool = False,
    ) -> SolverResult:
        """Return a plan as the policy's: with short times, at new addresses if that helps.

        Options are what the plan is to say of how it was made. If it ``is_short``, times stay as
        they are; ``keeps_transfers`` says whether those stay that could bypass DRAM.
        """
        bound = context.bound
        if not is_short:
            plan = shortened(context, plan)
            if context.clock.has_seconds(0.0):
                plan = repacked_plan(context, plan, keeps_transfers=keeps_transfers)
        context.report(context.values(plan)[0], bound.value, self.name)
        return context.found(plan, bound, self.name, options)


class Setting:
    """A problem with one DRAM, in which all data begins and ends, and a core for each task.

    Cores get runs of neighbouring tiles of each operator. A task whose core is open, or too small
    for its results, gets the first core that can run it.

    ``cores``, ``pools`` and ``memories`` have the core of each task, its pool, and the memory in
    which the task works.

    Raises a ``NotTakenError`` if there is another number of DRAMs, a core works in one, data begins
    or ends elsewhere, or no core has room for the results of a task.
    """

    def __init__(self, problem: Problem, policy: str) -> None:
        self.problem = problem
        self.tables = tables = ProblemTables(problem)
        self.dram = _the_dram(problem, policy)
        chosen = contiguous(problem).tolist()
        self.cores = [_able_core(tables, task, core) for task, core in enumerate(chosen)]
        pool_of = {core: pool.index for pool in tables.pools for core in pool.cores}
        self.pools = [pool_of[core] for core in self.cores]
        self.memories = [tables.pools[pool].memory for pool in self.pools]

    def buffer_of(self, slice_: SliceIdx) -> BufferIdx:
        """Return the buffer of which a slice is a part or the whole."""
        return self.problem.slices[slice_].buffer

    def cycles(self, task: TaskIdx) -> Cycles:
        """Return the cycles of a task on its core."""
        return self.tables.cycles_on(task, self.pools[task])

    def way(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, to: MemoryIdx
    ) -> TransferOption | None:
        """Return the quickest transfer of a slice out of what holds it; ``None`` without any."""
        able = self.tables.transfers.out_of(holder, slice_, source, to)
        return min(able, key=lambda one: (one.cycles, one.engine), default=None)

    def transfer(
        self, slice_: SliceIdx, holder: SliceIdx, source: MemoryIdx, to: MemoryIdx
    ) -> TransferOption:
        """Return the quickest transfer of a slice out of what holds it.

        Raises a ``NotTakenError`` if no engine moves it in one transfer.
        """
        option = self.way(slice_, holder, source, to)
        if option is None:
            raise self.no_way(slice_, source, to)
        return option

    def no_way(self, slice_: SliceIdx, source: MemoryIdx, to: MemoryIdx) -> NotTakenError:
        """Return that no engine moves a slice between two memories."""
        names = [self.problem.machine.memories[memory].name for memory in (source, to)]
        buffer = self.problem.buffers[self.buffer_of(slice_)].name
        return NotTakenError(
            f"no engine moves {buffer} ({self.problem.slices[slice_].bytes} B) from {names[0]} to "
            f"{names[1]} in one transfer"
        )

    def demand_room(self, policy: str, task: TaskIdx, blocks: int) -> None:
        """Refuse a task that does not fit its memory with all that it streams, in blocks."""
        memory = self.problem.machine.memories[self.memories[task]]
        capacity = self.tables.capacity[memory.index]
        if capacity is not None and blocks > capacity:
            raise NotTakenError(
                f"task {self.problem.tasks[task].name}: {policy} streams "
                f"{blocks * memory.alignment} B > {capacity * memory.alignment} B in "
                f"{memory.name}; use smaller tiles or a larger scratchpad"
            )

    def addressed(self, decisions: Decisions) -> Plan | ConflictSet:
        """Return the plan of decisions, with addresses; or residencies that have none together."""
        timed = extract(self.tables, decisions)
        placements = tuple(replace(one, core=self.cores[one.task]) for one in timed.placements)
        timed = replace(timed, placements=placements)
        found = find_addresses(self.tables, timed, low=False)
        if isinstance(found, ConflictSet):
            return found
        return found.plan(self.tables, timed, Bound("", self.problem.objective.first, 0), "")


def _the_dram(problem: Problem, policy: str) -> MemoryIdx:
    drams = [memory.index for memory in problem.machine.drams]
    if len(drams) != 1:
        raise NotTakenError(f"{policy} takes machines with 1 DRAM; this one has {len(drams)}")
    dram = drams[0]
    for core in problem.machine.cores:
        if core.memory == dram:
            raise NotTakenError(f"{policy} takes cores with a scratchpad; {core.name} has none")
    for buffer in problem.buffers:
        for end in (buffer.starts_in, buffer.ends_in):
            if end not in (None, dram):
                name = problem.machine.memories[end].name
                raise NotTakenError(
                    f"{policy} takes data that begins and ends in DRAM; buffer {buffer.name} "
                    f"({buffer.bytes} B) begins or ends in {name}"
                )
    return dram


def _able_core(tables: ProblemTables, task: TaskIdx, chosen: CoreIdx) -> CoreIdx:
    able = [core for pool in tables.pools_of(task) for core in tables.pools[pool].cores]
    if not able:
        name = tables.problem.tasks[task].name
        raise NotTakenError(f"task {name}: no core that can run it has room for its results")
    return chosen if chosen in able else able[0]


class OneAfterAnother:
    """Takes down what a policy does, in order."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._now: Cycles = 0
        self._loads: Counter[tuple[SliceIdx, MemoryIdx]] = Counter()
        self._runs: dict[TaskIdx, TaskRun] = {}
        self._served: dict[tuple[TaskIdx, int], CandidateResidency] = {}
        self._overwrites: list[tuple[TaskIdx, CandidateResidency, CandidateResidency]] = []
        self._initial = [
            self.in_dram(buffer.index)
            for buffer in setting.problem.buffers
            if buffer.starts_in == setting.dram
        ]
        self._fills = dict.fromkeys(self._initial, Fill(start=0))

    def in_dram(self, buffer: BufferIdx) -> CandidateResidency:
        """Return the residency of a whole buffer in DRAM."""
        return CandidateResidency(buffer, self._setting.dram, 0)

    def load(self, slice_: SliceIdx, memory: MemoryIdx) -> CandidateResidency:
        """Copy a slice out of its buffer in DRAM, next; return where it lies then."""
        return self.copy(self.in_dram(self._setting.buffer_of(slice_)), slice_, memory)

    def copy(self, held: CandidateResidency, slice_: SliceIdx, to: MemoryIdx) -> CandidateResidency:
        """Copy a slice out of what holds it to a scratchpad, next; return where it lies then."""
        self._loads[slice_, to] += 1
        found = CandidateResidency(slice_, to, self._loads[slice_, to])
        self._move(held, found)
        return found

    def run(
        self, task: TaskIdx, operands: Sequence[CandidateResidency]
    ) -> dict[BufferIdx, CandidateResidency]:
        """Run a task next, its reads served by these residencies; return where its results lie."""
        start, setting = self._now, self._setting
        self._now += setting.cycles(task)
        self._runs[task] = TaskRun(pool=setting.pools[task], start=start, end=self._now)
        for position, operand in enumerate(operands):
            self._served[task, position] = operand
        results = {
            buffer: CandidateResidency(buffer, setting.memories[task], 0)
            for buffer in setting.problem.tasks[task].writes
        }
        self._fills.update(dict.fromkeys(results.values(), Fill(start=start)))
        return results

    def overwrite(self, task: TaskIdx, old: CandidateResidency, new: CandidateResidency) -> None:
        """Let a result of a task take over the bytes of an operand."""
        self._overwrites.append((task, old, new))

    def store(self, held: CandidateResidency) -> None:
        """Copy a buffer to DRAM, next."""
        self._move(held, self.in_dram(held.slice))

    def decisions(self) -> Decisions:
        """Return all that was taken down, once every task has run."""
        problem, tables = self._setting.problem, self._setting.tables
        ends = [self.in_dram(b.index) for b in problem.buffers if b.ends_in == self._setting.dram]
        return Decisions(
            runs=tuple(self._runs[task.index] for task in problem.tasks),
            fills=self._fills,
            served=self._served,
            outputs=tuple(end for end in ends if end in self._fills),
            lasting=frozenset(k for k in self._initial if tables.at_place(k.slice, k.memory)),
            in_place=tuple(self._overwrites),
        )

    def plan(self) -> Plan | ConflictSet:
        """Return the plan, with addresses; or residencies that have none together."""
        return self._setting.addressed(self.decisions())

    def _move(self, source: CandidateResidency, target: CandidateResidency) -> None:
        way = self._setting.transfer(target.slice, source.slice, source.memory, target.memory)
        self._fills[target] = Fill(start=self._now, source=source, engine=way.engine, root=target)
        self._now += way.cycles
