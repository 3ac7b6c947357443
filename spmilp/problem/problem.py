"""The mapping problem: buffers, slices and tasks on a machine. Integers only, no ONNX."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heapify, heappop, heappush
from math import prod
from typing import TypeVar

from spmilp.cached import Cache, cached
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.problem.objective import DEFAULT_OBJECTIVE, Objective
from spmilp.problem.pins import NO_PINS, Pins
from spmilp.units import (
    Box,
    BufferIdx,
    Bytes,
    Corner,
    Count,
    Extents,
    Femtojoules,
    Interval,
    MemoryIdx,
    SliceIdx,
    TaskIdx,
    TensorIdx,
    indices_are_positions,
)

T = TypeVar("T")


class BufferKind(StrEnum):
    """Content of a buffer; for reports and exports, the rules do not depend on it."""

    INPUT = "input"
    WEIGHT = "weight"
    INTERMEDIATE = "intermediate"
    PARTIAL = "partial"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """Origin of a task or a buffer: a box of something that has a name in the model.

    Parameters
    ----------
    of
        The tensor (for a buffer) or the fused operator (for a task).
    box
        Half-open interval of elements along each axis, in the model's order of axes.
    axes
        For a buffer: the model's axis that each axis of the buffer's memory order is; empty when
        the orders are the same.
    reduction
        For a task or a partial sum: the half-open part of the reduction that it covers; ``None``
        for all.
    """

    of: str
    box: Box
    axes: Corner = ()
    reduction: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DramTensor:
    """A whole tensor that lies in DRAM from beginning to end: a network input, output or weight.

    ``memory`` is the DRAM, in which a plan gives the tensor one address; ``shape`` the elements
    along each axis in memory order, row major; ``item`` the bytes of an element. ``state`` makes an
    input a state: it is the output that an inference leaves there for the next one.
    """

    index: TensorIdx
    name: str
    kind: BufferKind
    memory: MemoryIdx
    shape: Extents
    item: Count
    state: TensorIdx | None = None

    @property
    def bytes(self) -> Bytes:
        """Size of the tensor in bytes."""
        return prod(self.shape) * self.item


@dataclass(frozen=True, slots=True)
class Place:
    """The box of a DRAM tensor that is a buffer's home: it begins at element ``start``."""

    tensor: TensorIdx
    start: Corner


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """A contiguous run of bytes that is written once as a whole.

    Parameters
    ----------
    shape
        Elements along each axis in memory order, row major; ``(bytes,)`` when there is no more to
        say.
    item
        Bytes of an element.
    starts_in
        The memory that holds it at cycle 0; ``None`` when a task writes it.
    ends_in
        The memory that must hold it at the end; ``None`` when none must.
    place
        Its box of a DRAM tensor. A buffer that starts or ends in DRAM has one, and whenever it or a
        slice of it lies in that DRAM, it lies there.
    """

    index: BufferIdx
    name: str
    kind: BufferKind
    shape: Extents
    item: Count = 1
    starts_in: MemoryIdx | None = None
    ends_in: MemoryIdx | None = None
    place: Place | None = None
    tile: Tile | None = None

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for all inferences: a weight that a memory holds at first."""
        return self.kind is BufferKind.WEIGHT and self.starts_in is not None

    @property
    def bytes(self) -> Bytes:
        """Size in bytes, without alignment padding."""
        return prod(self.shape) * self.item


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A box of a buffer that some task reads.

    In memory it lies packed, in its own row-major order, except inside its parent's residency and
    at its parent's place in DRAM. ``start`` and ``extent`` are elements along each axis of the
    parent's memory order; ``bytes`` is its size, packed.
    """

    index: SliceIdx
    buffer: BufferIdx
    start: Corner
    extent: Extents
    bytes: Count


def whole_slice(buffer: Buffer) -> Slice:
    """Return the slice that is a whole buffer; it bears the buffer's number."""
    at, start = buffer.index, (0,) * len(buffer.shape)
    return Slice(index=at, buffer=at, start=start, extent=buffer.shape, bytes=buffer.bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One tile's execution.

    Parameters
    ----------
    cycles
        For each of the machine's core kinds, in order: the cycles of the task on it, launch
        included; ``None`` where it cannot run.
    reads
        Slices that must be valid in the core's memory from start to end; each once.
    writes
        Buffers that it writes; valid from its end. Each buffer has one writer.
    scratch
        Bytes that it needs besides, from start to end.
    in_place
        ``(slice read, buffer written)`` pairs that may share their bytes.
    after
        Tasks that must have ended before it starts, besides the writers of what it reads.
    energy
        Femtojoules for each core kind, in order; empty where unknown.
    """

    index: TaskIdx
    name: str
    cycles: tuple[Count | None, ...]
    reads: tuple[SliceIdx, ...] = ()
    writes: tuple[BufferIdx, ...] = ()
    scratch: Bytes = 0
    in_place: tuple[tuple[SliceIdx, BufferIdx], ...] = ()
    after: tuple[TaskIdx, ...] = ()
    energy: tuple[Femtojoules | None, ...] = ()
    tile: Tile | None = None

    def __post_init__(self) -> None:
        if all(cycles is None for cycles in self.cycles):
            raise ValueError(f"task {self.name}: no kind of core can run it")
        if len(set(self.reads)) < len(self.reads) or len(set(self.writes)) < len(self.writes):
            raise ValueError(f"task {self.name}: reads or writes something twice")
        for read, written in self.in_place:
            if read not in self.reads or written not in self.writes:
                raise ValueError(
                    f"task {self.name}: in-place pair (slice {read}, buffer {written}) is not "
                    "among its reads and writes"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Everything that a plan must decide about, complete and consistent.

    The first ``len(buffers)`` of ``slices`` are the whole buffers, in order: slice ``b`` is buffer
    ``b``. ``sources`` are ``(what, SHA-256)`` of the files it was made from: ``model``,
    ``machine``. A plan has to keep to the ``pins`` besides.

    The ``cache`` has values computed from it; see :mod:`spmilp.cached`. Raises a ``ValueError`` if
    an index is not a position or a reference leads nowhere; if a tensor lies elsewhere than in a
    DRAM; if a buffer has no writer and no start or both; if a box leaves its parent; or if the
    tasks' order is cyclic.
    """

    name: str
    machine: Machine
    tensors: tuple[DramTensor, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    slices: tuple[Slice, ...] = ()
    tasks: tuple[Task, ...]
    objective: Objective = DEFAULT_OBJECTIVE
    sources: tuple[tuple[str, str], ...] = ()
    pins: Pins = NO_PINS
    cache: Cache = field(default_factory=Cache, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tables: dict[str, tuple[DramTensor | Buffer | Slice | Task, ...]] = {
            "tensor": self.tensors,
            "buffer": self.buffers,
            "slice": self.slices,
            "task": self.tasks,
        }
        for kind, rows in tables.items():
            indices_are_positions(kind, (row.index for row in rows))
        self._tensors_lie_in_dram()
        self._states_are_left_as_they_are_read()
        self._whole_buffers_come_first()
        self._boxes_lie_in_their_parents()
        self._tasks_refer_to_what_exists()
        self._every_buffer_has_one_origin()
        self._order_is_acyclic()
        self._pins_refer_to_what_exists()

    @cached
    def states(self) -> dict[BufferIdx, BufferIdx]:
        """For each buffer of a state, the one that an inference leaves in it for the next one."""
        at = {(one.place.tensor, one.place.start): one.index for one in self.buffers if one.place}
        return {
            buffer: at[state, start]
            for (tensor, start), buffer in at.items()
            if (state := self.tensors[tensor].state) is not None
        }

    @cached
    def predecessors(self) -> tuple[tuple[TaskIdx, ...], ...]:
        """For each task, the tasks that must end before it starts: sorted, each once."""
        writer = self.writers()
        writer_of = [writer[slice_.buffer] for slice_ in self.slices]
        found = []
        for task in self.tasks:
            writers = (writer_of[read] for read in task.reads)
            found.append(tuple(sorted({*task.after, *(one for one in writers if one is not None)})))
        return tuple(found)

    @cached
    def writers(self) -> tuple[TaskIdx | None, ...]:
        """For each buffer, the task that writes it; ``None`` when it is there at the start."""
        writer: list[TaskIdx | None] = [None] * len(self.buffers)
        for task in self.tasks:
            for buffer in task.writes:
                writer[buffer] = task.index
        return tuple(writer)

    @cached
    def topological_order(self) -> tuple[TaskIdx, ...]:
        """Return every task after all its predecessors; among several, the least index first.

        Fewer tasks than there are when the order is cyclic.
        """
        before = self.predecessors()
        followers: list[list[TaskIdx]] = [[] for _ in self.tasks]
        waiting = [len(some) for some in before]
        for task, some in enumerate(before):
            for earlier in some:
                followers[earlier].append(task)
        ready = [task for task, count in enumerate(waiting) if count == 0]
        heapify(ready)
        order = []
        while ready:
            task = heappop(ready)
            order.append(task)
            for later in followers[task]:
                waiting[later] -= 1
                if waiting[later] == 0:
                    heappush(ready, later)
        return tuple(order)

    def _tensors_lie_in_dram(self) -> None:
        for tensor in self.tensors:
            who = f"tensor {tensor.name}"
            memory = _existing(tensor.memory, self.machine.memories, f"{who}: memory")
            if memory.kind is not MemoryKind.DRAM:
                raise ValueError(f"{who}: lies in {memory.name}, which is {memory.kind}, not dram")

    def _states_are_left_as_they_are_read(self) -> None:
        boxes: defaultdict[tuple[TensorIdx, str], set[tuple[Corner, Extents]]] = defaultdict(set)
        for buffer in self.buffers:
            if buffer.place is not None:
                is_left = buffer.starts_in is None and buffer.ends_in is not None
                how = "constant" if buffer.is_constant else "left" if is_left else "read"
                boxes[buffer.place.tensor, how].add((buffer.place.start, buffer.shape))
        left = Counter(tensor.state for tensor in self.tensors)
        for tensor in self.tensors:
            if tensor.state is None:
                continue
            who = f"tensor {tensor.name}"
            other = _existing(tensor.state, self.tensors, f"{who}: state")
            for what in ("memory", "shape", "item"):
                own, its = getattr(tensor, what), getattr(other, what)
                if own != its:
                    raise ValueError(f"{who}: {what} {own}, but that of its state is {its}")
            if left[tensor.state] > 1:
                raise ValueError(f"{who}: {other.name} is the state of {left[tensor.state]} inputs")
            pairs = [
                (boxes[tensor.index, how], boxes[tensor.state, how]) for how in ("read", "left")
            ]
            if pairs != [(pairs[0][0], set()), (set(), pairs[0][0])]:
                raise ValueError(
                    f"{who}: its buffers are other boxes than those of {other.name}, or these are "
                    "no results that end in it"
                )

    def _whole_buffers_come_first(self) -> None:
        if len(self.slices) < len(self.buffers):
            raise ValueError(f"{len(self.slices)} slices < {len(self.buffers)} buffers")
        for buffer, slice_ in zip(self.buffers, self.slices, strict=False):
            if slice_.buffer != buffer.index or slice_.extent != buffer.shape:
                raise ValueError(f"slice {slice_.index} is not the whole of buffer {buffer.name}")

    def _boxes_lie_in_their_parents(self) -> None:
        for slice_ in self.slices:
            if not 0 <= slice_.buffer < len(self.buffers):
                _existing(slice_.buffer, self.buffers, f"slice {slice_.index}: buffer")
            parent, size = self.buffers[slice_.buffer], prod(slice_.extent)
            why = _why_outside(slice_.start, slice_.extent, parent.shape)
            if slice_.bytes != size * parent.item:
                why = why or f"{slice_.bytes} B, but its extent holds {size * parent.item} B"
            if why:
                raise ValueError(f"slice {slice_.index} of {parent.name}: {why}")
        for buffer in self.buffers:
            if buffer.place is not None:
                tensor = _existing(buffer.place.tensor, self.tensors, f"{buffer.name}: tensor")
                why = _why_outside(buffer.place.start, buffer.shape, tensor.shape)
                if tensor.item != buffer.item:
                    why = why or f"elements of {buffer.item} B in a tensor of {tensor.item} B"
                if why:
                    raise ValueError(f"place of {buffer.name}: {why}")

    def _tasks_refer_to_what_exists(self) -> None:
        kinds = len(self.machine.kinds)
        for task in self.tasks:
            for what, given in (("cycles for", task.cycles), ("energy on", task.energy)):
                if len(given) != kinds and (given or given is task.cycles):
                    raise ValueError(
                        f"task {task.name}: {what} {len(given)} kinds of core, but the machine has "
                        f"{kinds}"
                    )
            _all_exist(task, task.reads, self.slices, "slice")
            _all_exist(task, task.writes, self.buffers, "buffer")
            _all_exist(task, task.after, self.tasks, "task")

    def _every_buffer_has_one_origin(self) -> None:
        writers = Counter(buffer for task in self.tasks for buffer in task.writes)
        for buffer in self.buffers:
            who = f"buffer {buffer.name}"
            origins = writers[buffer.index] + (buffer.starts_in is not None)
            if origins != 1:
                raise ValueError(f"{who}: {origins} origins, expected one writer or one start")
            for memory in (buffer.starts_in, buffer.ends_in):
                if memory is None:
                    continue
                kind = _existing(memory, self.machine.memories, f"{who}: memory").kind
                if kind is not MemoryKind.DRAM:
                    continue
                if buffer.place is None:
                    raise ValueError(f"{who}: starts or ends in DRAM, has no place")
                home = self.tensors[buffer.place.tensor].memory
                if home != memory:
                    raise ValueError(
                        f"{who}: starts or ends in memory {memory}, but its place is in {home}"
                    )

    def _order_is_acyclic(self) -> None:
        reached = set(self.topological_order())
        stuck = next((task.name for task in self.tasks if task.index not in reached), None)
        if stuck is not None:
            raise ValueError(f"the order of the tasks is cyclic; task {stuck} waits for ever")

    def _pins_refer_to_what_exists(self) -> None:
        for core in self.pins.forbidden:
            _existing(core, self.machine.cores, "pins: forbidden core")
        for task in self.pins.tasks:
            name = _existing(task.task, self.tasks, "pins: task").name
            for core in task.cores:
                _existing(core, self.machine.cores, f"pin of task {name}: core")
        for pin in self.pins.buffers:
            name = _existing(pin.buffer, self.buffers, "pins: buffer").name
            who = f"pin of buffer {name}: memory"
            for index in pin.memories:
                memory = _existing(index, self.machine.memories, who)
                if memory.kind is MemoryKind.DRAM:
                    raise ValueError(f"{who} {memory.name} is a DRAM, expected none")


def _existing(index: int, owner: tuple[T, ...], who: str) -> T:
    if not 0 <= index < len(owner):
        raise ValueError(f"{who} {index} does not exist: there are {len(owner)}")
    return owner[index]


def _all_exist(task: Task, indices: tuple[int, ...], owner: tuple[object, ...], what: str) -> None:
    if indices and (min(indices) < 0 or max(indices) >= len(owner)):
        for index in indices:
            _existing(index, owner, f"task {task.name}: {what}")


def _why_outside(start: Extents, extent: Extents, shape: Extents) -> str:
    """Say why a box does not lie inside a shape; empty where it does."""
    if not len(start) == len(extent) == len(shape):
        return f"{len(extent)} axes in a parent of {len(shape)}"
    for first, count, length in zip(start, extent, shape, strict=True):
        if first < 0 or count <= 0 or first + count > length:
            return f"[{first}, {first + count}) leaves an axis of {length}"
    return ""
