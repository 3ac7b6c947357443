"""The value replay: a plan run on real numbers.

Every memory is one array of bytes; transfers copy bytes between addresses; tasks compute on the
bytes at their operands' addresses. What a task reads must be, bit for bit, what was computed or
given for that tile: an overlap, a too-early read, a stale or lost value is an error, even if the
rules overlook it.

While a task or transfer runs, the bytes that it fills are destroyed (unless they may be those of an
operand); what it reads must not change, of a transfer until all is sent. A residency's bytes are
destroyed at its end.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import IntEnum
from importlib import import_module
from typing import TypeAlias

import numpy as np

from spmilp.checker.rules.structure import structure
from spmilp.checker.values.inputs import given_values, values_at_start
from spmilp.checker.values.kernels.call import Array, Call
from spmilp.checker.values.kernels.registry import complete, compute, partial
from spmilp.checker.values.state import Addresses, Piece, ReplayError, State, gather, inverse, raw
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import extents, intersect, slices, starts
from spmilp.frontend.operators.registry import geometries
from spmilp.frontend.regions import box_of_anchor, group_regions, until_anchor
from spmilp.plan.memory import home_of
from spmilp.plan.plan import Placement, Plan
from spmilp.plan.running import Running
from spmilp.problem.problem import Buffer, DramTensor, Problem, Task
from spmilp.units import Box, BufferIdx, Cycles, ResidencyIdx, SliceIdx, TaskIdx

Fetch: TypeAlias = Callable[[str, Box], Array]
"""Gives the values of a box of a tensor that lies in memory."""

Traced: TypeAlias = tuple[Box, Array, TaskIdx]
"""What a task computed of a tensor, which may be one within its group: the box and its values."""


def evaluate(
    network: Network,
    group: Group,
    box: Box,
    fetch: Fetch,
    reduction: tuple[int, int] | None = None,
    previous: Array | None = None,
    results: Callable[[str, Box, Array], None] | None = None,
) -> Array:
    """Return ``box`` of a group's output, or the partial sums for it.

    ``reduction`` is the part of the anchor's reduction, ``None`` for all of it. The part that ends
    at its length gives the output, every other one partial sums (int32 for integer operators, else
    float32). ``previous`` are the sums of the parts before for the same box, ``None`` for the first
    part. ``results`` is told what each operator computes, but for partial sums.
    """
    anchor = group.operators[group.anchor]
    length = geometries(network)[anchor].reduction
    part = None if reduction == (0, length) else reduction
    computed, needed = group, box
    if part is not None and part[1] < length:
        computed, needed = until_anchor(group), box_of_anchor(network, group, box)
    regions = group_regions(network, computed, needed, part)
    values: dict[str, Array] = {}

    def value(name: str, read: Box) -> Array:
        """Return what an operator reads: a part of what was computed before, or from memory."""
        if name in values:
            return values[name][slices(read, starts(regions[name]))]
        return fetch(name, read)

    for position, operator in enumerate(computed.operators):
        if operator.output not in regions:
            continue
        own = regions[operator.output]
        own_part = part if position == group.anchor else None
        boxes = geometries(network)[operator].reads(own, own_part)
        inputs = [
            None if read is None else value(name, read)
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
        if results is not None and (own_part is None or own_part[1] == length):
            results(operator.output, own, result)
    return values[computed.output].reshape(extents(box))


def compute_task(
    problem: Problem,
    network: Network,
    addresses: Addresses,
    task: Task,
    operands: Sequence[tuple[SliceIdx, Array]],
    trace: dict[str, list[Traced]] | None = None,
) -> list[Array]:
    """Return the bytes of each buffer that a task writes, in their order.

    Operands are each slice that it reads, and its bytes; ``trace`` takes up what each of its
    operators computes.

    Raises a ``ReplayError`` if the operands do not hold all that the task needs, or its result does
    not fit its buffers.
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

    def take_up(name: str, own: Box, values: Array) -> None:
        if trace is not None:
            trace.setdefault(name, []).append((own, values.reshape(extents(own)), task.index))

    part, previous = task.tile.reduction, None
    if part is not None and part[0] > 0:
        previous = gather(who, f"the partial sums of {group.name}", box, sums)
    result = evaluate(network, group, box, fetch, part, previous, take_up)
    written = (problem.buffers[index] for index in task.writes)
    return [_share(who, addresses, box, result, buffer) for buffer in written]


def _share(who: str, addresses: Addresses, box: Box, result: Array, buffer: Buffer) -> Array:
    """Return the part of a task's result that one of its buffers holds."""
    own, dtype = addresses.tile(buffer).box, addresses.dtype(buffer)
    if len(own) != len(box) or intersect(box, own) != own:
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


@dataclass(slots=True, eq=False)
class _Activity:
    """A task, or a transfer, which has no ``task``.

    Sources are the slices that it reads until cycle ``sent``, and where; targets the residencies
    that it fills. ``kept`` are positions of the sources whose bytes may be, and are, those of a
    target; ``values`` are those of its sources while it runs, then of its targets.
    """

    name: str
    start: Cycles
    sent: Cycles
    end: Cycles
    sources: list[tuple[SliceIdx, ResidencyIdx]]
    targets: tuple[ResidencyIdx, ...]
    task: Task | None = None
    scratch: ResidencyIdx | None = None
    kept: tuple[int, ...] = ()
    values: list[Array] = field(default_factory=list)


def _activities(problem: Problem, plan: Plan) -> Iterator[_Activity]:
    for task, placement in zip(problem.tasks, plan.placements, strict=True):
        yield _Activity(
            name=f"task {task.name}",
            start=placement.start,
            sent=placement.end,
            end=placement.end,
            sources=list(zip(task.reads, placement.reads, strict=True)),
            targets=placement.writes,
            task=task,
            scratch=placement.scratch,
            kept=tuple(_in_place(plan, task, placement)),
        )
    for move in plan.transfers:
        buffer = problem.buffers[problem.slices[move.slice].buffer]
        yield _Activity(
            name=f"transfer {move.index} of {buffer.name}",
            start=move.start,
            sent=move.sent,
            end=move.end,
            sources=[(move.slice, move.source)],
            targets=move.destinations,
        )


def _in_place(plan: Plan, task: Task, placement: Placement) -> Iterator[int]:
    for slice_, buffer in task.in_place:
        position = task.reads.index(slice_)
        source = plan.residencies[placement.reads[position]]
        target = plan.residencies[placement.writes[task.writes.index(buffer)]]
        if (source.memory, source.offset) == (target.memory, target.offset):
            yield position


def replay(
    problem: Problem,
    plan: Plan,
    network: Network,
    inputs: Mapping[str, Array],
    trace: dict[str, list[Traced]] | None = None,
) -> dict[str, Array]:
    """Run a plan on numbers and return the network's outputs.

    ``inputs`` has one array for each of the network's inputs, of its shape and type; ``trace``
    takes up what each operator computes.

    Raises a ``ReplayError`` if the plan reads bytes that are not there, or others than those of the
    tile that it means, or changes bytes while they are read, and a ``ValuesError`` if an input or
    constant has no values, or others than the network's shape and type.
    """
    for _, message in structure(problem, plan):
        raise ReplayError(f"the plan cannot be replayed: {message}")
    run = _Run(problem, plan, network, inputs, trace)
    with one_blas_thread():
        for cycle, step, index in run.events():
            run.happen(cycle, step, index)
    return {name: run.output(name) for name in network.outputs}


def replay_stream(
    running: Running,
    network: Network,
    inputs: Sequence[Mapping[str, Array]],
    traces: Sequence[dict[str, list[Traced]]],
) -> list[dict[str, Array]]:
    """Run a stream's inferences, each on inputs of its own, and return the outputs of each.

    The application writes an inference's inputs in the period before it, and reads its outputs in
    the period behind it, at their ends; states begin with the first one's inputs and are no
    outputs. Parameters and errors are those of :func:`replay`.
    """
    run = _RunOfStream(running, network, inputs, traces)
    with one_blas_thread():
        for cycle, step, index in run.events():
            run.happen(cycle, step, index)
    # An output that is an input is not written.
    left = set(network.states.values())
    return [
        {n: (mine if n in mine else given)[n] for n in network.outputs if n not in left}
        for mine, given in zip(run.outputs, inputs, strict=True)
    ]


@dataclass(eq=False)
class _Run:
    """A plan while it runs."""

    problem: Problem
    plan: Plan
    network: Network
    inputs: Mapping[str, Array] | None
    trace: dict[str, list[Traced]] | None

    def __post_init__(self) -> None:
        given = self.problem, self.plan, self.network
        self._addresses = Addresses(*given)
        self._state = State(self.problem, self.plan, self._addresses)
        for memory, address, values in values_at_start(*given, self.inputs):
            self._state.fill(memory, address, values)
        self._activities = list(_activities(self.problem, self.plan))
        self._released: set[ResidencyIdx] = set()
        self._computed: dict[BufferIdx, Array] = {}

    def events(self) -> list[tuple[Cycles, Step, int]]:
        """Return what happens, in order: cycle, step, number of the activity or residency."""
        found = [(each.end, Step.RELEASE, each.index) for each in self.plan.residencies]
        for number, each in enumerate(self._activities):
            found.append((each.start, Step.START, number))
            found += [(each.sent, Step.FINISH, number), (each.end, Step.DELIVER, number)]
        return sorted(found)

    def happen(self, cycle: Cycles, step: Step, index: int) -> None:
        """Let one thing happen."""
        match step:
            case Step.RELEASE:
                # What lies in a DRAM tensor stays.
                if home_of(self.problem, self.plan.residencies[index]) is None:
                    self._released.add(index)
                    self._state.destroy(index)
            case Step.START:
                self._start(self._activities[index], cycle)
            case Step.FINISH:
                self._finish(self._activities[index], cycle)
            case Step.DELIVER:
                one = self._activities[index]
                if one.task is not None:
                    self._computed.update(zip(one.task.writes, one.values, strict=True))
                for target, values in zip(one.targets, one.values, strict=True):
                    if target not in self._released:
                        self._state.write(target, values)
                one.values = []

    def output(self, name: str) -> Array:
        """Return a network output from its place in DRAM."""
        tensor = next((one for one in self.problem.tensors if one.name == name), None)
        if tensor is None:
            raise ReplayError(f"the problem has no DRAM tensor for the output {name}")
        stored = self._state.read_tensor(tensor)
        for buffer in self.problem.buffers:
            place = buffer.place
            if place is not None and place.tensor == tensor.index and buffer.ends_in is not None:
                at = f"output {name} holds {buffer.name} from element {place.start} on"
                sides = zip(place.start, buffer.shape, strict=True)
                inside = tuple(slice(first, first + length) for first, length in sides)
                self._make_sure_it_is_meant(buffer.index, stored[inside], at)
        return self._in_axes_of_model(tensor, stored)

    def _in_axes_of_model(self, tensor: DramTensor, stored: Array) -> Array:
        """Return a network output as the model has it."""
        known = self.network.tensors[tensor.name]
        values = stored.view(known.dtype)
        axes = self._addresses.axes(tensor)
        return (values.transpose(inverse(axes)) if axes else values).reshape(known.shape)

    def _start(self, one: _Activity, cycle: Cycles) -> None:
        """Take note of the operands, then destroy what will be written, scratch included.

        Operands whose bytes a result may take, and takes, stay.
        """
        one.values = [self._state.read(one.name, *source, cycle) for source in one.sources]
        if one.task is not None:
            for (slice_, index), values in zip(one.sources, one.values, strict=True):
                what = f"{one.name} reads {self._state.where(index)} at cycle {cycle}"
                self._make_sure_it_is_meant(slice_, values, what)
        for target in (*one.targets, *(() if one.scratch is None else (one.scratch,))):
            self._state.destroy(target)
        for position in one.kept:
            self._state.restore(*one.sources[position], one.values[position])

    def _finish(self, one: _Activity, cycle: Cycles) -> None:
        """Make sure that the operands are what they were, and compute the result."""
        for source, before in zip(one.sources, one.values, strict=True):
            self._state.compare(one.name, *source, before, cycle)
        if one.task is None:
            one.values *= len(one.targets)
        else:
            one.values = self._compute(one.task, list(zip(one.task.reads, one.values, strict=True)))

    def _compute(self, task: Task, read: Sequence[tuple[SliceIdx, Array]]) -> list[Array]:
        given = self.problem, self.network, self._addresses
        return compute_task(*given, task, read, self.trace)

    def _make_sure_it_is_meant(self, slice_: SliceIdx, found: Array, what: str) -> None:
        """Compare bytes that were read with those that were computed or given for that tile."""
        part = self.problem.slices[slice_]
        buffer = self.problem.buffers[part.buffer]
        known = self._computed.get(buffer.index)
        if known is None and buffer.starts_in is not None:
            known = self._computed[buffer.index] = self._given(buffer, self.inputs or {})
        sides = zip(part.start, part.extent, strict=True)
        inside = tuple(slice(first, first + length) for first, length in sides)
        wrong = found.size if known is None else np.count_nonzero(found != known[inside])
        if wrong:
            raise ReplayError(
                f"{what}, but {wrong} of {found.size} elements are not those of {buffer.name}"
            )

    def _given(self, buffer: Buffer, inputs: Mapping[str, Array]) -> Array:
        """Return the bytes of a buffer that the model or the inputs give."""
        tile = self._addresses.tile(buffer)
        given = given_values(self.network, inputs, tile.of)
        box = slices(tile.box, (0,) * len(tile.box))
        return raw(self._addresses.in_memory_order(buffer, given[box]))


class _RunOfStream(_Run):
    """Inferences of a stream while they run; what each leaves is in ``outputs``."""

    def __init__(
        self,
        running: Running,
        network: Network,
        inputs: Sequence[Mapping[str, Array]],
        traces: Sequence[dict[str, list[Traced]]],
    ) -> None:
        states = {name: inputs[0][name] for name in network.states}
        super().__init__(running.problem, running.plan, network, states, None)
        self._tiles = Addresses(running.given, running.plan, network)
        self._running, self._inputs_of, self._traces = running, inputs, traces
        self.outputs: list[dict[str, Array]] = [{} for _ in inputs]

    def _compute(self, task: Task, read: Sequence[tuple[SliceIdx, Array]]) -> list[Array]:
        """Return what a task writes; those of the application hand in, or take."""
        inference, number = self._running.tasks[task.index]
        if number == self._running.hand_in:
            values = self._inputs_of[inference]
            return [self._given(self.problem.buffers[one], values) for one in task.writes]
        if number == self._running.take:
            places = (self._addresses.buffer(slice_).place for slice_, _ in read)
            for index in {place.tensor for place in places if place is not None}:
                tensor = self.problem.tensors[index]
                stored = self._state.read_tensor(tensor)
                self.outputs[inference][tensor.name] = self._in_axes_of_model(tensor, stored)
            return []
        # What the inference before has left goes by the name of what is read.
        meant = self._running.given.tasks[number]
        operands = [(slice_, found) for slice_, (_, found) in zip(meant.reads, read, strict=True)]
        given = self._running.given, self.network, self._tiles
        return compute_task(*given, meant, operands, self._traces[inference])


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
