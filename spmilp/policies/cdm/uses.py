"""Who uses each buffer, in which wave; its transfers, and how long it may stay."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence

from spmilp.policies.cdm.parts import Charge, Event, Step
from spmilp.policies.one_after_another import no_way, quickest_transfer
from spmilp.policies.rammer import waves_of
from spmilp.solvers.formulation.tables import ProblemTables, TransferOption
from spmilp.solvers.kernels.records import numbers
from spmilp.solvers.list_scheduler.orders import round_robin
from spmilp.units import BufferIdx, CoreIdx, Cycles, MemoryIdx, SliceIdx, TaskIdx

HOMES = 4
"""Scratchpads that one buffer may have its home in, at most; two more near a private one's."""


class Uses:
    """The tasks of a problem on given cores, one operator after another, and what they use.

    Attributes
    ----------
    reads
        For each buffer the steps that read it, by the memory in which they run.
    """

    def __init__(self, tables: ProblemTables, cores: Sequence[CoreIdx]) -> None:
        self.tables = tables
        self.cores = len(tables.machine.cores)
        self.steps = tuple(_steps(tables, cores))
        self._step_of = {step.task: number for number, step in enumerate(self.steps)}
        self.reads = self._all_reads()
        self._options: dict[tuple[SliceIdx, ...], TransferOption | None] = {}
        self._shares: dict[tuple[int, ...], tuple[tuple[int, Cycles], ...]] = {}
        self._shared: dict[BufferIdx, bool] = {}
        self._events = self._all_events()

    def _all_reads(self) -> dict[BufferIdx, dict[MemoryIdx, list[int]]]:
        """Return for each buffer the steps that read it, by the memory in which they run."""
        found: dict[BufferIdx, dict[MemoryIdx, list[int]]] = defaultdict(dict)
        problem = self.tables.problem
        for number, step in enumerate(self.steps):
            for read in problem.tasks[step.task].reads:
                buffer = problem.slices[read].buffer
                steps = found[buffer].setdefault(step.memory, [])
                if number not in steps[-1:]:
                    steps.append(number)
        return dict(sorted(found.items()))

    def _all_events(self) -> dict[MemoryIdx, list[int]]:
        events: dict[MemoryIdx, set[int]] = defaultdict(set)
        for number, step in enumerate(self.steps):
            events[step.memory].add(number)
        for buffer in self.reads:
            first, _ = self.life(buffer)
            for memory in self.home_memories(buffer):
                events[memory].add(first)
        return {memory: sorted(steps) for memory, steps in events.items()}

    def is_shared(self, buffer: BufferIdx) -> bool:
        """Say whether tasks of several scratchpads use a buffer."""
        if buffer not in self._shared:
            written = self.written_in(buffer)
            users = {*self.reads[buffer], *([] if written is None else [written])}
            self._shared[buffer] = len(users) > 1
        return self._shared[buffer]

    def life(self, buffer: BufferIdx) -> tuple[int, int]:
        """Return the steps of the writer, or of the first reader, and of the last reader."""
        uses = [step for steps in self.reads[buffer].values() for step in steps]
        writer = self.tables.writers[buffer]
        first = min(uses) if writer is None else self._step_of[writer]
        return first, max(uses)

    def written_in(self, buffer: BufferIdx) -> MemoryIdx | None:
        writer = self.tables.writers[buffer]
        return None if writer is None else self.steps[self._step_of[writer]].memory

    def home_memories(self, buffer: BufferIdx) -> list[MemoryIdx]:
        """Return scratchpads of those who use it, evenly chosen, and others near a single one."""
        written = self.written_in(buffer)
        users = sorted({*self.reads[buffer], *([] if written is None else [written])})
        if len(users) > HOMES:
            # Other ones for the next buffer, so that not all meet at the same scratchpads.
            places = (i * len(users) // HOMES + buffer for i in range(HOMES))
            chosen = {users[place % len(users)] for place in places}
            return sorted(chosen if written is None else {*chosen, written})
        if len(users) > 1:
            return users
        spms = {core.memory for core in self.tables.machine.cores}
        near = sorted(
            (option.cycles, memory)
            for memory in spms.difference(users)
            if (option := self.option(buffer, buffer, memory, users[0])) is not None
        )
        return users + [memory for _, memory in near[:2]]

    def option(
        self, holder: SliceIdx, slice_: SliceIdx, source: MemoryIdx, to: MemoryIdx
    ) -> TransferOption | None:
        """Return the quickest transfer of a slice out of what holds it; ``None`` without any."""
        key = holder, slice_, source, to
        if key not in self._options:
            fits = self.tables.fits(slice_, to)
            found = quickest_transfer(self.tables, slice_, holder, source, to) if fits else None
            self._options[key] = found
        return self._options[key]

    def streamed(
        self, step: int, buffer: BufferIdx, source: MemoryIdx
    ) -> dict[int, SliceIdx] | None:
        """Return what is fetched for each read of a buffer at a step: the slice, or all of it.

        ``None`` if no engine can.
        """
        memory = self.steps[step].memory
        reads = self.tables.problem.tasks[self.steps[step].task].reads
        found = {}
        for position in self.positions(step, buffer):
            read = reads[position]
            able = (one for one in (read, buffer) if self.option(buffer, one, source, memory))
            found[position] = next(able, -1)
        return None if -1 in found.values() else found

    def positions(self, step: int, buffer: BufferIdx) -> list[int]:
        """Return the reads of a buffer at a step."""
        problem = self.tables.problem
        reads = enumerate(problem.tasks[self.steps[step].task].reads)
        return [position for position, read in reads if problem.slices[read].buffer == buffer]

    def charges(
        self,
        slice_: SliceIdx,
        buffer: BufferIdx,
        ends: tuple[MemoryIdx, MemoryIdx],
        step: Step,
    ) -> tuple[Charge, ...]:
        """Return what one transfer keeps busy: the core, and the links for their share of it."""
        option = self.option(buffer, slice_, *ends)
        if option is None:
            raise no_way(self.tables.problem, slice_, ends)
        key = *ends, option.engine, option.moving
        if key not in self._shares:
            links = self.tables.machine.links
            self._shares[key] = tuple(
                (self.cores + link, int(-(-option.moving * option.rate // links[link].rate)))
                for link in option.links
            )
        busy = ((step.core, option.cycles), *self._shares[key])
        return tuple(Charge(step.wave, resource, cycles) for resource, cycles in busy)

    def stay(self, buffer: BufferIdx, memory: MemoryIdx, first: int, last: int) -> dict[Event, int]:
        events = self._events[memory]
        size = self.tables.blocks_of(buffer, memory)
        stay = events[bisect_left(events, first) : bisect_right(events, last)]
        return {(memory, step): size for step in stay}


def _steps(tables: ProblemTables, cores: Sequence[CoreIdx]) -> Iterator[Step]:
    problem, waves = tables.problem, waves_of(tables.problem)
    pool_of = {core: pool.index for pool in tables.pools for core in pool.cores}
    for task in round_robin(problem, numbers(cores)).tolist():
        pool = pool_of[cores[task]]
        yield Step(
            task=task,
            pool=pool,
            core=cores[task],
            memory=tables.pools[pool].memory,
            wave=waves[task],
            overwrites=tuple(_overwrites(tables, task)),
        )


def _overwrites(tables: ProblemTables, task: TaskIdx) -> Iterator[tuple[int, BufferIdx]]:
    """Yield reads whose bytes results may take over, each read and each result once."""
    wanted, slices = tables.problem.tasks[task], tables.problem.slices
    buffers = [slices[read].buffer for read in wanted.reads]
    taken: set[int] = set()
    for read, written in wanted.in_place:
        position = wanted.reads.index(read)
        if written in taken or -1 - position in taken or buffers.count(buffers[position]) > 1:
            continue
        taken |= {written, -1 - position}
        yield position, written
