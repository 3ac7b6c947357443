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
from dataclasses import dataclass

from spmilp.plan.plan import Plan
from spmilp.policies.one_after_another import OneAfterAnother, Policy, Setting
from spmilp.policies.structures import Overwrite, Step, TaskStructures, largest_first
from spmilp.solvers.base import SolverResult
from spmilp.solvers.common.context import SearchContext
from spmilp.solvers.exact.formulation.candidates import CandidateResidency
from spmilp.units import BufferIdx, MemoryIdx, TaskIdx

SHARES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.25, 0.0)
"""Shares of each memory that what is held and what a task needs may fill; tried in turn."""

Pattern = tuple[object, ...]


class EagerOnSram(Policy):
    """Holds results of which reads are expected by what came of results like them."""

    name = "onsram:eager"

    def find(self, context: SearchContext) -> SolverResult:
        """Return the plan of the fullest memories for which there are addresses."""
        structures = structures_as_they_come(Setting(context.problem, self.name))
        structures.demand_room(self.name)
        for part in SHARES:
            plan = Runtime(structures, part).run().plan()
            if isinstance(plan, Plan):
                return self.answer(context, plan, (("filled", f"{part:g}"),))
        return context.unknown(f"{context.problem.name}: no addresses, even with nothing held")


def structures_as_they_come(setting: Setting) -> TaskStructures:
    """Return the structures of the problem's own order."""
    return TaskStructures(setting, setting.problem.topological_order())


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


class Runtime:
    """Runs tasks as they come.

    Parameters
    ----------
    part
        Of each memory, that may be filled.
    """

    def __init__(self, structures: TaskStructures, part: float) -> None:
        self._structures = structures
        self._setting = structures.setting
        self._tables = structures.setting.tables
        self._problem = structures.setting.problem
        self._part = part
        self._written = OneAfterAnother(structures.setting)
        # What came of a pattern: how many results there were, and reads of them where they lay.
        self._results: Counter[Pattern] = Counter()
        self._reads: Counter[Pattern] = Counter()
        self._held: dict[MemoryIdx, dict[BufferIdx, _Held]] = defaultdict(dict)
        self._home: dict[BufferIdx, MemoryIdx] = {}
        self._in_dram = {b.index for b in self._problem.buffers if b.starts_in is not None}
        self._readers = Counter(
            buffer for task in self._problem.tasks for buffer in self._buffers_of(task.index)
        )

    def run(self) -> OneAfterAnother:
        """Run all tasks, one after another."""
        for step in self._structures.steps:
            self._run(step)
        return self._written

    def _buffers_of(self, task: TaskIdx) -> set[BufferIdx]:
        return {self._setting.buffer_of(read) for read in self._problem.tasks[task].reads}

    def _run(self, step: Step) -> None:
        held, task = self._held[step.memory], self._problem.tasks[step.task]
        read = self._buffers_of(step.task)
        kept = read & held.keys()
        self._make_room(step.memory, self._blocks(step, kept), kept)
        operands = self._operands(step)
        results = self._written.run(step.task, operands)
        for one in self._overwrites(step, kept):
            self._written.overwrite(step.task, operands[one.position], results[one.buffer])
        for buffer in kept:
            held[buffer].reads += 1
            self._reads[held[buffer].pattern] += 1
        for buffer in read:
            self._readers[buffer] -= 1
            if not self._readers[buffer]:
                self._forget(buffer)
        pattern = (
            task.cycles,
            tuple(sorted(self._problem.slices[one].bytes for one in task.reads)),
            tuple(self._problem.slices[one].bytes for one in task.writes),
        )
        for number, buffer in enumerate(task.writes):
            self._keep_or_store(buffer, results[buffer], (*pattern, number))

    def _blocks(self, step: Step, kept: set[BufferIdx]) -> int:
        """Return what a task needs beside what is held."""
        spared = {one for one in step.holders if self._setting.buffer_of(one) in kept}
        shared = sum(one.blocks for one in self._overwrites(step, kept))
        return step.blocks - shared - sum(self._tables.blocks_of(o, step.memory) for o in spared)

    def _overwrites(self, step: Step, kept: set[BufferIdx]) -> list[Overwrite]:
        """Return which results take over which operands: loaded ones, and held ones at their end.

        A held one has to be read as a whole.
        """
        reads = self._problem.tasks[step.task].reads
        able = []
        for one in step.overwrites:
            read = reads[one.position]
            buffer = self._setting.buffer_of(read)
            if buffer not in kept or (read == buffer and self._readers[buffer] == 1):
                able.append(one)
        return largest_first(able)

    def _operands(self, step: Step) -> list[CandidateResidency]:
        """Load what is not held here, each once; return what serves each read."""
        streamed: dict[int, CandidateResidency] = {}
        found, held = [], self._held[step.memory]
        for holder in step.holders:
            buffer = self._setting.buffer_of(holder)
            if buffer in held:
                found.append(held[buffer].residency)
                continue
            if holder not in streamed:
                self._store_if_held(buffer)
                streamed[holder] = self._written.load(holder, step.memory)
            found.append(streamed[holder])
        return found

    def _keep_or_store(
        self, buffer: BufferIdx, residency: CandidateResidency, pattern: Pattern
    ) -> None:
        blocks, count = self._tables.blocks_of(buffer, residency.memory), self._results[pattern]
        expected = self._reads[pattern] / count if count else 1.0
        one = _Held(residency, blocks, pattern, expected)
        self._results[pattern] += 1
        if self._problem.buffers[buffer].ends_in is not None:
            self._store(buffer, one)
        if not self._readers[buffer]:
            return
        self._held[residency.memory][buffer] = one
        self._home[buffer] = residency.memory
        if one.worth <= 0.0:
            self._let_go(buffer)

    def _make_room(self, memory: MemoryIdx, needed: int, kept: set[BufferIdx]) -> None:
        """Let go what is worth least until a task's needs fit beside the rest."""
        capacity, held = self._tables.capacity[memory], self._held[memory]
        if capacity is None:
            return

        def used() -> int:
            return needed + sum(one.blocks for one in held.values())

        def of_least_worth(some: set[BufferIdx]) -> BufferIdx:
            return min(some, key=lambda one: (held[one].worth, one))

        limit = max(needed, int(self._part * capacity))
        while used() > limit and held.keys() - kept:
            self._let_go(of_least_worth(held.keys() - kept))
        # Nothing else is held now: an operand that is in the way of the others is loaded again.
        while used() > capacity and kept:
            buffer = of_least_worth(kept)
            kept.discard(buffer)
            self._let_go(buffer)
            needed += self._tables.blocks_of(buffer, memory)

    def _let_go(self, buffer: BufferIdx) -> None:
        self._store_if_held(buffer)
        self._forget(buffer)

    def _forget(self, buffer: BufferIdx) -> None:
        home = self._home.pop(buffer, None)
        if home is not None:
            del self._held[home][buffer]

    def _store_if_held(self, buffer: BufferIdx) -> None:
        if buffer in self._home:
            self._store(buffer, self._held[self._home[buffer]][buffer])

    def _store(self, buffer: BufferIdx, one: _Held) -> None:
        if buffer not in self._in_dram:
            self._written.store(one.residency)
            self._in_dram.add(buffer)
