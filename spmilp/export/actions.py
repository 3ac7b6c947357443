"""What runs: copies of transfers and calls of kernels, made from plan, command lists and network.

Packed tables (:mod:`spmilp.export.packed`) and straight C (:mod:`spmilp.export.straight`) write
these objects. The calls of a task are those of the value replay
(:mod:`spmilp.checker.values.replay`): the same operators on the same boxes.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import NamedTuple, TypeVar

import numpy as np

from spmilp.checker.values.kernels.products import accumulator_dtype
from spmilp.checker.values.state import Addresses, inverse
from spmilp.export.codes import (
    ATTRIBUTES,
    OPERATOR_CODES,
    AttributeType,
    Bound,
    Direction,
    Part,
    require_kernels,
    type_code,
)
from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.export.places import ALIGNMENT, FIRST_SPACE, WORKSPACE_SPACE, Address, Places
from spmilp.export.subject import Subject
from spmilp.frontend import graph
from spmilp.frontend.fixed_point import is_fixed, words_of
from spmilp.frontend.graph import Group, Operator
from spmilp.frontend.operators.boxes import extents, intersect
from spmilp.frontend.operators.registry import geometries
from spmilp.frontend.regions import box_of_anchor
from spmilp.frontend.workspace import (
    OUTPUT,
    SUMS_BEFORE,
    Room,
    computes_in_order,
    keeps_bytes,
    notes_of,
)
from spmilp.lowering.groups import computation_of
from spmilp.machine.controllers import StridedCopy
from spmilp.plan.memory import layout_in_memory
from spmilp.plan.running import in_round, rounds_of
from spmilp.problem.problem import BufferKind
from spmilp.problem.strides import Layout, row_major_strides, strided_copy
from spmilp.units import Box, Bytes, ResidencyIdx, SliceIdx, TaskIdx, TransferIdx, align_up

T = TypeVar("T")

_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators whose bias is added as it is where both factors are integers that stand for reals."""

_LEAST_WORD, _LARGEST_WORD = -(2**31), 2**31 - 1


class Copy(NamedTuple):
    """Runs of bytes that go from one place to another."""

    source: Address
    destination: Address
    shape: StridedCopy


class Operand(NamedTuple):
    """A box of a tensor that a kernel reads or writes, packed at a place.

    The box is first element and length of each axis, one behind the other; ``sums`` the type of
    partial sums, or 0. Copies bring an input to its place before the call, or an output from there
    after it; ``None`` where it lies packed where the plan has it.
    """

    box: tuple[int, ...]
    sums: int
    place: Address
    copies: tuple[Copy, ...] | None

    @property
    def rank(self) -> int:
        """Axes."""
        return len(self.box) // 2


class Call(NamedTuple):
    """One call of a kernel, on the operator of a number in :attr:`Actions.operators`.

    An input is ``None`` if it is not read; ``previous`` are the sums of the part before.
    """

    operator: int
    part: Part
    inputs: tuple[Operand | None, ...]
    previous: Operand | None
    output: Operand


class Scale(NamedTuple):
    """The quantisation of an operand: positions in words, and the axis of scales (-1 for one)."""

    type: int
    axis: int
    first: int
    zeros: int
    first_zero: int


class Described(NamedTuple):
    """What an operator says of an operand: no rank for an input that is not read.

    The shape is that of the whole tensor, zeros for partial sums.
    """

    rank: int | None
    type: int = 0
    shape: tuple[int, ...] = ()
    scale: Scale | None = None


class Attribute(NamedTuple):
    """An attribute: codes of its name and type, words, and the first one (of a text in texts)."""

    name: int
    type: int
    words: int
    first: int


class OperatorCode(NamedTuple):
    """What all tiles of an operator have in common.

    ``quantised`` is 0 for one on its inputs as they are, 1 on integers that stand for reals, and 2
    where the zero point is added before the result is rounded. Limits are bits of :class:`Bound`;
    where there are some, words have both from ``low_and_high`` on.
    """

    kind: int
    quantised: int
    limits: int
    low_and_high: int | None
    attributes: tuple[Attribute, ...]
    output: Described
    inputs: tuple[Described, ...]


def repeated(ways: list[T]) -> list[T]:
    """Return the first of some ways, one of each round, after which they are the same again."""
    many = len(ways)
    parts = (ways[:n] for n in range(1, many + 1) if many % n == 0)
    return next((part for part in parts if part * (many // len(part)) == ways), ways)


class Pool:
    """Numbers one behind the other; equal runs of them are kept once."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self._known: dict[tuple[int, ...], int] = {}

    def add(self, values: Iterable[int]) -> int:
        """Return the position of the first of some numbers."""
        run = tuple(map(int, values))
        if run not in self._known:
            self._known[run] = len(self.values)
            self.values += run
        return self._known[run]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A box of a tensor, or of a group's partial sums, as it lies from a place on.

    Box and strides (in bytes) are in the model's axes.
    """

    of: str = ""
    partial: bool = False
    box: Box
    place: Address
    strides: tuple[Bytes, ...]

    def at(self, box: Box) -> Layout:
        """Return how a box inside lies, from the piece's place on."""
        firsts = zip(box, self.box, self.strides, strict=True)
        offset = sum((start - first) * stride for (start, _), (first, _), stride in firsts)
        return Layout(offset, self.strides)


class Actions:
    """Makes copies and calls, and keeps what they refer to: only what runs, equal things once.

    All ``calls`` are kept.

    ``words`` are integers of 32 bits, and reals as the bits of float32; ``texts`` are UTF-8, each
    with a zero behind it, and the first is empty.

    Raises an ``ExportError`` if the network is not known, or a kernel or C cannot express an
    operator, and a ``ValuesError`` if the model has no values of a constant.
    """

    def __init__(self, subject: Subject) -> None:
        if subject.network is None:
            raise ExportError("export: only the model says what runs: add --model MODEL.onnx")
        require_kernels(subject.network)
        self.words, self.texts = Pool(), Pool()
        self.texts.add(b"\0")
        self.operators: dict[OperatorCode, int] = {}
        self.subject, self.network = subject, subject.network
        self.addresses = Addresses(subject.problem, subject.plan, subject.network)
        self.places = Places(subject, subject.network)
        self.largest_workspace = 0
        self.calls: list[Call] = []

    @cached_property
    def rounds(self) -> list["Actions"]:
        """What makes the actions of each inference of a stream that has other addresses.

        Pools and places are the same. Of one inference it is this object.
        """
        problem, plan, stream = self.subject.problem, self.subject.plan, self.subject.plan.stream
        if stream is None:
            return [self]
        found = []
        for inference in range(rounds_of(plan, stream)):
            each, own = copy(self), in_round(problem, plan, stream, inference)
            each.subject = replace(self.subject, plan=own)
            each.addresses = Addresses(problem, own, self.network)
            found.append(each)
        return found

    @property
    def workspace(self) -> Bytes:
        """Bytes for each core besides the plan, for tasks whose scratch holds no workspace."""
        return align_up(self.largest_workspace, 8)

    def copies_of(self, number: TransferIdx) -> list[tuple[Copy, ...]]:
        """Return the copies of a transfer in each round."""
        return [each.transfer(number) for each in self.rounds]

    def calls_of(self, number: TaskIdx) -> list[tuple[Call, ...]]:
        """Return the calls of a task in each round; there are none of the application's."""
        if number >= len(self.subject.problem.tasks):
            return []
        calls = [each.task(number) for each in self.rounds]
        self.largest_workspace = max(each.largest_workspace for each in self.rounds)
        return calls

    def transfer(self, number: TransferIdx) -> tuple[Copy, ...]:
        """Return a copy for each destination of a transfer."""
        found, of = [], self.places.of
        for source, target, block in self.subject.copies(self.subject.plan.transfers[number]):
            ends = of(source, block.source), of(target, block.destination)
            found.append(Copy(*ends, StridedCopy(run=block.run, loops=block.loops)))
        return tuple(found)

    def task(self, number: TaskIdx) -> tuple[Call, ...]:
        """Return the calls of a task, in order."""
        made = _TaskCalls(self, number)
        calls = tuple(made.calls())
        self.calls += calls
        self.largest_workspace = max(self.largest_workspace, made.workspace)
        return calls

    def ports(self) -> list[tuple[int, ...]]:
        """Return a row, as C has it, for each input and output of the network in DRAM.

        The states of a stream are none: the application gives what they begin with alone.
        """
        return [*self._ports(is_state=False)]

    def ports_of_states(self) -> list[tuple[int, ...]]:
        """Return the rows of states, to be written before a stream begins."""
        return [*self._ports(is_state=True)]

    def _ports(self, *, is_state: bool) -> Iterator[tuple[int, ...]]:
        states = self.network.states if self.subject.plan.stream is not None else {}
        left = set(states.values())
        tensors = {tensor.name: tensor for tensor in self.subject.problem.tensors}
        sides = [(Direction.INPUT, name) for name in self.network.inputs]
        sides += [(Direction.OUTPUT, name) for name in self.network.outputs]
        for direction, name in sides:
            if name not in tensors or name in left or (name in states) != is_state:
                continue
            tensor, known = tensors[name], self.network.tensors[name]
            strides = row_major_strides(tensor.shape, tensor.item)
            axes, rank = self.addresses.axes(tensor), len(known.shape)
            if axes:
                strides = tuple(strides[axis] for axis in inverse(axes))
            address = self.subject.plan.tensors[tensor.index]
            space, offset = self.places.of(tensor.memory, address)
            shape, steps = self.words.add(known.shape), self.words.add(strides[:rank])
            type_ = type_code(known.dtype)
            row = (offset, tensor.bytes, space - FIRST_SPACE, direction, type_, rank)
            yield (*row, shape, steps, 0, 0)

    def piece(self, slice_: SliceIdx, residency: ResidencyIdx) -> _Piece:
        """Return the piece that a slice in a residency is."""
        problem, plan = self.subject.problem, self.subject.plan
        buffer, (box, axes) = self.addresses.buffer(slice_), self.addresses.box(slice_)
        lies = layout_in_memory(problem, plan, slice_, residency)
        return _Piece(
            of=self.addresses.tile(buffer).of,
            partial=buffer.kind is BufferKind.PARTIAL,
            box=box,
            place=self.places.of(plan.residencies[residency].memory, lies.offset),
            strides=tuple(lies.strides[axis] for axis in axes),
        )

    def operator(
        self, operator: Operator, inputs: Sequence[Operand | None], output: Operand
    ) -> int:
        """Return the number of an operator."""
        quantisation = operator.quantisation
        limits, low_and_high, quantised = 0, None, 0
        scales: list[graph.Scale | None] = [None] * (len(inputs) + 1)
        if quantisation is not None:
            low, high = quantisation.low, quantisation.high
            limits = Bound.LOW * (low is not None) + Bound.HIGH * (high is not None)
            if limits:
                low_and_high = self.words.add((_bits(low or 0.0), _bits(high or 0.0)))
            scales[: len(inputs)] = [*quantisation.inputs, *scales][: len(inputs)]
            scales[-1] = quantisation.output
            if operator.kind in _PRODUCTS and None not in scales[:2]:
                scales[2:-1] = [None] * len(scales[2:-1])
            if is_fixed(operator):
                shape = self.network.tensors[operator.inputs[0]].shape
                fixed = words_of(operator, shape)
                operator = replace(operator, attributes={**operator.attributes, "fixed": fixed})
            quantised = int(graph.Rounding.HALF_EVEN if scales[-1] is None else scales[-1].rounding)
        made = OperatorCode(
            kind=OPERATOR_CODES[operator.kind],
            quantised=quantised,
            limits=limits,
            low_and_high=low_and_high,
            attributes=tuple(self._attributes(operator)),
            output=self._described(operator.output, output, scales[-1]),
            inputs=tuple(map(self._described, operator.inputs, inputs, scales)),
        )
        return self.operators.setdefault(made, len(self.operators))

    def _described(
        self, name: str, operand: Operand | None, scale: graph.Scale | None
    ) -> Described:
        made = None if scale is None else self._scale(scale)
        if operand is None:
            return Described(None, scale=made)
        if operand.sums:
            return Described(operand.rank, operand.sums, (0,) * operand.rank, made)
        tensor = self.network.tensors[name]
        return Described(operand.rank, type_code(tensor.dtype), tensor.shape, made)

    def _scale(self, scale: graph.Scale) -> Scale:
        steps = scale.scale.reshape(-1).astype("<f4").tobytes()
        first = self.words.add(struct.unpack(f"<{len(steps) // 4}i", steps))
        zeros = [int(zero) for zero in scale.zero_point.reshape(-1)]
        zeros = zeros[:1] if len(set(zeros)) == 1 else zeros
        axis = -1 if scale.axis is None else scale.axis
        return Scale(type_code(scale.dtype), axis, first, len(zeros), self.words.add(zeros))

    def _attributes(self, operator: Operator) -> Iterator[Attribute]:
        """Yield an operator's attributes in the order of their numbers."""
        for number, name in enumerate(ATTRIBUTES):
            if name not in operator.attributes:
                continue
            value = _in_words(operator, name)
            if isinstance(value, str):
                text = value.encode("utf-8", "backslashreplace").replace(b"\0", b"") + b"\0"
                yield Attribute(number, AttributeType.TEXT, 1, self.texts.add(text))
                continue
            values = value if isinstance(value, tuple) else (value,)
            is_real = values != () and all(isinstance(each, float) for each in values)
            type_ = AttributeType.REAL if is_real else AttributeType.INTEGER
            if isinstance(value, tuple):
                type_ = AttributeType.REALS if is_real else AttributeType.INTEGERS
            words = map(_bits if is_real else int, values)
            yield Attribute(number, type_, len(values), self.words.add(words))


class _TaskCalls:
    """Makes the calls of one task.

    What they compute that is not the group's output, and operands that do not lie packed, is in the
    task's scratch, where lowering has counted it. It lies in a workspace besides the plan, of which
    ``workspace`` counts the bytes, where a problem gives the task less scratch. Partial sums are in
    the axes of the anchor's output.
    """

    def __init__(self, actions: Actions, number: TaskIdx) -> None:
        self.workspace: Bytes = 0
        self._actions, self._network = actions, actions.network
        problem, plan = actions.subject.problem, actions.subject.plan
        task, placement = problem.tasks[number], plan.placements[number]
        name, tile = comment(task.name), task.tile
        if tile is None:
            raise ExportError(f"export: task {name} is no tile of a group of the model")
        computation = computation_of(self._network, actions.addresses.group(tile.of))
        part = tile.reduction or (0, computation.length)
        group, self._group = computation.group, computation.computed(part)
        self._part, self._is_last = computation.reduction(part), self._group is group
        reads = [actions.piece(*read) for read in zip(task.reads, placement.reads, strict=True)]
        writes = [actions.piece(*each) for each in zip(task.writes, placement.writes, strict=True)]
        if not self._is_last:
            writes = [self._at_anchor(group, piece) for piece in writes]
        self._regions = computation.regions(tile.box, part)
        self._given = [piece for piece in reads if not piece.partial]
        self._sums = [self._at_anchor(group, piece) for piece in reads if piece.partial]
        self._results = writes
        self._overwrites = bool(task.in_place)
        self._computed: dict[str, _Piece] = {}
        boxes = computation.reads(tile.box, part)
        pieces, results = map(problem.slices.__getitem__, task.reads), len(task.writes)
        notes = notes_of(pieces, boxes, problem.buffers, results, task.in_place)
        workspace = computation.workspace(tile.box, part, notes)
        self._rooms: Mapping[Room, Bytes | None] = {}
        self._scratch = Address(WORKSPACE_SPACE, 0)
        if placement.scratch is not None:
            held = plan.residencies[placement.scratch]
            self._scratch = actions.places.of(held.memory, held.offset)
        if workspace.bytes <= (0 if placement.scratch is None else task.scratch):
            self._rooms = workspace.rooms

    def calls(self) -> Iterator[Call]:
        """Yield the calls, in order."""
        for position, operator in enumerate(self._group.operators):
            if operator.output in self._regions:
                part = self._part if position == self._group.anchor else None
                yield from self._call(position, operator, part)

    def _call(
        self, position: int, operator: Operator, part: tuple[int, int] | None
    ) -> Iterator[Call]:
        """Yield the call of an operator; none for one whose output has its input's bytes."""
        own = self._regions[operator.output]
        boxes = geometries(self._network)[operator].reads(own, part)
        is_result = operator.output == self._group.output
        is_view = not is_result and keeps_bytes(operator, own, boxes)
        inputs = tuple(
            None
            if box is None
            else self._input(name, box, (position, OUTPUT if is_view else number))
            for number, (name, box) in enumerate(zip(operator.inputs, boxes, strict=True))
        )
        source = inputs[0]
        if is_view and source and source.copies is None:
            self._compute(operator, own, source.place)
            return
        previous, which = None, Part.WHOLE
        if part is not None:
            which = Part.LAST if self._is_last else Part.PARTIAL
            if part[0] > 0:
                sums, room = accumulator_dtype(operator), (position, SUMS_BEFORE)
                previous = self._operand(own, sums, self._sums, room, are_sums=True)
        output = self._output(operator, own, (position, OUTPUT))
        number = self._actions.operator(operator, inputs, output)
        yield Call(number, which, inputs, previous, output)

    def _input(self, name: str, box: Box, room: Room) -> Operand:
        """Return what is read: of what was computed before, or of memory."""
        candidates = [piece for piece in self._given if piece.of == name]
        if name in self._computed:
            candidates = [self._computed[name]]
        return self._operand(box, self._network.tensors[name].dtype, candidates, room)

    def _output(self, operator: Operator, own: Box, room: Room) -> Operand:
        """Return what is written: in memory for the group's output, else in the workspace."""
        dtype = self._network.tensors[operator.output].dtype
        if operator.output == self._group.output:
            are_sums = not self._is_last
            dtype = accumulator_dtype(operator) if are_sums else dtype
            apart = self._overwrites and not (self._sums or computes_in_order(operator))
            how = {"are_sums": are_sums, "is_written": True, "is_apart": apart}
            return self._operand(own, dtype, self._results, room, **how)
        place = self._room(room, dtype.itemsize * prod(extents(own)))
        return self._operand(own, dtype, [self._compute(operator, own, place)], room)

    def _compute(self, operator: Operator, own: Box, place: Address) -> _Piece:
        """Return a piece that is computed at a place, and note where it lies."""
        item = self._network.tensors[operator.output].dtype.itemsize
        strides = row_major_strides(extents(own), item)
        made = _Piece(of=operator.output, box=own, place=place, strides=strides)
        self._computed[operator.output] = made
        return made

    def _operand(
        self,
        box: Box,
        dtype: np.dtype[np.generic],
        candidates: Iterable[_Piece],
        room: Room,
        *,
        are_sums: bool = False,
        is_written: bool = False,
        is_apart: bool = False,
    ) -> Operand:
        """Return a box of what some pieces hold.

        It is used where it lies if one piece holds it packed, unless it is to be ``is_apart`` from
        bytes that are read; else it is packed in its room.
        """
        pieces, copies = _holding(box, candidates), None
        if len(pieces) == 1 and not is_apart and _is_packed(pieces[0][0], box, dtype.itemsize):
            piece = pieces[0][0]
            place = piece.place.further(piece.at(box).offset)
        else:
            place = self._room(room, prod(extents(box)) * dtype.itemsize)
            strides = row_major_strides(extents(box), dtype.itemsize)
            packed = _Piece(box=box, place=place, strides=strides)
            copies = tuple(
                _copy(*((packed, piece) if is_written else (piece, packed)), shared, dtype.itemsize)
                for piece, shared in pieces
            )
        return Operand(
            box=tuple(number for start, stop in box for number in (start, stop - start)),
            sums=type_code(dtype) if are_sums else 0,
            place=place,
            copies=copies,
        )

    def _room(self, room: Room, size: Bytes) -> Address:
        """Return the place of a room: in the result, the scratch, or besides the plan."""
        if room in self._rooms:
            offset = self._rooms[room]
            return self._results[0].place if offset is None else self._scratch.further(offset)
        offset = self.workspace
        self.workspace += align_up(size, ALIGNMENT)
        return Address(WORKSPACE_SPACE, offset)

    def _at_anchor(self, group: Group, piece: _Piece) -> _Piece:
        """Return a piece of a group's partial sums in the axes of its anchor's output.

        Axes of length 1 may come and go; the others are the same ones.
        """
        shape = self._network.tensors[group.output].shape
        long = (own for own, length in zip(piece.strides, shape, strict=True) if length > 1)
        anchor = self._network.tensors[group.operators[group.anchor].output]
        strides = tuple(0 if length == 1 else next(long) for length in anchor.shape)
        return replace(piece, box=box_of_anchor(self._network, group, piece.box), strides=strides)


def _copy(source: _Piece, target: _Piece, box: Box, item: Bytes) -> Copy:
    """Return the copy of a box that two pieces share from one to the other."""
    here, there = source.at(box), target.at(box)
    shape = strided_copy(extents(box), item, Layout(0, here.strides), Layout(0, there.strides))
    return Copy(source.place.further(here.offset), target.place.further(there.offset), shape)


def _bits(value: float) -> int:
    """Return the bits of a float32 as a signed integer."""
    with np.errstate(over="ignore"):
        return int(np.float32(value).view(np.int32))


def _in_words(operator: Operator, name: str) -> graph.Attribute:
    """Return an attribute whose integers fit words.

    ONNX writes "to the end" as the greatest integer of 64 bits; a Slice's starts and ends are cut
    off at an axis' ends anyway.
    """
    value = operator.attributes[name]
    if name in ("starts", "ends") and isinstance(value, tuple):
        return tuple(min(max(int(each), _LEAST_WORD), _LARGEST_WORD) for each in value)
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, int) and not _LEAST_WORD <= each <= _LARGEST_WORD:
            raise ExportError(
                f"export: operator {comment(operator.name)}: {name} is {each}, outside "
                f"[{_LEAST_WORD}, {_LARGEST_WORD}] of a word"
            )
    return value


def _is_packed(piece: _Piece, box: Box, item: Bytes) -> bool:
    """Say whether the elements of a box lie packed in a piece."""
    extent = extents(box)
    sides = zip(extent, piece.strides, row_major_strides(extent, item), strict=True)
    return all(count == 1 or own == packed for count, own, packed in sides)


def _holding(box: Box, candidates: Iterable[_Piece]) -> list[tuple[_Piece, Box]]:
    """Return the pieces that have elements of a box, and which; one alone if it has all."""
    found = []
    for piece in candidates:
        shared = intersect(box, piece.box)
        if shared == box:
            return [(piece, box)]
        if shared is not None:
            found.append((piece, shared))
    return found
