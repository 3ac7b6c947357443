"""What CDM's placement is made of: parts, uses in waves, and the cost of accesses.

The tasks run on given cores, one operator after another. A *wave* is what runs between two
barriers, as in a program of several threads: operators that follow as many others. A *part* says
one thing of one buffer: it has its home in this scratchpad, a copy of it goes to DRAM, or the tasks
in that scratchpad get it from there, each time or once.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmilp.policies.one_after_another import NotTakenError, no_way, quickest_transfer
from spmilp.policies.rammer import waves_of
from spmilp.solvers.exact.formulation.tables import ProblemTables, TransferOption
from spmilp.solvers.schedule.kernels.records import numbers
from spmilp.solvers.schedule.orders import round_robin
from spmilp.units import BufferIdx, CoreIdx, Cycles, MemoryIdx, SliceIdx, TaskIdx

Placement = frozenset[int]
"""Parts, by index."""

Event = tuple[MemoryIdx, int]
"""A memory and a step at which something begins in it."""


class Role(StrEnum):
    """What a part says of a buffer."""

    HOME = "home"
    STORE = "store"
    STREAM = "stream"
    REPLICA = "replica"


class Charge(NamedTuple):
    """Cycles for which a resource is busy in a wave: a core, or behind all cores a link."""

    wave: int
    resource: int
    cycles: Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that a placement may say of a buffer.

    Parameters
    ----------
    memory
        Of the home, of the tasks that read it, or the DRAM.
    source
        Where it comes from, for those who read it.
    needs
        The part without which this one cannot be, if any.
    blocks
        Taken in a memory at each event of it; less than 0 where a result takes bytes over.
    given
        ``(step, position)`` of the reads whose bytes a result takes over.
    """

    index: int
    buffer: BufferIdx
    role: Role
    memory: MemoryIdx
    source: MemoryIdx | None = None
    needs: int | None = None
    charges: tuple[Charge, ...] = ()
    blocks: Mapping[Event, int]
    given: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A task of the sequence.

    Parameters
    ----------
    overwrites
        ``(position, buffer)``: the reads that results may take over, and the results.
    """

    task: TaskIdx
    pool: int
    core: CoreIdx
    memory: MemoryIdx
    wave: int
    overwrites: tuple[tuple[int, BufferIdx], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A buffer that tasks read.

    Parameters
    ----------
    homes
        The part of each scratchpad that it may have its home in.
    store
        The part that brings a copy to DRAM; ``None`` where it is there whatever is decided.
    readers
        For each scratchpad in which tasks read it, the parts of which one is chosen, unless it
        has its home there; the first one is from DRAM each time.
    """

    buffer: BufferIdx
    homes: Mapping[MemoryIdx, int]
    store: int | None
    readers: Mapping[MemoryIdx, tuple[int, ...]]

    @property
    def off_chip(self) -> Placement:
        """Everything from DRAM, each time."""
        chosen = [parts[0] for parts in self.readers.values()]
        return frozenset(chosen if self.store is None else [self.store, *chosen])


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


class Accesses:
    """All variables of a problem on given cores, with the costs of their parts.

    Parameters
    ----------
    is_over
        Says when time is short; the buffers that are left then stay off chip.

    Attributes
    ----------
    base
        Cycles that each resource is busy in each wave whatever is decided.
    """

    def __init__(
        self,
        tables: ProblemTables,
        cores: Sequence[CoreIdx],
        dram: MemoryIdx,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.tables = tables
        self._is_over = is_over
        self.dram = dram
        self.uses = Uses(tables, cores)
        self.steps = self.uses.steps
        machine = tables.machine
        self.cores = len(machine.cores)
        waves = 1 + max(step.wave for step in self.steps)
        self.base: NDArray[np.int64] = np.zeros((waves, self.cores + len(machine.links)), np.int64)
        self.fixed: dict[Event, int] = {}
        self.parts: list[Part] = []
        self._add_fixed()
        self.variables = {buffer: self._variable(buffer) for buffer in self.uses.reads}
        self._demand_room()

    def off_chip(self) -> Placement:
        """Return the placement in which everything is in DRAM."""
        return frozenset().union(*(one.off_chip for one in self.variables.values()))

    def cost(self, placement: Iterable[int], *, contention: bool = True) -> Cycles:
        """Return the cycles of all waves: each as long as its busiest core, or link."""
        busy = self.base.copy()
        for index in placement:
            for charge in self.parts[index].charges:
                busy[charge.wave, charge.resource] += charge.cycles
        resources = busy if contention else busy[:, : self.cores]
        return int(resources.max(axis=1).sum())

    def used(self, placement: Iterable[int]) -> dict[Event, int]:
        """Return the blocks that are taken at each event."""
        used: dict[Event, int] = defaultdict(int, self.fixed)
        for index in placement:
            for event, blocks in self.parts[index].blocks.items():
                used[event] += blocks
        return used

    def without_room(self, placement: Iterable[int]) -> Iterator[tuple[Event, int, int]]:
        """Yield events at which too much is taken, with that and the capacity in blocks."""
        for event, blocks in self.used(placement).items():
            capacity = self.tables.capacity[event[0]]
            if capacity is not None and blocks > capacity:
                yield event, blocks, capacity

    def serving(
        self, buffer: BufferIdx, memory: MemoryIdx, placement: Collection[int]
    ) -> Part | None:
        """Return the part by which tasks in a scratchpad get a buffer; ``None`` if none reads."""
        if buffer not in self.variables:
            return None
        one = self.variables[buffer]
        able = (*one.readers.get(memory, ()), *([one.homes[memory]] if memory in one.homes else ()))
        return next((self.parts[index] for index in able if index in placement), None)

    def _add_fixed(self) -> None:
        """Work, outputs that go to DRAM, and the room of results and scratch."""
        problem = self.tables.problem
        for number, step in enumerate(self.steps):
            task = problem.tasks[step.task]
            self.base[step.wave, step.core] += self.tables.cycles_on(step.task, step.pool)
            room = self.tables.blocks(task.scratch, step.memory)
            for written in task.writes:
                room += self.tables.blocks_of(written, step.memory)
                if problem.buffers[written].ends_in is not None:
                    for charge in self.uses.charges(
                        written, written, (step.memory, self.dram), step
                    ):
                        self.base[charge.wave, charge.resource] += charge.cycles
            self.fixed[step.memory, number] = room

    def _add(self, part: Part) -> int:
        self.parts.append(replace(part, index=len(self.parts)))
        return len(self.parts) - 1

    def _variable(self, buffer: BufferIdx) -> Variable:
        homes = {
            memory: self._add(part)
            for memory in ([] if self._is_over() else self.uses.home_memories(buffer))
            if (part := self._home(buffer, memory)) is not None
        }
        store = None
        origin = self.tables.problem.buffers[buffer]
        if origin.starts_in is None and origin.ends_in is None:
            writer = self.steps[self.uses.life(buffer)[0]]
            charges = self.uses.charges(buffer, buffer, (writer.memory, self.dram), writer)
            store = self._add(
                Part(
                    index=0,
                    buffer=buffer,
                    role=Role.STORE,
                    memory=self.dram,
                    charges=charges,
                    blocks={},
                )
            )
        sources = {self.dram: store, **homes}
        readers = {
            memory: tuple(self._fetches(buffer, memory, sources))
            for memory in self.uses.reads[buffer]
        }
        return Variable(buffer=buffer, homes=homes, store=store, readers=readers)

    def _home(self, buffer: BufferIdx, memory: MemoryIdx) -> Part | None:
        """Return the part of a home; ``None`` where the buffer cannot get there."""
        (first, last), written = self.uses.life(buffer), self.uses.written_in(buffer)
        source = self.dram if written is None else written
        blocks = self.uses.stay(buffer, memory, first, last)
        charges: tuple[Charge, ...] = ()
        if source == memory:
            del blocks[memory, first]
        elif self.uses.option(buffer, buffer, source, memory) is None:
            return None
        else:
            at = self.steps[first]
            if written is None:
                owner = next(c.index for c in self.tables.machine.cores if c.memory == memory)
                at = replace(at, core=owner)
            charges = self.uses.charges(buffer, buffer, (source, memory), at)
        given = (
            self._given(buffer, memory, last) if memory in self.uses.reads[buffer] else frozenset()
        )
        return Part(
            index=0,
            buffer=buffer,
            role=Role.HOME,
            memory=memory,
            charges=charges,
            blocks=self._relieved(blocks, given),
            given=given,
        )

    def _fetches(
        self, buffer: BufferIdx, memory: MemoryIdx, sources: Mapping[MemoryIdx, int | None]
    ) -> Iterator[int]:
        steps = self.uses.reads[buffer][memory]
        for source, needs in sources.items():
            if source == memory:
                continue
            some = [self.uses.streamed(step, buffer, source) for step in steps]
            if None not in some:
                fetched = [one for one in some if one is not None]
                yield self._add(self._stream(buffer, (source, memory), needs, fetched))
            elif source == self.dram:
                raise no_way(self.tables.problem, buffer, (source, memory))
            if len(steps) > 1 and self.uses.option(buffer, buffer, source, memory):
                yield self._add(self._replica(buffer, (source, memory), needs))

    def _stream(
        self,
        buffer: BufferIdx,
        ends: tuple[MemoryIdx, MemoryIdx],
        needs: int | None,
        fetched: Sequence[Mapping[int, SliceIdx]],
    ) -> Part:
        source, memory = ends
        charges: list[Charge] = []
        blocks: dict[Event, int] = {}
        given: set[tuple[int, int]] = set()
        for number, slices in zip(self.uses.reads[buffer][memory], fetched, strict=True):
            step = self.steps[number]
            reads = self.tables.problem.tasks[step.task].reads
            distinct = dict.fromkeys(slices.values())
            for one in distinct:
                charges += self.uses.charges(one, buffer, ends, step)
            blocks[memory, number] = sum(self.tables.blocks_of(one, memory) for one in distinct)
            alone = [p for p, one in slices.items() if list(slices.values()).count(one) == 1]
            own = {position for position in alone if slices[position] == reads[position]}
            given |= {(number, position) for position, _ in step.overwrites if position in own}
        return Part(
            index=0,
            buffer=buffer,
            role=Role.STREAM,
            memory=memory,
            source=source,
            needs=needs,
            charges=_together(charges),
            blocks=self._relieved(blocks, given),
            given=frozenset(given),
        )

    def _replica(
        self, buffer: BufferIdx, ends: tuple[MemoryIdx, MemoryIdx], needs: int | None
    ) -> Part:
        source, memory = ends
        steps = self.uses.reads[buffer][memory]
        given = self._given(buffer, memory, steps[-1])
        return Part(
            index=0,
            buffer=buffer,
            role=Role.REPLICA,
            memory=memory,
            source=source,
            needs=needs,
            charges=self.uses.charges(buffer, buffer, ends, self.steps[steps[0]]),
            blocks=self._relieved(self.uses.stay(buffer, memory, steps[0], steps[-1]), given),
            given=given,
        )

    def _given(self, buffer: BufferIdx, memory: MemoryIdx, last: int) -> frozenset[tuple[int, int]]:
        """Return the read that is the last of what is kept, if a result may take its bytes."""
        step = self.steps[last]
        if step.memory != memory:
            return frozenset()
        reads = self.tables.problem.tasks[step.task].reads
        of_it = self.uses.positions(last, buffer)
        whole = {p for p, _ in step.overwrites if of_it == [p] and reads[p] == buffer}
        return frozenset((last, position) for position in whole)

    def _relieved(
        self, blocks: dict[Event, int], given: Collection[tuple[int, int]]
    ) -> Mapping[Event, int]:
        """Take off what counts once because a result takes over the bytes."""
        for number, position in given:
            step = self.steps[number]
            read = self.tables.problem.tasks[step.task].reads[position]
            written = dict(step.overwrites)[position]
            shared = min(self.tables.blocks_of(one, step.memory) for one in (read, written))
            event = step.memory, number
            blocks[event] = blocks.get(event, 0) - shared
        return blocks

    def _demand_room(self) -> None:
        for (memory, number), blocks, capacity in self.without_room(self.off_chip()):
            where = self.tables.machine.memories[memory]
            task, size = self.tables.problem.tasks[self.steps[number].task], where.alignment
            raise NotTakenError(
                f"task {task.name}: cdm streams {blocks * size} B > {capacity * size} B in "
                f"{where.name}; use smaller tiles or a larger scratchpad"
            )


def _together(charges: Iterable[Charge]) -> tuple[Charge, ...]:
    """Return one charge of each resource in each wave."""
    sums: dict[tuple[int, int], Cycles] = defaultdict(int)
    for wave, resource, cycles in charges:
        sums[wave, resource] += cycles
    return tuple(Charge(*at, cycles) for at, cycles in sums.items())
