"""OnSRAM, eager: what to hold in a scratchpad is guessed from what came of results like it.

The paper's eager variant works without the graph, by speculation on the history of operations; its
rule could not be read. Assumed here:

- Tasks are known one at a time, in the order of the problem. The framework frees a buffer when its
  last reader has run; nothing else is known of what comes.
- Results are of one pattern if tasks of the same cycles, with operands and results of the same
  sizes, write them. How often results of a pattern have been read where they were written is the
  guess for the next one; the first of a pattern is guessed to be read once.
- A result of which a read is expected is held where it was written, if there is room. Where there
  is none, what has least reads to come for each block goes first, to DRAM if there is no copy.
- Any other result goes to DRAM at once. What is loaded serves one task.
- Tasks on other cores read a buffer from DRAM, where it is stored when one of them asks for it.
- Where what is held has no addresses together, all memories are filled less.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spmilp.plan.plan import Plan
from spmilp.policies.one_after_another import (
    NotTakenError,
    OneAfterAnother,
    addressed,
    made_short,
    the_dram,
)
from spmilp.policies.onsram import cores_of, misfits
from spmilp.policies.structures import Overwrite, TaskStructures
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.common.solver import Solver
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.traffic.scope import TaskSequence
from spmilp.units import BufferIdx, CoreIdx, MemoryIdx, TaskIdx

SHARES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.25, 0.0)
"""Of each memory, that may be filled with what is held and what a task needs."""

Pattern = tuple[object, ...]


class EagerOnSram(Solver):
    """Holds results of which reads are expected by what came of results like them."""

    name = "onsram:eager"

    def search(self, context: SearchContext) -> SolverResult:
        """Return the plan of the policy; a problem that it does not take stays without one."""
        if context.misfit:
            return context.infeasible(context.misfit)
        try:
            return self._result(context)
        except NotTakenError as error:
            return context.unknown(str(error))

    def _result(self, context: SearchContext) -> SolverResult:
        tables = ProblemTables(context.problem)
        cores = cores_of(tables)
        structures = structures_as_they_come(tables, cores, self.name)
        for reason in misfits(structures, self.name):
            raise NotTakenError(reason)
        for part in SHARES:
            written = Runtime(structures, part).run()
            plan = addressed(
                tables, written.decisions(), dict(enumerate(cores)), context.fast_bound
            )
            if isinstance(plan, Plan):
                plan, bound = made_short(context, plan), context.bound
                context.report(context.values(plan)[0], bound.value, self.name)
                return context.found(plan, bound, self.name, (("filled", f"{part:g}"),))
        return context.unknown(f"{context.problem.name}: no addresses, even with nothing held")


def structures_as_they_come(
    tables: ProblemTables, cores: Sequence[CoreIdx], policy: str
) -> TaskStructures:
    """Return the structures of the problem's own order, each task on its core."""
    dram = the_dram(tables.problem, policy)
    pool_of = {core: pool.index for pool in tables.pools for core in pool.cores}
    order = tuple(tables.problem.topological_order())
    return TaskStructures(tables, TaskSequence(order, tuple(pool_of[core] for core in cores)), dram)


@dataclass(slots=True)
class _Held:
    """A result where it was written.

    Parameters
    ----------
    expected
        Reads that the history makes us expect in all.
    """

    residency: CandidateResidency
    blocks: int
    pattern: Pattern
    expected: float
    reads: int = 0

    @property
    def worth(self) -> float:
        """Reads to come for each block; never less than 0."""
        return max(0.0, self.expected - self.reads) / self.blocks


class _Past(NamedTuple):
    """What came of the results of a pattern: how many there were, and reads where they lay."""

    results: Counter[Pattern]
    reads: Counter[Pattern]

    def guess(self, pattern: Pattern) -> float:
        count = self.results[pattern]
        return self.reads[pattern] / count if count else 1.0


@dataclass(slots=True)
class _Memory:
    """What is held in one memory, and how many blocks it takes."""

    held: dict[BufferIdx, _Held] = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        return sum(one.blocks for one in self.held.values())


class Runtime:
    """Runs tasks as they come.

    Parameters
    ----------
    part
        Of each memory, that may be filled.
    """

    def __init__(self, structures: TaskStructures, part: float) -> None:
        self._structures = structures
        self._tables = structures.tables
        self._problem = structures.tables.problem
        self._part = part
        self._written = OneAfterAnother(self._tables, structures.dram)
        self._past = _Past(Counter(), Counter())
        self._memories: dict[MemoryIdx, _Memory] = defaultdict(_Memory)
        self._home: dict[BufferIdx, MemoryIdx] = {}
        self._in_dram = {b.index for b in self._problem.buffers if b.starts_in is not None}
        self._readers = Counter(
            buffer for task in self._problem.tasks for buffer in self._buffers_of(task.index)
        )

    def run(self) -> OneAfterAnother:
        """Run all tasks, one after another."""
        for number in range(len(self._structures.steps)):
            self._step(number)
        return self._written

    def _buffers_of(self, task: TaskIdx) -> set[BufferIdx]:
        return {self._problem.slices[read].buffer for read in self._problem.tasks[task].reads}

    def _step(self, number: int) -> None:
        step = self._structures.steps[number]
        memory, task = self._memories[step.memory], self._problem.tasks[step.task]
        read = self._buffers_of(step.task)
        kept = read & memory.held.keys()
        self._make_room(step.memory, self._blocks(number, kept), kept)
        operands = self._operands(number)
        results = self._written.run(step.task, self._structures.sequence.pools[step.task], operands)
        for one in self._overwrites(number, kept):
            self._written.overwrite(step.task, operands[one.position], results[one.buffer])
        for buffer in kept:
            memory.held[buffer].reads += 1
            self._past.reads[memory.held[buffer].pattern] += 1
        for buffer in read:
            self._readers[buffer] -= 1
            if not self._readers[buffer]:
                self._forget(buffer)
        pattern = (
            task.cycles,
            tuple(sorted(self._problem.slices[one].bytes for one in task.reads)),
            tuple(self._problem.slices[one].bytes for one in task.writes),
        )
        for buffer, residency in results.items():
            self._keep_or_store(buffer, residency, (*pattern, buffer - task.writes[0]))

    def _blocks(self, number: int, kept: set[BufferIdx]) -> int:
        """Return what a task needs beside what is held."""
        step = self._structures.steps[number]
        spared = {one for one in step.holders if self._problem.slices[one].buffer in kept}
        shared = sum(one.blocks for one in self._overwrites(number, kept))
        return step.blocks - shared - sum(self._tables.blocks_of(o, step.memory) for o in spared)

    def _overwrites(self, number: int, kept: set[BufferIdx]) -> list[Overwrite]:
        """Return which results take over which operands: loaded ones, and held ones at their end.

        Of each operand and each result one at most, the largest first.
        """
        step, found = self._structures.steps[number], list[Overwrite]()
        for one in sorted(step.overwrites, key=lambda one: -one.blocks):
            read = self._problem.tasks[step.task].reads[one.position]
            operand = self._problem.slices[read].buffer
            is_whole = read < len(self._problem.buffers)
            if operand in kept and not (is_whole and self._readers[operand] == 1):
                continue
            if all(one.position != o.position and one.buffer != o.buffer for o in found):
                found.append(one)
        return found

    def _operands(self, number: int) -> list[CandidateResidency]:
        """Load what is not held here, each once; return what serves each read."""
        step, streamed, found = self._structures.steps[number], {}, []
        held = self._memories[step.memory].held
        for holder in step.holders:
            buffer = self._problem.slices[holder].buffer
            if buffer in held:
                found.append(held[buffer].residency)
                continue
            if holder not in streamed:
                self._store_where_it_is_held(buffer)
                streamed[holder] = self._written.load(holder, step.memory)
            found.append(streamed[holder])
        return found

    def _keep_or_store(
        self, buffer: BufferIdx, residency: CandidateResidency, pattern: Pattern
    ) -> None:
        memory, blocks = residency.memory, self._tables.blocks_of(buffer, residency.memory)
        one = _Held(residency, blocks, pattern, self._past.guess(pattern))
        self._past.results[pattern] += 1
        if self._problem.buffers[buffer].ends_in is not None:
            self._store(buffer, one)
        if not self._readers[buffer]:
            return
        self._memories[memory].held[buffer] = one
        self._home[buffer] = memory
        if one.worth <= 0.0:
            self._let_go(buffer)

    def _make_room(self, memory: MemoryIdx, needed: int, kept: set[BufferIdx]) -> None:
        """Let go what is worth least until a task's needs fit beside the rest."""
        capacity, held = self._tables.capacity[memory], self._memories[memory].held
        if capacity is None:
            return
        limit = max(needed, int(self._part * capacity))
        while self._memories[memory].blocks + needed > limit and held.keys() - kept:
            others = held.keys() - kept
            self._let_go(min(others, key=lambda one: (held[one].worth, one)))
        # Nothing else is held now: an operand that is in the way of the others is loaded again.
        while self._memories[memory].blocks + needed > capacity and kept:
            buffer = min(kept, key=lambda one: (held[one].worth, one))
            kept.discard(buffer)
            self._let_go(buffer)
            needed += self._tables.blocks_of(buffer, memory)

    def _let_go(self, buffer: BufferIdx) -> None:
        self._store_where_it_is_held(buffer)
        self._forget(buffer)

    def _forget(self, buffer: BufferIdx) -> None:
        home = self._home.pop(buffer, None)
        if home is not None:
            del self._memories[home].held[buffer]

    def _store_where_it_is_held(self, buffer: BufferIdx) -> None:
        if buffer in self._home:
            self._store(buffer, self._memories[self._home[buffer]].held[buffer])

    def _store(self, buffer: BufferIdx, one: _Held) -> None:
        if buffer not in self._in_dram:
            self._written.store(one.residency)
            self._in_dram.add(buffer)
