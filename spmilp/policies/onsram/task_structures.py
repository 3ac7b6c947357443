"""The data structures of a task sequence: when each is of use, what pinning it costs and saves."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from spmilp.policies.one_after_another import NotTakenError, quickest_transfer
from spmilp.policies.onsram.structure import Moved, Overwrite, Saving, Step, Structure
from spmilp.policies.onsram.structures import Structures
from spmilp.problem.objective import Quantity
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.solvers.residency.scope import TaskSequence
from spmilp.units import BufferIdx, MemoryIdx, SliceIdx, TaskIdx


class TaskStructures(Structures):
    """All structures of a sequence that are worth pinning, and the steps.

    Attributes
    ----------
    stored
        Buffers that go to DRAM whatever is pinned: outputs, and what tasks read elsewhere.
    """

    def __init__(self, tables: ProblemTables, sequence: TaskSequence, dram: MemoryIdx) -> None:
        self.tables = tables
        self.sequence = sequence
        self.dram = dram
        self._memories = sequence.memories(tables)
        self._in_memory: dict[MemoryIdx, list[int]] = defaultdict(list)
        self._streams: dict[tuple[BufferIdx, MemoryIdx], dict[int, Moved]] = defaultdict(dict)
        steps = [self._step(task) for task in sequence.order]
        for number, step in enumerate(steps):
            self._in_memory[step.memory].append(number)
            self._add_streams(number, step)
        self.stored = frozenset(self._stored())
        super().__init__(
            steps,
            tuple(self._worthwhile()),
            [tables.capacity[step.memory] for step in steps],
            is_of_time=tables.problem.objective.first is Quantity.MAKESPAN,
        )
        self._number = {(one.buffer, one.memory): one.index for one in self.all}
        for number, step in enumerate(self.steps):
            self._add_stores(step)
            step.overwrites = list(self._overwrites(number, step))

    def find(self, buffer: BufferIdx, memory: MemoryIdx) -> int | None:
        """Return the structure of a buffer in a memory; ``None`` if it is not worth pinning."""
        return self._number.get((buffer, memory))

    def is_read(self, buffer: BufferIdx) -> bool:
        """Say whether any task reads a buffer."""
        return any((buffer, memory) in self._streams for memory in self._in_memory)

    def _step(self, task: TaskIdx) -> Step:
        problem, pool = self.tables.problem, self.sequence.pools[task]
        memory, wanted = self._memories[task], problem.tasks[task]
        holders = tuple(self._holder(read, memory) for read in wanted.reads)
        operands = sum(self.tables.blocks_of(one, memory) for one in dict.fromkeys(holders))
        results = sum(self.tables.blocks_of(one, memory) for one in wanted.writes)
        return Step(
            task=task,
            memory=memory,
            holders=holders,
            blocks=operands + results + self.tables.blocks(wanted.scratch, memory),
            work=self.tables.cycles_on(task, pool),
        )

    def _holder(self, read: SliceIdx, memory: MemoryIdx) -> SliceIdx:
        """Return what is loaded for a read out of the whole buffer in DRAM."""
        buffer = self.tables.problem.slices[read].buffer
        for holder in dict.fromkeys((read, buffer)):
            is_able = quickest_transfer(self.tables, holder, buffer, self.dram, memory)
            if is_able and self.tables.fits(holder, memory):
                return holder
        raise self._unreachable(buffer, self.dram, memory)

    def _unreachable(self, buffer: BufferIdx, source: MemoryIdx, to: MemoryIdx) -> NotTakenError:
        problem = self.tables.problem
        names = [problem.machine.memories[memory].name for memory in (source, to)]
        return NotTakenError(
            f"data has to move between DRAM and scratchpads in one transfer; buffer "
            f"{problem.buffers[buffer].name} ({problem.buffers[buffer].bytes} B) has none from "
            f"{names[0]} to {names[1]}"
        )

    def _moved(self, slice_: SliceIdx, source: MemoryIdx, to: MemoryIdx) -> Moved:
        buffer = self.tables.problem.slices[slice_].buffer
        option = quickest_transfer(self.tables, slice_, buffer, source, to)
        if option is None:
            raise self._unreachable(buffer, source, to)
        inside = to if source == self.dram else source
        return Moved(self.tables.blocks_of(slice_, inside), option.cycles, option.traffic)

    def _add_streams(self, number: int, step: Step) -> None:
        for holder in dict.fromkeys(step.holders):
            moved = self._moved(holder, self.dram, step.memory)
            step.moving += moved.cycles
            step.traffic += moved.bytes
            at = self._streams[self.tables.problem.slices[holder].buffer, step.memory]
            before = at.get(number, Moved(0, 0, 0))
            at[number] = Moved(*(a + b for a, b in zip(before, moved, strict=True)))

    def _add_stores(self, step: Step) -> None:
        for buffer in self.tables.problem.tasks[step.task].writes:
            if buffer in self.stored or self.is_read(buffer):
                moved = self._moved(buffer, step.memory, self.dram)
                step.moving += moved.cycles
                step.traffic += moved.bytes

    def _home(self, buffer: BufferIdx) -> MemoryIdx | None:
        writer = self.tables.writers[buffer]
        return None if writer is None else self._memories[writer]

    def _stored(self) -> Iterator[BufferIdx]:
        for buffer in self.tables.problem.buffers:
            home = self._home(buffer.index)
            elsewhere = any(
                (buffer.index, m) in self._streams for m in self._in_memory if m != home
            )
            if home is not None and (buffer.ends_in is not None or elsewhere):
                yield buffer.index

    def _worthwhile(self) -> Iterator[Structure]:
        index = 0
        for (buffer, memory), streams in sorted(self._streams.items()):
            one = self._structure(index, buffer, memory, streams)
            if one.saved_bytes > 0:
                yield one
                index += 1

    def _structure(
        self, index: int, buffer: BufferIdx, memory: MemoryIdx, streams: Mapping[int, Moved]
    ) -> Structure:
        savings = {step: Saving(one.cycles, one.bytes) for step, one in streams.items()}
        writer, size = self.tables.writers[buffer], self.tables.blocks_of(buffer, memory)
        extra = {step: size - one.blocks for step, one in streams.items()}
        first = min(streams)
        if writer is not None and self._home(buffer) == memory:
            first = self.sequence.steps[writer]
            extra[first] = 0
            if buffer not in self.stored:
                stored = self._moved(buffer, memory, self.dram)
                savings[first] = Saving(stored.cycles, stored.bytes)
            moving = {step: saving.cycles for step, saving in savings.items()}
        else:
            moving = {step: saving.cycles for step, saving in savings.items()}
            whole, own = self._whole_load(buffer, memory), savings[first]
            savings[first] = Saving(own.cycles - whole.cycles, own.bytes - whole.bytes)
        uses = tuple(sorted(extra))
        life = (step for step in self._in_memory[memory] if first <= step <= uses[-1])
        return Structure(
            index=index,
            buffer=buffer,
            memory=memory,
            uses=uses,
            extra={step: extra.get(step, size) for step in life},
            moving=moving,
            savings=savings,
        )

    def _whole_load(self, buffer: BufferIdx, memory: MemoryIdx) -> Moved:
        """Return the load of a whole buffer; one of no use where it has none."""
        option = quickest_transfer(self.tables, buffer, buffer, self.dram, memory)
        if option is None or not self.tables.fits(buffer, memory):
            return Moved(0, 0, sum(one.bytes for one in self._streams[buffer, memory].values()))
        return Moved(self.tables.blocks_of(buffer, memory), option.cycles, option.traffic)

    def _overwrites(self, number: int, step: Step) -> Iterator[Overwrite]:
        problem = self.tables.problem
        wanted = problem.tasks[step.task]
        buffers = [problem.slices[read].buffer for read in wanted.reads]
        for read, written in wanted.in_place:
            position = wanted.reads.index(read)
            is_part = read >= len(problem.buffers)
            pinned = self.find(buffers[position], step.memory)
            ends = pinned is None or self.all[pinned].uses[-1] == number
            # A buffer of which the task also reads a part would be read while written over.
            if step.holders.count(read) == 1 and (is_part or buffers.count(read) == 1):
                shared = min(self.tables.blocks_of(one, step.memory) for one in (read, written))
                unless = pinned if is_part or not ends else None
                yield Overwrite(position, written, shared, unless)
