"""All placements of a problem's buffers: their parts with what they cost, and the sum of it."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spmilp.policies.cdm.parts import Charge, Event, Part, Placement, Role, Variable
from spmilp.policies.cdm.uses import Uses
from spmilp.policies.one_after_another import NotTakenError, no_way
from spmilp.solvers.formulation.tables import ProblemTables
from spmilp.units import BufferIdx, CoreIdx, Cycles, MemoryIdx, SliceIdx


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
