"""Data structures of a scratchpad: lives, sizes, what pinning saves; and the order of tasks.

A structure is a buffer in a scratchpad. OnSRAM and TOpLib choose those that stay there.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from spmilp.policies.one_after_another import Setting
from spmilp.problem.problem import BufferKind
from spmilp.solvers.exact.formulation.tables import TransferOption
from spmilp.units import BufferIdx, Bytes, Cycles, MemoryIdx, SliceIdx, TaskIdx

Pins = frozenset[int]
"""Structures, by index, that lie in their scratchpad for their whole life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """A buffer in a scratchpad: where it is written, or where some tasks read it.

    Its uses are steps at which a task writes it here or reads it or parts of it, in order; it lives
    from the first to the last, both included. ``extra`` has for each step of its life at which a
    task runs in the memory the blocks that it takes if it is pinned, above those if it is streamed;
    ``moving`` the cycles of its transfers at each of its uses, if it is streamed. Pinning saves
    ``saved_bytes`` of DRAM traffic in all; less than 0 as a cost.
    """

    index: int
    buffer: BufferIdx
    memory: MemoryIdx
    uses: tuple[int, ...]
    extra: Mapping[int, int]
    moving: Mapping[int, Cycles]
    saved_bytes: Bytes


class Overwrite(NamedTuple):
    """A result that may take over the bytes of an operand, which has a position among the reads.

    Both share the blocks. It may only if the structure ``unless`` is not pinned (``None`` for no
    such structure), and all of ``only_if`` are.
    """

    position: int
    buffer: BufferIdx
    blocks: int
    unless: int | None
    only_if: Pins = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One task with nothing pinned; ``work`` are its cycles.

    Holders are for each read the slice that is loaded for it: itself, or the whole buffer where no
    engine copies a part. Operands, results and scratch take the blocks, nothing overwritten.
    """

    task: TaskIdx
    memory: MemoryIdx
    holders: tuple[SliceIdx, ...] = ()
    blocks: int = 0
    work: Cycles = 0
    overwrites: tuple[Overwrite, ...] = ()


class Structures:
    """All structures that are worth pinning, and the steps.

    Capacities are the blocks of the memory of each step; ``None`` without limit.
    """

    def __init__(
        self, steps: Iterable[Step], structures: Iterable[Structure], blocks: Sequence[int | None]
    ) -> None:
        self.steps = tuple(steps)
        self.all = tuple(structures)
        self.capacities = blocks

    @cached_property
    def all_work(self) -> Cycles:
        """Cycles of all tasks."""
        return sum(step.work for step in self.steps)

    def overwrites(self, step: int, pins: Pins) -> list[Overwrite]:
        """Return which results of a step take over which operands with these structures pinned.

        The largest come first; of each operand and each result there is one at most.
        """
        found: list[Overwrite] = []
        for one in sorted(self.steps[step].overwrites, key=lambda one: -one.blocks):
            may_be = one.unless not in pins and one.only_if <= pins
            if may_be and not any(
                one.position == other.position or one.buffer == other.buffer for other in found
            ):
                found.append(one)
        return found

    def used(self, step: int, pins: Pins, extra: int) -> int:
        """Return the blocks that are taken in the memory of a step while its task runs.

        Pinned structures take ``extra`` blocks above streamed ones.
        """
        shared = sum(one.blocks for one in self.overwrites(step, pins))
        return self.steps[step].blocks + extra - shared

    def fits(self, step: int, pins: Pins, extra: int) -> bool:
        """Say whether all that lies in the memory of a step while its task runs has room."""
        capacity = self.capacities[step]
        return capacity is None or self.used(step, pins, extra) <= capacity


def breadth_or_depth_first(
    before: Sequence[Collection[TaskIdx]], by_activations: Sequence[bool]
) -> list[TaskIdx]:
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
        queue.extendleft(later for later in reversed(ready) if by_activations[later])
        queue.extend(later for later in ready if not by_activations[later])
    return order


def by_activations(work: Cycles, weights: Cycles, activations: Cycles) -> bool:
    """Say whether activations limit a node: their transfers take longer than its own cycles.

    The loads of its weights take no longer than they do.
    """
    return activations > work and activations >= weights


def own_order(setting: Setting) -> list[TaskIdx]:
    """Return the order of OnSRAM, with each operand loaded and each result stored once."""
    problem, dram = setting.problem, setting.dram
    classes = []
    for task in problem.tasks:
        memory = setting.memories[task.index]
        moving: dict[bool, Cycles] = {True: 0, False: 0}
        for slice_, ends in (
            *((read, (dram, memory)) for read in task.reads),
            *((written, (memory, dram)) for written in task.writes),
        ):
            buffer = setting.buffer_of(slice_)
            option = setting.way(slice_, buffer, *ends)
            is_weight = problem.buffers[buffer].kind is BufferKind.WEIGHT
            moving[is_weight] += 0 if option is None else option.cycles
        classes.append(by_activations(setting.cycles(task.index), moving[True], moving[False]))
    return breadth_or_depth_first(setting.tables.predecessors, classes)


class TaskStructures(Structures):
    """All structures of a sequence of tasks that are worth pinning, and the steps.

    ``steps_in`` has the steps of each memory. Some task reads the buffers ``read``; those
    ``stored`` go to DRAM whatever is pinned: outputs, and what tasks read elsewhere.
    """

    def __init__(self, setting: Setting, order: Sequence[TaskIdx]) -> None:
        self.setting = setting
        self._step_of = {task: number for number, task in enumerate(order)}
        self.steps_in: dict[MemoryIdx, list[int]] = defaultdict(list)
        self._streams: dict[tuple[BufferIdx, MemoryIdx], dict[int, list[SliceIdx]]] = {}
        holders = [self._holders(task) for task in order]
        for number, task in enumerate(order):
            memory = setting.memories[task]
            self.steps_in[memory].append(number)
            for holder in dict.fromkeys(holders[number]):
                at = self._streams.setdefault((setting.buffer_of(holder), memory), {})
                at.setdefault(number, []).append(holder)
        self.read = frozenset(buffer for buffer, _ in self._streams)
        self.stored = frozenset(self._stored())
        found = [self._structure(*one) for one in sorted(self._streams)]
        worthwhile = [one for one in found if one.saved_bytes > 0]
        self._number = {(one.buffer, one.memory): i for i, one in enumerate(worthwhile)}
        structures = [replace(one, index=index) for index, one in enumerate(worthwhile)]
        super().__init__(
            [self._step(task, held, structures) for task, held in zip(order, holders, strict=True)],
            structures,
            [setting.tables.capacity[setting.memories[task]] for task in order],
        )

    def find(self, buffer: BufferIdx, memory: MemoryIdx) -> int | None:
        """Return the structure of a buffer in a memory; ``None`` if it is not worth pinning."""
        return self._number.get((buffer, memory))

    def writes(self, step: int) -> tuple[BufferIdx, ...]:
        """Return the results of the task of a step."""
        return self.setting.problem.tasks[self.steps[step].task].writes

    def demand_room(self, policy: str) -> None:
        """Refuse a task that does not fit its memory with nothing pinned."""
        for number, step in enumerate(self.steps):
            self.setting.demand_room(policy, step.task, self.used(number, Pins(), 0))

    def _holders(self, task: TaskIdx) -> tuple[SliceIdx, ...]:
        """Return what is loaded for each read out of the whole buffer in DRAM."""
        setting, memory, found = self.setting, self.setting.memories[task], list[SliceIdx]()
        for read in setting.problem.tasks[task].reads:
            buffer = setting.buffer_of(read)
            for holder in (read, buffer):
                is_able = setting.way(holder, buffer, setting.dram, memory) is not None
                if is_able and setting.tables.fits(holder, memory):
                    found.append(holder)
                    break
            else:
                raise setting.no_way(buffer, setting.dram, memory)
        return tuple(found)

    def _transfers(
        self, slices: Iterable[SliceIdx], source: MemoryIdx, to: MemoryIdx
    ) -> list[TransferOption]:
        """Return the transfers of slices, each out of its whole buffer."""
        setting = self.setting
        return [setting.transfer(one, setting.buffer_of(one), source, to) for one in slices]

    def _home(self, buffer: BufferIdx) -> MemoryIdx | None:
        writer = self.setting.tables.writers[buffer]
        return None if writer is None else self.setting.memories[writer]

    def _stored(self) -> Iterator[BufferIdx]:
        for buffer in self.setting.problem.buffers:
            home = self._home(buffer.index)
            elsewhere = any((buffer.index, m) in self._streams for m in self.steps_in if m != home)
            if home is not None and (buffer.ends_in is not None or elsewhere):
                yield buffer.index

    def _structure(self, buffer: BufferIdx, memory: MemoryIdx) -> Structure:
        tables, dram = self.setting.tables, self.setting.dram
        streams, size = self._streams[buffer, memory], tables.blocks_of(buffer, memory)
        moves = {step: self._transfers(some, dram, memory) for step, some in streams.items()}
        extra = {
            step: size - sum(tables.blocks_of(one, memory) for one in some)
            for step, some in streams.items()
        }
        first, writer = min(streams), tables.writers[buffer]
        is_written = writer is not None and self.setting.memories[writer] == memory
        if writer is not None and is_written:
            first = self._step_of[writer]
            extra[first] = 0
            if buffer not in self.stored:
                moves[first] = self._transfers([buffer], memory, dram)
        saved = sum(one.traffic for some in moves.values() for one in some)
        if not is_written:
            whole = self.setting.way(buffer, buffer, dram, memory)
            # Pinning one that cannot be loaded as a whole is of no use.
            if whole is None or not tables.fits(buffer, memory):
                saved = 0
            else:
                saved -= whole.traffic
        uses = tuple(sorted(extra))
        life = (step for step in self.steps_in[memory] if first <= step <= uses[-1])
        return Structure(
            index=0,
            buffer=buffer,
            memory=memory,
            uses=uses,
            extra={step: extra.get(step, size) for step in life},
            moving={step: sum(one.cycles for one in some) for step, some in moves.items()},
            saved_bytes=saved,
        )

    def _step(
        self, task: TaskIdx, holders: tuple[SliceIdx, ...], structures: Sequence[Structure]
    ) -> Step:
        tables, memory = self.setting.tables, self.setting.memories[task]
        wanted = self.setting.problem.tasks[task]
        held = (*dict.fromkeys(holders), *wanted.writes)
        blocks = sum(tables.blocks_of(one, memory) for one in held)
        return Step(
            task=task,
            memory=memory,
            holders=holders,
            blocks=blocks + tables.blocks(wanted.scratch, memory),
            work=self.setting.cycles(task),
            overwrites=tuple(self._overwrites(task, holders, structures)),
        )

    def _overwrites(
        self, task: TaskIdx, holders: tuple[SliceIdx, ...], structures: Sequence[Structure]
    ) -> Iterator[Overwrite]:
        setting, memory = self.setting, self.setting.memories[task]
        wanted = setting.problem.tasks[task]
        buffers = [setting.buffer_of(read) for read in wanted.reads]
        for read, written in wanted.in_place:
            position = wanted.reads.index(read)
            is_part = read != buffers[position]
            pinned = self.find(buffers[position], memory)
            ends = pinned is None or structures[pinned].uses[-1] == self._step_of[task]
            # A buffer of which the task also reads a part would be read while written over.
            if holders.count(read) == 1 and (is_part or buffers.count(read) == 1):
                shared = min(setting.tables.blocks_of(one, memory) for one in (read, written))
                yield Overwrite(position, written, shared, pinned if is_part or not ends else None)
