"""What CDM's placement is made of: parts, uses in waves, and the cost of accesses.

The tasks run on given cores, one operator after another. A *wave* is what runs between two
barriers, as in a program of several threads: the operators that have equally many operators before
them on their longest chain. A *part* is one decision about one buffer (:class:`Role`): it has its
home in a scratchpad, it is stored to DRAM, or the tasks in a scratchpad fetch it from a memory, at
each use or once.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np

from spmilp.policies.one_after_another import Setting
from spmilp.policies.rammer import waves_of
from spmilp.solvers.exact.formulation.tables import TransferOption
from spmilp.solvers.schedule.kernels.records import Ints, numbers
from spmilp.solvers.schedule.orders import round_robin
from spmilp.units import BufferIdx, CoreIdx, Cycles, MemoryIdx, SliceIdx, TaskIdx

Placement = frozenset[int]
"""Parts, by index."""

Event = tuple[MemoryIdx, int]
"""A memory and a step at which something begins in it."""

Charges = Counter[int]
"""Cycles for which a resource is busy in a wave, by the position in a flat table. It has a row for
each wave: first a column for each core, then one for each link."""

HOMES = 4
"""Scratchpads that one buffer may have its home in, at most."""


class Role(StrEnum):
    """What a part says of a buffer.

    ``HOME``: it lies in this scratchpad from its first to its last use. ``STORE``: a copy goes to
    DRAM. ``STREAM``: tasks in this scratchpad fetch it at each use. ``REPLICA``: they fetch it once
    and keep it.
    """

    HOME = "home"
    STORE = "store"
    STREAM = "stream"
    REPLICA = "replica"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that a placement may say of a buffer.

    Parameters
    ----------
    memory
        The scratchpad of the home, that of the tasks that read it, or the DRAM.
    source
        The memory from which readers fetch it; ``None`` for a home and a store.
    needs
        Another part that a placement must have if it has this one, if any.
    places, cycles
        Its :data:`Charges`: positions and cycles.
    blocks
        Blocks that it takes in a memory at each event.
    """

    index: int
    buffer: BufferIdx
    role: Role
    memory: MemoryIdx
    source: MemoryIdx | None
    needs: int | None
    places: Ints
    cycles: Ints
    blocks: Mapping[Event, int]


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


class Accesses:
    """The tasks of a problem one operator after another, and all that a placement may say.

    Parameters
    ----------
    is_over
        Says when time is short; the buffers that are left then stay off chip.

    Attributes
    ----------
    order
        The tasks; a step is a place in it.
    base
        Cycles for which each resource is busy in each wave, whatever the placement.
    fixed
        Blocks of results and scratch.

    Raises
    ------
    NotTakenError
        If data cannot be moved in one transfer, or the streams of a task do not fit.
    """

    def __init__(self, setting: Setting, is_over: Callable[[], bool] = lambda: False) -> None:
        self.setting = setting
        problem, machine = setting.problem, setting.problem.machine
        self.order: list[TaskIdx] = round_robin(problem, numbers(setting.cores)).tolist()
        self._step_of = {task: number for number, task in enumerate(self.order)}
        self._waves = waves_of(problem)
        self.cores = len(machine.cores)
        self.width = self.cores + len(machine.links)
        self.way = cache(self._way)
        self._reads = self._all_reads()
        self._events = self._all_events()
        self.base = np.zeros((1 + max(self._waves), self.width), np.int64)
        self.fixed: dict[Event, int] = {}
        self._add_fixed()
        self.parts: list[Part] = []
        self.variables = {buffer: self._variable(buffer, is_over()) for buffer in self._reads}
        for (_, number), blocks in self.used(self.off_chip()).items():
            setting.demand_room("cdm", self.order[number], blocks)

    def off_chip(self) -> Placement:
        """Return the placement in which everything is in DRAM."""
        return frozenset().union(*(one.off_chip for one in self.variables.values()))

    def cost(self, placement: Iterable[int]) -> Cycles:
        """Return the cycles of all waves: each as long as its busiest core, or link."""
        busy = self.base.copy()
        for index in placement:
            busy.reshape(-1)[self.parts[index].places] += self.parts[index].cycles
        return int(busy.max(axis=1).sum())

    def used(self, placement: Iterable[int]) -> dict[Event, int]:
        """Return the blocks that are taken at each event."""
        used: dict[Event, int] = defaultdict(int, self.fixed)
        for index in placement:
            for event, blocks in self.parts[index].blocks.items():
                used[event] += blocks
        return used

    def is_shared(self, buffer: BufferIdx) -> bool:
        """Say whether tasks of several scratchpads use a buffer."""
        return len(self._users(buffer)) > 1

    def serving(
        self, buffer: BufferIdx, memory: MemoryIdx, placement: Collection[int]
    ) -> Part | None:
        """Return the part by which tasks in a scratchpad get a buffer; ``None`` if none reads."""
        if buffer not in self.variables:
            return None
        one = self.variables[buffer]
        able = (*one.readers.get(memory, ()), *([one.homes[memory]] if memory in one.homes else ()))
        return next((self.parts[index] for index in able if index in placement), None)

    def positions(self, step: int, buffer: BufferIdx) -> list[int]:
        """Return the reads of a buffer at a step."""
        reads = enumerate(self.setting.problem.tasks[self.order[step]].reads)
        return [position for position, read in reads if self.setting.buffer_of(read) == buffer]

    def streamed(
        self, step: int, buffer: BufferIdx, source: MemoryIdx
    ) -> dict[int, SliceIdx] | None:
        """Return what is fetched for each read of a buffer at a step: the slice, or all of it.

        ``None`` if no engine can.
        """
        task = self.order[step]
        memory, reads = self.setting.memories[task], self.setting.problem.tasks[task].reads
        found = {}
        for position in self.positions(step, buffer):
            able = (o for o in (reads[position], buffer) if self.way(buffer, o, source, memory))
            found[position] = next(able, -1)
        return None if -1 in found.values() else found

    def _way(
        self, holder: SliceIdx, slice_: SliceIdx, source: MemoryIdx, to: MemoryIdx
    ) -> TransferOption | None:
        """Return the quickest transfer of a slice out of what holds it; ``None`` without any."""
        fits = self.setting.tables.fits(slice_, to)
        return self.setting.way(slice_, holder, source, to) if fits else None

    def _all_reads(self) -> dict[BufferIdx, dict[MemoryIdx, list[int]]]:
        """Return for each buffer the steps that read it, by the memory in which they run."""
        found: dict[BufferIdx, dict[MemoryIdx, list[int]]] = defaultdict(dict)
        for number, task in enumerate(self.order):
            memory = self.setting.memories[task]
            for buffer in set(map(self.setting.buffer_of, self.setting.problem.tasks[task].reads)):
                found[buffer].setdefault(memory, []).append(number)
        return dict(sorted(found.items()))

    def _all_events(self) -> dict[MemoryIdx, list[int]]:
        events: dict[MemoryIdx, set[int]] = defaultdict(set)
        for number, task in enumerate(self.order):
            events[self.setting.memories[task]].add(number)
        for buffer in self._reads:
            for memory in self._home_memories(buffer):
                events[memory].add(self._life(buffer)[0])
        return {memory: sorted(steps) for memory, steps in events.items()}

    def _written_in(self, buffer: BufferIdx) -> MemoryIdx | None:
        writer = self.setting.tables.writers[buffer]
        return None if writer is None else self.setting.memories[writer]

    def _users(self, buffer: BufferIdx) -> list[MemoryIdx]:
        written = self._written_in(buffer)
        return sorted({*self._reads[buffer], *([] if written is None else [written])})

    def _life(self, buffer: BufferIdx) -> tuple[int, int]:
        """Return the steps of the writer, or of the first reader, and of the last reader."""
        uses = [step for steps in self._reads[buffer].values() for step in steps]
        writer = self.setting.tables.writers[buffer]
        return min(uses) if writer is None else self._step_of[writer], max(uses)

    def _home_memories(self, buffer: BufferIdx) -> list[MemoryIdx]:
        """Return scratchpads of those who use it; of many some, evenly chosen."""
        users, written = self._users(buffer), self._written_in(buffer)
        if len(users) > HOMES:
            # Other ones for the next buffer, so that not all meet at the same scratchpads.
            places = (i * len(users) // HOMES + buffer for i in range(HOMES))
            chosen = {users[place % len(users)] for place in places}
            return sorted(chosen if written is None else {*chosen, written})
        return users

    def _charges(
        self,
        slice_: SliceIdx,
        buffer: BufferIdx,
        ends: tuple[MemoryIdx, MemoryIdx],
        task: TaskIdx,
        core: CoreIdx | None = None,
    ) -> Charges:
        """Return what one transfer keeps busy: a task's core, and the links for their share."""
        option = self.way(buffer, slice_, *ends)
        if option is None:
            raise self.setting.no_way(slice_, *ends)
        first, links = self._waves[task] * self.width, self.setting.problem.machine.links
        core = self.setting.cores[task] if core is None else core
        found = Counter({first + core: option.cycles})
        for link in option.links:
            share = -(-option.moving * option.rate // links[link].rate)
            found[first + self.cores + link] = int(share)
        return found

    def _stay(self, buffer: BufferIdx, memory: MemoryIdx, first: int, last: int) -> Counter[Event]:
        events = self._events[memory]
        size = self.setting.tables.blocks_of(buffer, memory)
        stay = events[bisect_left(events, first) : bisect_right(events, last)]
        return Counter({(memory, step): size for step in stay})

    def _add_fixed(self) -> None:
        """Add what every placement has: work, stores of outputs, blocks of results and scratch."""
        setting, busy = self.setting, self.base.reshape(-1)
        for number, index in enumerate(self.order):
            task, memory = setting.problem.tasks[index], setting.memories[index]
            busy[self._waves[index] * self.width + setting.cores[index]] += setting.cycles(index)
            room = setting.tables.blocks(task.scratch, memory)
            for written in task.writes:
                room += setting.tables.blocks_of(written, memory)
                if setting.problem.buffers[written].ends_in is not None:
                    charges = self._charges(written, written, (memory, setting.dram), index)
                    for place, cycles in charges.items():
                        busy[place] += cycles
            self.fixed[memory, number] = room

    def _add(
        self,
        buffer: BufferIdx,
        role: Role,
        memory: MemoryIdx,
        charges: Charges,
        blocks: Counter[Event],
        source: MemoryIdx | None = None,
        needs: int | None = None,
    ) -> int:
        """Add a part, and return its index."""
        part = Part(
            index=len(self.parts),
            buffer=buffer,
            role=role,
            memory=memory,
            source=source,
            needs=needs,
            places=numbers(charges.keys()),
            cycles=numbers(charges.values()),
            blocks=blocks,
        )
        self.parts.append(part)
        return part.index

    def _variable(self, buffer: BufferIdx, stays_off_chip: bool) -> Variable:
        dram, origin = self.setting.dram, self.setting.problem.buffers[buffer]
        homes = {
            memory: home
            for memory in ([] if stays_off_chip else self._home_memories(buffer))
            if (home := self._home(buffer, memory)) is not None
        }
        store = None
        if origin.starts_in is None and origin.ends_in is None:
            writer = self.order[self._life(buffer)[0]]
            ends = self.setting.memories[writer], dram
            charges = self._charges(buffer, buffer, ends, writer)
            store = self._add(buffer, Role.STORE, dram, charges, Counter())
        sources = {dram: store, **homes}
        readers = {
            memory: tuple(self._fetches(buffer, memory, sources)) for memory in self._reads[buffer]
        }
        return Variable(buffer=buffer, homes=homes, store=store, readers=readers)

    def _home(self, buffer: BufferIdx, memory: MemoryIdx) -> int | None:
        """Add the part of a home; ``None`` where the buffer cannot get there."""
        (first, last), written = self._life(buffer), self._written_in(buffer)
        source = self.setting.dram if written is None else written
        blocks, charges = self._stay(buffer, memory, first, last), Charges()
        if source == memory:
            del blocks[memory, first]
        elif self.way(buffer, buffer, source, memory) is None:
            return None
        else:
            owners = (c.index for c in self.setting.problem.machine.cores if c.memory == memory)
            core = next(owners) if written is None else None
            charges = self._charges(buffer, buffer, (source, memory), self.order[first], core)
        return self._add(buffer, Role.HOME, memory, charges, blocks)

    def _fetches(
        self, buffer: BufferIdx, memory: MemoryIdx, sources: Mapping[MemoryIdx, int | None]
    ) -> Iterator[int]:
        steps = self._reads[buffer][memory]
        for source, needs in sources.items():
            if source == memory:
                continue
            some = [self.streamed(step, buffer, source) for step in steps]
            if None not in some:
                yield self._stream(buffer, (source, memory), needs)
            elif source == self.setting.dram:
                raise self.setting.no_way(buffer, source, memory)
            if len(steps) > 1 and self.way(buffer, buffer, source, memory):
                ends = (source, memory)
                yield self._add(
                    buffer,
                    Role.REPLICA,
                    memory,
                    self._charges(buffer, buffer, ends, self.order[steps[0]]),
                    self._stay(buffer, memory, steps[0], steps[-1]),
                    source=source,
                    needs=needs,
                )

    def _stream(
        self, buffer: BufferIdx, ends: tuple[MemoryIdx, MemoryIdx], needs: int | None
    ) -> int:
        source, memory = ends
        charges, blocks = Charges(), Counter[Event]()
        for number in self._reads[buffer][memory]:
            task = self.order[number]
            slices = self.streamed(number, buffer, source) or {}
            for one in dict.fromkeys(slices.values()):
                charges.update(self._charges(one, buffer, ends, task))
                blocks[memory, number] += self.setting.tables.blocks_of(one, memory)
        return self._add(buffer, Role.STREAM, memory, charges, blocks, source, needs)
