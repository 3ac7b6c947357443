"""The value replay: a plan run on real numbers.

Every memory is one array of bytes; transfers copy bytes between addresses; tasks compute on the
bytes at their operands' addresses. An overlap, a too-early read, a wrong halo or a lost value shows
as an error here or as a wrong number in the outputs, whatever the rules overlook.

While a task or transfer runs, the bytes that it fills are destroyed (unless they may be those of an
operand) and the bytes that it reads must not change. A residency's bytes are destroyed at its end.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from spmilp.checker.values.addresses import Addresses, Piece, gather, inverse
from spmilp.checker.values.errors import ReplayError
from spmilp.checker.values.events import Actor, Event, Step, timed_events
from spmilp.checker.values.group import evaluate
from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.memory import Memory, raw
from spmilp.frontend.graph import Network
from spmilp.frontend.operators.boxes import contains, slices, starts
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import DramTensor, Problem
from spmilp.problem.strides import Layout, row_major_strides
from spmilp.units import Box, Cycles, ResidencyIdx, SliceIdx, TaskIdx, TransferIdx


def replay(
    problem: Problem,
    plan: Plan,
    network: Network,
    inputs: Mapping[str, Array],
    events: Iterable[Event] | None = None,
) -> dict[str, Array]:
    """Run a plan on numbers and return the network's outputs.

    Parameters
    ----------
    inputs
        One array for each of the network's inputs, of its shape and type.
    events
        The order in which things happen; by default that of the plan's cycles.

    Raises
    ------
    ReplayError
        If the plan reads bytes that are not there, or changes bytes while they are read.
    """
    run = _Replay(problem, plan, network, inputs)
    for event in timed_events(plan) if events is None else events:
        run.happen(event)
    return {name: run.output(name) for name in network.outputs}


class _Replay:
    """The memories of a machine while a plan runs."""

    def __init__(
        self, problem: Problem, plan: Plan, network: Network, inputs: Mapping[str, Array]
    ) -> None:
        self._problem = problem
        self._plan = plan
        self._network = network
        self._inputs = inputs
        self._addresses = Addresses(problem, plan, network)
        self._memories = self._empty_memories()
        self._operands: dict[tuple[Actor, int], list[tuple[SliceIdx, ResidencyIdx, Array]]] = {}
        self._results: dict[tuple[Actor, int], list[tuple[ResidencyIdx, Array]]] = {}
        self._write_what_is_given()

    def happen(self, event: Event) -> None:
        """Let one thing happen."""
        match event.step, event.actor:
            case Step.START, _:
                self._start(event)
            case Step.FINISH, Actor.TASK:
                self._operands_are_unchanged(event)
                self._results[event.actor, event.index] = self._compute(event)
            case Step.FINISH, _:
                self._operands_are_unchanged(event)
                self._results[event.actor, event.index] = self._copies(event.index)
            case Step.DELIVER, _:
                for index, values in self._results.pop((event.actor, event.index)):
                    self._write(self._plan.residencies[index], values)
                del self._operands[event.actor, event.index]
            case Step.RELEASE, _:
                residency = self._plan.residencies[event.index]
                if not self._addresses.is_at_place(residency):
                    self._poison(residency)

    def output(self, name: str) -> Array:
        """Return a network output from its place in DRAM."""
        tensor = next((one for one in self._problem.tensors if one.name == name), None)
        if tensor is None:
            raise ReplayError(f"the problem has no DRAM tensor for the output {name}")
        memory, address = self._memories[tensor.memory], self._plan.tensors[tensor.index]
        layout = Layout(0, row_major_strides(tensor.shape, tensor.item))
        missing = memory.missing(address, layout, tensor.shape, tensor.item)
        if missing:
            raise ReplayError(
                f"output {name}: {missing} of {tensor.bytes} B in {memory.name} at {address} have "
                "not been written at the end"
            )
        values = memory.read(address, layout, tensor.shape, tensor.item)
        known = self._network.tensors[name]
        axes = self._axes(tensor)
        ordered = values.view(known.dtype).transpose(inverse(axes)) if axes else values
        return ordered.view(known.dtype).reshape(known.shape)

    def _empty_memories(self) -> tuple[Memory, ...]:
        spans: dict[int, list[tuple[int, int]]] = {}
        for residency in self._plan.residencies:
            spans.setdefault(residency.memory, []).append(self._addresses.span(residency))
        for tensor, address in zip(self._problem.tensors, self._plan.tensors, strict=True):
            spans.setdefault(tensor.memory, []).append((address, address + tensor.bytes))
        return tuple(
            Memory(
                memory.name,
                min((first for first, _ in spans.get(memory.index, ())), default=0),
                max((end for _, end in spans.get(memory.index, ())), default=0),
            )
            for memory in self._problem.machine.memories
        )

    def _write_what_is_given(self) -> None:
        """Put network inputs and constants where they are at cycle 0."""
        starting = {
            buffer.place.tensor
            for buffer in self._problem.buffers
            if buffer.place is not None and buffer.starts_in is not None
        }
        for tensor in self._problem.tensors:
            if tensor.index in starting:
                values = self._given(tensor.name)
                axes = self._axes(tensor)
                ordered = (values.transpose(axes) if axes else values).reshape(tensor.shape)
                layout = Layout(0, row_major_strides(tensor.shape, tensor.item))
                address = self._plan.tensors[tensor.index]
                self._memories[tensor.memory].write(address, layout, raw(ordered))
        for residency in self._plan.residencies:
            self._write_if_kept_on_chip(residency)

    def _write_if_kept_on_chip(self, residency: Residency) -> None:
        """Put a buffer that starts in a scratchpad there."""
        filled = residency.filled_by_task is not None or residency.filled_by_transfer is not None
        if filled or residency.slice is None or self._addresses.is_at_place(residency):
            return
        buffer = self._addresses.buffer(residency.slice)
        if buffer.starts_in != residency.memory or residency.start != 0:
            return
        tile = self._addresses.tile(buffer)
        part = self._given(tile.of)[slices(tile.box, (0,) * len(tile.box))]
        values = raw(self._addresses.in_memory_order(buffer, part))
        held = self._problem.slices[residency.slice]
        inside = tuple(
            slice(start, start + extent)
            for start, extent in zip(held.start, held.extent, strict=True)
        )
        self._write(residency, values[inside])

    def _given(self, name: str) -> Array:
        """Return the values of a network input or constant."""
        tensor = self._network.tensors.get(name)
        if tensor is None:
            raise ReplayError(f"the model has no tensor {name}; is the plan of another model?")
        values = tensor.data if tensor.data is not None else self._inputs.get(name)
        if values is None and name in self._network.inputs:
            raise ReplayError(f"no values are given for the network input {name}")
        if values is None:
            raise ReplayError(f"the model file has no values for the constant {name}, only a shape")
        if values.shape != tensor.shape or values.dtype != tensor.dtype:
            raise ReplayError(
                f"{name}: given {values.dtype} of shape {values.shape}, expected {tensor.dtype} of "
                f"shape {tensor.shape}"
            )
        return values

    def _axes(self, tensor: DramTensor) -> tuple[int, ...]:
        """Return the order of axes in which a DRAM tensor lies: that of the buffers in it."""
        for buffer in self._problem.buffers:
            if buffer.place is not None and buffer.place.tensor == tensor.index:
                return () if buffer.tile is None else buffer.tile.axes
        return ()

    def _start(self, event: Event) -> None:
        """Take note of the operands, then destroy what will be written."""
        if event.actor is Actor.TASK:
            placement = self._plan.placements[event.index]
            task = self._problem.tasks[placement.task]
            sources = list(zip(task.reads, placement.reads, strict=True))
            targets = [*placement.writes]
            if placement.scratch is not None:
                targets.append(placement.scratch)
            shared = self._in_place(placement.task)
        else:
            transfer = self._plan.transfers[event.index]
            sources = [(transfer.slice, transfer.source)]
            targets, shared = [*transfer.destinations], set()
        self._operands[event.actor, event.index] = [
            (slice_, residency, self._operand(event, slice_, residency))
            for slice_, residency in sources
        ]
        for target in targets:
            if target not in shared:
                self._poison(self._plan.residencies[target])

    def _in_place(self, task: TaskIdx) -> set[ResidencyIdx]:
        """Return the residencies written that may have, and have, the bytes of an operand."""
        placement, given = self._plan.placements[task], self._problem.tasks[task]
        shared = set()
        for slice_, buffer in given.in_place:
            source_index = placement.reads[given.reads.index(slice_)]
            target_index = placement.writes[given.writes.index(buffer)]
            source = self._plan.residencies[source_index]
            target = self._plan.residencies[target_index]
            if (source.memory, source.offset) == (target.memory, target.offset):
                shared.add(target_index)
        return shared

    def _operand(self, event: Event, slice_: SliceIdx, index: ResidencyIdx) -> Array:
        """Return the bytes that a task or transfer reads, all of which must be there."""
        residency = self._plan.residencies[index]
        memory, layout = self._memories[residency.memory], self._addresses.layout(slice_, residency)
        extent, item = self._problem.slices[slice_].extent, self._addresses.buffer(slice_).item
        if not memory.holds(residency.offset, layout, extent, item):
            raise ReplayError(f"{self._who(event)}: {self._where(residency)} ends before the slice")
        missing = memory.missing(residency.offset, layout, extent, item)
        if missing:
            raise ReplayError(
                f"{self._who(event)} reads {self._where(residency)}, but {missing} of "
                f"{self._problem.slices[slice_].bytes} B are not there at cycle {event.cycle}"
            )
        return memory.read(residency.offset, layout, extent, item)

    def _operands_are_unchanged(self, event: Event) -> None:
        for slice_, index, before in self._operands[event.actor, event.index]:
            residency = self._plan.residencies[index]
            layout = self._addresses.layout(slice_, residency)
            memory, item = self._memories[residency.memory], before.dtype.itemsize
            now = memory.read(residency.offset, layout, before.shape, item)
            lost = memory.missing(residency.offset, layout, before.shape, item)
            changed = int(np.count_nonzero(now != before)) * item
            if changed or lost:
                raise ReplayError(
                    f"{self._who(event)} reads {self._where(residency)} until cycle {event.cycle}, "
                    f"but {max(changed, lost)} of {before.nbytes} B changed while it did"
                )

    def _compute(self, event: Event) -> list[tuple[ResidencyIdx, Array]]:
        """Return what a task writes into each of its residencies."""
        placement = self._plan.placements[event.index]
        task = self._problem.tasks[placement.task]
        who = self._who(event)
        if task.tile is None:
            raise ReplayError(f"{who} is no tile of a group: nothing to compute")
        group = self._addresses.group(task.tile.of)
        pieces: dict[tuple[str, bool], list[Piece]] = {}
        for slice_, _, values in self._operands[event.actor, event.index]:
            piece = self._addresses.piece(slice_, values)
            pieces.setdefault((piece.of, piece.partial), []).append(piece)

        def fetch(name: str, box: Box) -> Array:
            return gather(who, name, box, pieces.get((name, False), ()))

        part, previous = task.tile.reduction, None
        if part is not None and part[0] > 0:
            sums = pieces.get((group.name, True), ())
            previous = gather(who, f"the partial sums of {group.name}", task.tile.box, sums)
        result = evaluate(self._network, group, task.tile.box, fetch, part, previous)
        return [
            (residency, self._share(who, task.tile.box, result, buffer))
            for buffer, residency in zip(task.writes, placement.writes, strict=True)
        ]

    def _share(self, who: str, box: Box, result: Array, index: int) -> Array:
        """Return the part of a task's result that one of its buffers holds."""
        buffer = self._problem.buffers[index]
        tile = self._addresses.tile(buffer)
        if len(tile.box) != len(box) or not contains(box, tile.box):
            raise ReplayError(
                f"{who} computes box {box}, but the buffer {buffer.name} holds {tile.box}"
            )
        if result.dtype != self._addresses.dtype(buffer):
            raise ReplayError(
                f"{who} computes {result.dtype}, but the buffer {buffer.name} holds "
                f"{self._addresses.dtype(buffer)}"
            )
        part = result[slices(tile.box, starts(box))]
        return raw(self._addresses.in_memory_order(buffer, part))

    def _copies(self, index: TransferIdx) -> list[tuple[ResidencyIdx, Array]]:
        """Return what a transfer writes into each of its destinations."""
        ((_, _, values),) = self._operands[Actor.TRANSFER, index]
        return [(target, values) for target in self._plan.transfers[index].destinations]

    def _write(self, residency: Residency, values: Array) -> None:
        if residency.slice is None:
            raise ReplayError(f"residency {residency.index} is scratch, but is written")
        layout = self._addresses.layout(residency.slice, residency)
        self._memories[residency.memory].write(residency.offset, layout, values)

    def _poison(self, residency: Residency) -> None:
        memory = self._memories[residency.memory]
        if residency.slice is None:
            memory.poison(residency.offset, Layout(0, (1,)), (residency.bytes,), 1)
            return
        layout = self._addresses.layout(residency.slice, residency)
        extent = self._problem.slices[residency.slice].extent
        item = self._addresses.buffer(residency.slice).item
        memory.poison(residency.offset, layout, extent, item)

    def _who(self, event: Event) -> str:
        if event.actor is Actor.TASK:
            return f"task {self._problem.tasks[event.index].name}"
        buffer = self._addresses.buffer(self._plan.transfers[event.index].slice)
        return f"transfer {event.index} of {buffer.name}"

    def _where(self, residency: Residency) -> str:
        """Name a residency for people."""
        what = "scratch"
        if residency.slice is not None:
            what = self._addresses.buffer(residency.slice).name
        memory: Cycles | str = self._problem.machine.memories[residency.memory].name
        return f"residency {residency.index} ({what} in {memory} at {residency.offset})"
