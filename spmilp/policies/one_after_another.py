"""A plan in which one thing happens after another, written down step by step, then made short.

A policy says what is loaded, what runs and what is stored, in which order; this module keeps the
times and the numbers of residencies. Such a plan is valid whatever the cycles; its times are made
short once it has addresses.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spmilp.bounds.best import Bound
from spmilp.errors import SpmilpError
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.formulation.addresses import ConflictSet, find_addresses
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.formulation.extraction import Decisions, Fill, TaskRun, extract
from spmilp.solvers.exact.formulation.tables import ProblemTables, TransferOption
from spmilp.solvers.justify.shortening import repacked_plan, shortened
from spmilp.units import BufferIdx, CoreIdx, Cycles, MemoryIdx, SliceIdx, TaskIdx


class NotTakenError(SpmilpError):
    """A policy does not take a problem; the message says what of it, and why."""


def the_dram(problem: Problem, policy: str) -> MemoryIdx:
    """Return the one DRAM in which all data begins and ends, and in which no core works.

    Raises
    ------
    NotTakenError
        If there is another number of DRAMs, a core works in one, or data begins or ends elsewhere.
    """
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


def quickest_transfer(
    tables: ProblemTables,
    slice_: SliceIdx,
    holder: SliceIdx,
    source: MemoryIdx,
    destination: MemoryIdx,
) -> TransferOption | None:
    """Return the quickest transfer of a slice out of what holds it; ``None`` without any."""
    able = tables.transfers.out_of(holder, slice_, source, destination)
    return min(able, key=lambda one: (one.cycles, one.engine), default=None)


@dataclass(frozen=True, slots=True)
class _Overwrite:
    task: TaskIdx
    old: CandidateResidency
    new: CandidateResidency


class OneAfterAnother:
    """Takes down what a policy does, in order.

    Parameters
    ----------
    dram
        Where data begins and ends.
    """

    def __init__(self, tables: ProblemTables, dram: MemoryIdx) -> None:
        self._tables = tables
        self._dram = dram
        self._now: Cycles = 0
        self._loads: Counter[tuple[SliceIdx, MemoryIdx]] = Counter()
        self._runs: dict[TaskIdx, TaskRun] = {}
        self._served: dict[tuple[TaskIdx, int], CandidateResidency] = {}
        self._overwrites: list[_Overwrite] = []
        self._fills = {
            self.in_dram(buffer.index): Fill(start=0)
            for buffer in tables.problem.buffers
            if buffer.starts_in == dram
        }
        self._initial = frozenset(self._fills)

    def in_dram(self, buffer: BufferIdx) -> CandidateResidency:
        """Return the residency of a whole buffer in DRAM."""
        return CandidateResidency(buffer, self._dram, 0)

    def load(self, slice_: SliceIdx, memory: MemoryIdx) -> CandidateResidency:
        """Copy a slice out of its buffer in DRAM, next; return where it lies then."""
        buffer = self._tables.problem.slices[slice_].buffer
        return self.copy(self.in_dram(buffer), slice_, memory)

    def copy(
        self, held: CandidateResidency, slice_: SliceIdx, memory: MemoryIdx
    ) -> CandidateResidency:
        """Copy a slice out of what holds it to a scratchpad, next; return where it lies then."""
        self._loads[slice_, memory] += 1
        found = CandidateResidency(slice_, memory, self._loads[slice_, memory])
        self._move(held, found)
        return found

    def run(
        self, task: TaskIdx, pool: int, operands: Sequence[CandidateResidency]
    ) -> dict[BufferIdx, CandidateResidency]:
        """Run a task next, its reads served by these residencies; return where its results lie."""
        start, memory = self._now, self._tables.pools[pool].memory
        self._now += self._tables.cycles_on(task, pool)
        self._runs[task] = TaskRun(pool=pool, start=start, end=self._now)
        for position, operand in enumerate(operands):
            self._served[task, position] = operand
        results = {
            buffer: CandidateResidency(buffer, memory, 0)
            for buffer in self._tables.problem.tasks[task].writes
        }
        self._fills.update(dict.fromkeys(results.values(), Fill(start=start)))
        return results

    def overwrite(self, task: TaskIdx, old: CandidateResidency, new: CandidateResidency) -> None:
        """Let a result of a task take over the bytes of an operand."""
        self._overwrites.append(_Overwrite(task, old, new))

    def store(self, held: CandidateResidency) -> None:
        """Copy a buffer to DRAM, next."""
        self._move(held, self.in_dram(held.slice))

    def decisions(self) -> Decisions:
        """Return all that was taken down, once every task has run."""
        problem = self._tables.problem
        return Decisions(
            runs=tuple(self._runs[task.index] for task in problem.tasks),
            fills=self._fills,
            served=self._served,
            outputs=tuple(
                self.in_dram(buffer.index)
                for buffer in problem.buffers
                if buffer.ends_in == self._dram and self.in_dram(buffer.index) in self._fills
            ),
            lasting=frozenset(k for k in self._initial if self._tables.at_place(*k[:2])),
            in_place=tuple((one.task, one.old, one.new) for one in self._overwrites),
        )

    def _move(self, source: CandidateResidency, target: CandidateResidency) -> None:
        ends = (source.memory, target.memory)
        option = quickest_transfer(self._tables, target.slice, source.slice, *ends)
        if option is None:
            raise no_way(self._tables.problem, target.slice, ends)
        self._fills[target] = Fill(
            start=self._now, source=source, engine=option.engine, root=target
        )
        self._now += option.cycles


def no_way(problem: Problem, slice_: SliceIdx, ends: tuple[MemoryIdx, MemoryIdx]) -> NotTakenError:
    """Return that no engine moves a slice between two memories."""
    names = [problem.machine.memories[memory].name for memory in ends]
    buffer = problem.buffers[problem.slices[slice_].buffer].name
    size = problem.slices[slice_].bytes
    return NotTakenError(
        f"no engine moves {buffer} ({size} B) from {names[0]} to {names[1]} in one transfer"
    )


def addressed(
    tables: ProblemTables, decisions: Decisions, cores: Mapping[TaskIdx, CoreIdx], bound: Bound
) -> Plan | ConflictSet:
    """Return the plan of decisions, with addresses; or residencies that have none together.

    Parameters
    ----------
    cores
        On which each task runs, one of its pool's.
    """
    timed = extract(tables, decisions)
    placements = tuple(replace(one, core=cores[one.task]) for one in timed.placements)
    timed = replace(timed, placements=placements)
    found = find_addresses(tables, timed, low=False)
    if isinstance(found, ConflictSet):
        return found
    return found.plan(tables, timed, bound, "")


def made_short(context: SearchContext, plan: Plan, *, keeps_transfers: bool = False) -> Plan:
    """Return a plan with the same decisions and short times, at new addresses if that helps.

    Parameters
    ----------
    keeps_transfers
        Whether transfers stay that are not needed, or that could bypass DRAM.
    """
    short, seconds = shortened(context, plan), context.clock.seconds_left()
    if seconds == 0.0:
        return short
    return repacked_plan(context, short, seconds, keeps_transfers=keeps_transfers)
