"""The value replay: a plan run on real numbers.

Every memory is one array of bytes; transfers copy bytes between addresses; tasks compute on the
bytes at their operands' addresses. An overlap, a too-early read, a wrong halo or a lost value shows
as an error here or as a wrong number in the outputs, even if the rules overlook it.

While a task or transfer runs, the bytes that it fills are destroyed (unless they may be those of an
operand) and the bytes that it reads must not change. A residency's bytes are destroyed at its end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import IntEnum
from importlib import import_module
from typing import TypeAlias

from spmilp.checker.rules.structure import structure
from spmilp.checker.values.inputs import values_at_start
from spmilp.checker.values.kernels.call import Array, Call
from spmilp.checker.values.kernels.registry import complete, compute, partial
from spmilp.checker.values.state import (
    Addresses,
    Piece,
    ReplayError,
    State,
    gather,
    inverse,
    raw,
)
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import contains, extents, slices, starts
from spmilp.frontend.operators.registry import geometries
from spmilp.frontend.regions import box_of_anchor, group_regions, until_anchor
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Buffer, Problem, Task
from spmilp.units import Box, Cycles, ResidencyIdx, SliceIdx, TaskIdx

Fetch: TypeAlias = Callable[[str, Box], Array]
"""Gives the values of a box of a tensor that lies in memory."""


def evaluate(
    network: Network,
    group: Group,
    box: Box,
    fetch: Fetch,
    reduction: tuple[int, int] | None = None,
    previous: Array | None = None,
) -> Array:
    """Return ``box`` of a group's output, or the partial sums for it.

    Parameters
    ----------
    box
        Of the group's output.
    reduction
        The part of the anchor's reduction; ``None`` for all of it. The part that ends at its length
        gives the output, every other one partial sums (int32 for integer operators, else float32).
    previous
        The partial sums of the parts before, for the same box; ``None`` for the first part.
    """
    anchor = group.operators[group.anchor]
    length = geometries(network)[anchor].reduction
    part = None if reduction == (0, length) else reduction
    computed, needed = group, box
    if part is not None and part[1] < length:
        computed, needed = until_anchor(group), box_of_anchor(network, group, box)
    regions = group_regions(network, computed, needed, part)
    values: dict[str, Array] = {}
    for position, operator in enumerate(computed.operators):
        if operator.output not in regions:
            continue
        own = regions[operator.output]
        own_part = part if position == group.anchor else None
        boxes = geometries(network)[operator].reads(own, own_part)
        inputs = [
            None if read is None else _value(name, read, values, regions, fetch)
            for name, read in zip(operator.inputs, boxes, strict=True)
        ]
        call = Call(operator, network.tensors, inputs, boxes, own)
        if own_part is None:
            result = compute(call)
        else:
            before = None if previous is None else previous.reshape(extents(own))
            result = partial(call, before)
            if own_part[1] == length:
                result = complete(call, result)
        values[operator.output] = result
    return values[computed.output].reshape(extents(box))


def _value(
    name: str, read: Box, values: dict[str, Array], regions: dict[str, Box], fetch: Fetch
) -> Array:
    """Return what an operator reads: a part of what was computed before it, or from memory."""
    if name in values:
        return values[name][slices(read, starts(regions[name]))]
    return fetch(name, read)


def compute_task(
    problem: Problem,
    network: Network,
    addresses: Addresses,
    task: Task,
    operands: Sequence[tuple[SliceIdx, Array]],
) -> list[Array]:
    """Return the bytes of each buffer that a task writes, in their order.

    Parameters
    ----------
    operands
        Each slice that it reads, and its bytes.

    Raises
    ------
    ReplayError
        If the operands do not hold all that the task needs, or its result does not fit its buffers.
    """
    who = f"task {task.name}"
    if task.tile is None:
        raise ReplayError(f"{who} is no tile of a group: nothing to compute")
    group, box = addresses.group(task.tile.of), task.tile.box
    tensors: dict[str, list[Piece]] = {}
    sums: list[Piece] = []
    for slice_, values in operands:
        piece = addresses.piece(slice_, values)
        if piece.partial:
            sums.append(piece)
        else:
            tensors.setdefault(piece.of, []).append(piece)

    def fetch(name: str, needed: Box) -> Array:
        return gather(who, name, needed, tensors.get(name, ()))

    part, previous = task.tile.reduction, None
    if part is not None and part[0] > 0:
        previous = gather(who, f"the partial sums of {group.name}", box, sums)
    result = evaluate(network, group, box, fetch, part, previous)
    written = (problem.buffers[index] for index in task.writes)
    return [_share(who, addresses, box, result, buffer) for buffer in written]


def _share(who: str, addresses: Addresses, box: Box, result: Array, buffer: Buffer) -> Array:
    """Return the part of a task's result that one of its buffers holds."""
    own, dtype = addresses.tile(buffer).box, addresses.dtype(buffer)
    if len(own) != len(box) or not contains(box, own):
        raise ReplayError(f"{who} computes box {box}, but the buffer {buffer.name} holds {own}")
    if result.dtype != dtype:
        raise ReplayError(
            f"{who} computes {result.dtype}, but the buffer {buffer.name} holds {dtype}"
        )
    return raw(addresses.in_memory_order(buffer, result[slices(own, starts(box))]))


class Step(IntEnum):
    """Kinds of events; at one cycle in this order, so that ends precede starts."""

    FINISH = 0
    """A task or transfer has read its operands: they must still be what they were."""
    RELEASE = 1
    """A residency ends: its bytes are lost."""
    DELIVER = 2
    """The result of a task or transfer is written."""
    START = 3
    """A task or transfer begins: its operands must be there, its destinations are destroyed."""


class Actor(IntEnum):
    """Whom it happens to."""

    TASK = 0
    TRANSFER = 1
    RESIDENCY = 2


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """Something that happens at a cycle; ``index`` is the task's, transfer's or residency's."""

    cycle: Cycles
    step: Step
    actor: Actor
    index: int


def timed_events(plan: Plan) -> list[Event]:
    """Return everything that happens, in the order of the plan's cycles."""
    events: list[Event] = []
    for placement in plan.placements:
        events += _run(Actor.TASK, placement.task, placement.start, placement.end)
    for transfer in plan.transfers:
        events += _run(Actor.TRANSFER, transfer.index, transfer.start, transfer.end)
    for residency in plan.residencies:
        events.append(Event(residency.end, Step.RELEASE, Actor.RESIDENCY, residency.index))
    return sorted(events)


def _run(actor: Actor, index: int, start: Cycles, end: Cycles) -> list[Event]:
    return [
        Event(start, Step.START, actor, index),
        Event(end, Step.FINISH, actor, index),
        Event(end, Step.DELIVER, actor, index),
    ]


def replay(
    problem: Problem,
    plan: Plan,
    network: Network,
    inputs: Mapping[str, Array],
) -> dict[str, Array]:
    """Run a plan on numbers and return the network's outputs.

    Parameters
    ----------
    inputs
        One array for each of the network's inputs, of its shape and type.

    Raises
    ------
    ReplayError
        If the plan reads bytes that are not there, or changes bytes while they are read.
    ValuesError
        If an input or constant has no values, or others than the network's shape and type.
    """
    for _, message in structure(problem, plan):
        raise ReplayError(f"the plan cannot be replayed: {message}")
    run = _Run(problem, plan, network, inputs)
    with one_blas_thread():
        for event in timed_events(plan):
            run.happen(event)
    return {name: run.output(name) for name in network.outputs}


class _Run:
    """A plan while it runs."""

    def __init__(
        self, problem: Problem, plan: Plan, network: Network, inputs: Mapping[str, Array]
    ) -> None:
        self._problem = problem
        self._plan = plan
        self._network = network
        self._addresses = Addresses(problem, plan, network)
        self._state = State(problem, plan, self._addresses)
        for memory, address, values in values_at_start(problem, plan, network, inputs):
            self._state.fill(memory, address, values)
        self._values: dict[tuple[Actor, int], list[Array]] = {}
        self._released: set[ResidencyIdx] = set()

    def happen(self, event: Event) -> None:
        """Let one thing happen."""
        if event.step is Step.RELEASE:
            # What lies in a DRAM tensor stays.
            if not self._addresses.is_at_place(self._plan.residencies[event.index]):
                self._released.add(event.index)
                self._state.destroy(event.index)
        elif event.step is Step.START:
            self._start(event)
        elif event.step is Step.FINISH:
            self._finish(event)
        else:
            results = self._values.pop((event.actor, event.index))
            for target, values in zip(self._targets(event), results, strict=True):
                if target not in self._released:
                    self._state.write(target, values)

    def output(self, name: str) -> Array:
        """Return a network output from its place in DRAM."""
        tensor = next((one for one in self._problem.tensors if one.name == name), None)
        if tensor is None:
            raise ReplayError(f"the problem has no DRAM tensor for the output {name}")
        known = self._network.tensors[name]
        values = self._state.read_tensor(tensor).view(known.dtype)
        axes = self._addresses.axes(tensor)
        return (values.transpose(inverse(axes)) if axes else values).reshape(known.shape)

    def _start(self, event: Event) -> None:
        """Take note of the operands, then destroy what will be written, scratch included.

        Operands whose bytes a result may take, and takes, stay.
        """
        who, sources = self._who(event), self._sources(event)
        operands = [self._state.read(who, *source, event.cycle) for source in sources]
        self._values[event.actor, event.index] = operands
        for target in self._targets(event):
            self._state.destroy(target)
        if event.actor is Actor.TASK:
            scratch = self._plan.placements[event.index].scratch
            if scratch is not None:
                self._state.destroy(scratch)
            for position in self._in_place(event.index):
                self._state.restore(*sources[position], operands[position])

    def _finish(self, event: Event) -> None:
        """Make sure that the operands are what they were, and compute the result."""
        operands, who = self._values[event.actor, event.index], self._who(event)
        for source, before in zip(self._sources(event), operands, strict=True):
            self._state.compare(who, *source, before, event.cycle)
        if event.actor is Actor.TRANSFER:
            results = operands * len(self._targets(event))
        else:
            task = self._problem.tasks[event.index]
            read = list(zip(task.reads, operands, strict=True))
            results = compute_task(self._problem, self._network, self._addresses, task, read)
        self._values[event.actor, event.index] = results

    def _sources(self, event: Event) -> list[tuple[SliceIdx, ResidencyIdx]]:
        """Return the slices that a task or transfer reads, and where."""
        if event.actor is Actor.TRANSFER:
            transfer = self._plan.transfers[event.index]
            return [(transfer.slice, transfer.source)]
        reads = self._problem.tasks[event.index].reads
        return list(zip(reads, self._plan.placements[event.index].reads, strict=True))

    def _targets(self, event: Event) -> tuple[ResidencyIdx, ...]:
        """Return the residencies that a task or transfer fills."""
        if event.actor is Actor.TRANSFER:
            return self._plan.transfers[event.index].destinations
        return self._plan.placements[event.index].writes

    def _in_place(self, task: TaskIdx) -> Iterator[int]:
        """Yield the positions of the operands whose bytes may be, and are, those of a result."""
        placement, given = self._plan.placements[task], self._problem.tasks[task]
        for slice_, buffer in given.in_place:
            position = given.reads.index(slice_)
            source = self._plan.residencies[placement.reads[position]]
            target = self._plan.residencies[placement.writes[given.writes.index(buffer)]]
            if (source.memory, source.offset) == (target.memory, target.offset):
                yield position

    def _who(self, event: Event) -> str:
        if event.actor is Actor.TASK:
            return f"task {self._problem.tasks[event.index].name}"
        buffer = self._addresses.buffer(self._plan.transfers[event.index].slice)
        return f"transfer {event.index} of {buffer.name}"


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which NumPy's matrix products use one thread.

    Products of tiles are small: on a busy machine several threads wait for each other many times
    longer than they work. Without threadpoolctl the BLAS keeps its own number of threads.
    """
    try:
        threadpoolctl = import_module("threadpoolctl")
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpoolctl.threadpool_limits(1, user_api="blas")
    return limits
