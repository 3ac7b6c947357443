"""Data structures of a scratchpad: lives, sizes and savings, and the order of tasks behind them."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from spmilp.policies.one_after_another import NotTakenError, quickest_transfer
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import BufferKind
from spmilp.solvers.exact.formulation.tables import ProblemTables
from spmilp.solvers.traffic.scope import TaskSequence
from spmilp.units import BufferIdx, Bytes, Cycles, MemoryIdx, SliceIdx, TaskIdx

Pins = frozenset[int]
"""Structures, by index, that lie in their scratchpad for their whole life."""


class Saving(NamedTuple):
    """What a structure that is pinned saves; less than 0 where it costs more."""

    cycles: Cycles
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """A buffer in a scratchpad: where it is written, or where some tasks read it.

    Parameters
    ----------
    uses
        Steps at which a task writes it here or reads it or parts of it, in order; it lives from
        the first to the last, both included.
    extra
        For each step of its life at which a task runs in the memory: the blocks that it takes if
        it is pinned, above what it takes if it is streamed.
    moving
        Cycles of its transfers at each of its uses, if it is streamed.
    savings
        For each step of which it is true: what the step's transfers take less if it is pinned.
    """

    index: int
    buffer: BufferIdx
    memory: MemoryIdx
    uses: tuple[int, ...]
    extra: Mapping[int, int]
    moving: Mapping[int, Cycles]
    savings: Mapping[int, Saving]

    @property
    def saved_bytes(self) -> Bytes:
        """DRAM traffic that pinning saves in all."""
        return sum(saving.bytes for saving in self.savings.values())


class Overwrite(NamedTuple):
    """A result that may take over the bytes of an operand.

    Parameters
    ----------
    position
        Of the operand among the task's reads.
    blocks
        That both share.
    unless
        The structure whose pinning forbids it; ``None`` if none does.
    only_if
        Structures that have to be pinned for it.
    """

    position: int
    buffer: BufferIdx
    blocks: int
    unless: int | None
    only_if: Pins = frozenset()


@dataclass(slots=True, kw_only=True)
class Step:
    """One task with nothing pinned.

    Parameters
    ----------
    holders
        For each read, the slice that is loaded for it: itself, or the whole buffer where no engine
        copies a part.
    blocks
        That operands, results and scratch take, nothing overwritten.
    work, moving
        Cycles of the task, and of its loads and stores.
    traffic
        Bytes of these.
    """

    task: TaskIdx
    memory: MemoryIdx
    holders: tuple[SliceIdx, ...] = ()
    blocks: int = 0
    work: Cycles = 0
    moving: Cycles = 0
    traffic: Bytes = 0
    overwrites: list[Overwrite] = field(default_factory=list)


class Moved(NamedTuple):
    """Transfers: the blocks that they fill or empty in the scratchpad, cycles, DRAM traffic."""

    blocks: int
    cycles: Cycles
    bytes: Bytes


class Structures:
    """All structures that are worth pinning, and the steps.

    Parameters
    ----------
    capacities
        Blocks of the memory of each step; ``None`` without limit.
    is_of_time
        Whether pinning is to make the node time small, rather than the DRAM traffic.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        structures: Sequence[Structure],
        capacities: Sequence[int | None],
        *,
        is_of_time: bool,
    ) -> None:
        self.steps = tuple(steps)
        self.all = tuple(structures)
        self.is_of_time = is_of_time
        self._capacities = tuple(capacities)

    @cached_property
    def all_work(self) -> Cycles:
        """Cycles of all tasks."""
        return sum(step.work for step in self.steps)

    @cached_property
    def at_step(self) -> tuple[tuple[Structure, ...], ...]:
        """For each step the structures that live at it, in its memory."""
        found: list[list[Structure]] = [[] for _ in self.steps]
        for one in self.all:
            for step in one.extra:
                found[step].append(one)
        return tuple(map(tuple, found))

    def capacity(self, step: int) -> int | None:
        """Return the blocks of the memory of a step; ``None`` without limit."""
        return self._capacities[step]

    def chosen_overwrites(self, step: int, pins: Pins) -> tuple[Overwrite, ...]:
        """Return which results of a step take over which operands: as many blocks as can be."""
        able = [
            one
            for one in self.steps[step].overwrites
            if one.unless not in pins and one.only_if <= pins
        ]
        if len(able) < 2:
            return tuple(able)
        operands = sorted({one.position for one in able})
        results = sorted({one.buffer for one in able})
        shared = np.zeros((len(operands), len(results)), np.int64)
        pairs = {(operands.index(one.position), results.index(one.buffer)): one for one in able}
        for at, one in pairs.items():
            shared[at] = one.blocks
        rows, columns = linear_sum_assignment(shared, maximize=True)
        chosen = zip(rows.tolist(), columns.tolist(), strict=True)
        return tuple(pairs[at] for at in chosen if at in pairs)

    def used(self, step: int, pins: Pins, extra: int | None = None) -> int:
        """Return the blocks that are taken in the memory of a step while its task runs.

        Parameters
        ----------
        extra
            That pinned structures take above streamed ones, where it is known.
        """
        if extra is None:
            extra = sum(one.extra[step] for one in self.at_step[step] if one.index in pins)
        shared = sum(one.blocks for one in self.chosen_overwrites(step, pins))
        return self.steps[step].blocks + extra - shared

    def fits(self, step: int, pins: Pins, extra: int | None = None) -> bool:
        """Say whether all that lies in the memory of a step while its task runs has room."""
        capacity = self.capacity(step)
        return capacity is None or self.used(step, pins, extra) <= capacity

    def cost(self, pins: Pins) -> int:
        """Return what pinning is to make small: the node time if the makespan is, or traffic."""
        return self.node_time(pins) if self.is_of_time else self.traffic(pins)

    def node_time(self, pins: Pins) -> Cycles:
        """Return the sum over all tasks of their cycles or their transfers', the greater."""
        saved: dict[int, Cycles] = defaultdict(int)
        for index in pins:
            for step, saving in self.all[index].savings.items():
                saved[step] += saving.cycles
        return sum(
            max(step.work, step.moving - saved[number]) for number, step in enumerate(self.steps)
        )

    def traffic(self, pins: Pins) -> Bytes:
        """Return the bytes that cross the DRAM's port."""
        return sum(step.traffic for step in self.steps) - sum(
            self.all[index].saved_bytes for index in pins
        )


class NodeClass(StrEnum):
    """What takes a task longest: its own cycles, the loads of its weights, or other transfers."""

    COMPUTE = "compute"
    ACTIVATION = "activation"
    WEIGHT = "weight"


def node_class(work: Cycles, weights: Cycles, activations: Cycles) -> NodeClass:
    """Return the class of a task from its cycles and those of its transfers."""
    if work >= max(weights, activations):
        return NodeClass.COMPUTE
    return NodeClass.WEIGHT if weights > activations else NodeClass.ACTIVATION


def task_classes(
    tables: ProblemTables, pools: Sequence[int], dram: MemoryIdx
) -> tuple[NodeClass, ...]:
    """Return the class of each task, with each operand loaded and each result stored once."""
    return tuple(
        _task_class(tables, task.index, pools[task.index], dram) for task in tables.problem.tasks
    )


def _task_class(tables: ProblemTables, task: TaskIdx, pool: int, dram: MemoryIdx) -> NodeClass:
    problem, memory = tables.problem, tables.pools[pool].memory
    moving: dict[bool, Cycles] = {True: 0, False: 0}
    for read in problem.tasks[task].reads:
        buffer = problem.buffers[problem.slices[read].buffer]
        is_weight = buffer.kind is BufferKind.WEIGHT
        moving[is_weight] += _cycles(tables, read, dram, memory)
    for written in problem.tasks[task].writes:
        moving[False] += _cycles(tables, written, memory, dram)
    return node_class(tables.cycles_on(task, pool), moving[True], moving[False])


def _cycles(tables: ProblemTables, slice_: int, source: MemoryIdx, to: MemoryIdx) -> Cycles:
    buffer = tables.problem.slices[slice_].buffer
    option = quickest_transfer(tables, slice_, buffer, source, to)
    return 0 if option is None else option.cycles


def breadth_or_depth_first(
    before: Sequence[Collection[TaskIdx]], classes: Sequence[NodeClass]
) -> tuple[TaskIdx, ...]:
    """Return the tasks in an order in which each follows its predecessors.

    A queue begins with the tasks that follow none. When a task is taken from its head, those that
    only waited for it join: at the head if activations limit them, so that what was just written is
    read soon; at the tail if not.
    """
    followers: list[list[TaskIdx]] = [[] for _ in before]
    waiting = [len(some) for some in before]
    for task, some in enumerate(before):
        for earlier in some:
            followers[earlier].append(task)
    queue = deque(task for task, count in enumerate(waiting) if count == 0)
    order = []
    while queue:
        task = queue.popleft()
        order.append(task)
        ready = []
        for later in followers[task]:
            waiting[later] -= 1
            if waiting[later] == 0:
                ready.append(later)
        near = [task for task in ready if classes[task] is NodeClass.ACTIVATION]
        queue.extendleft(reversed(near))
        queue.extend(task for task in ready if task not in near)
    return tuple(order)


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
