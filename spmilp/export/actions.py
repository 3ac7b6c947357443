"""What runs: copies of transfers and calls of kernels, made from plan, command lists and network.

Packed tables (:mod:`spmilp.export.packed`) and straight C (:mod:`spmilp.export.straight`) write
these objects. The calls of a task are those of the value replay
(:mod:`spmilp.checker.values.replay`): the same operators on the same boxes.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from spmilp.checker.values.inputs import given_values
from spmilp.checker.values.kernels.products import accumulator_dtype
from spmilp.checker.values.state import Addresses, inverse
from spmilp.export.codes import (
    ATTRIBUTES,
    SCHEMES,
    AttributeType,
    Bound,
    Direction,
    Part,
    operator_code,
    type_code,
)
from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.export.subject import Subject
from spmilp.frontend import graph
from spmilp.frontend.graph import Group, Network, Operator
from spmilp.frontend.operators.boxes import extents, intersect, slices
from spmilp.frontend.operators.registry import geometries
from spmilp.frontend.regions import box_of_anchor, group_regions, until_anchor
from spmilp.machine.machine import MemoryKind
from spmilp.plan.memory import layout_in_memory
from spmilp.plan.plan import Placement, Residency
from spmilp.problem.problem import BufferKind, DramTensor, Tile
from spmilp.problem.strides import Layout, StridedCopy, row_major_strides, strided_copy
from spmilp.units import Box, Bytes, MemoryIdx, ResidencyIdx, align_up

WORKSPACE_SPACE, FIRST_SPACE = 1, 2
"""Numbers of address spaces; 0 is a list's own memory, memory ``m`` is ``FIRST_SPACE + m``."""

ALIGNMENT = 16
"""Of what lies in the workspace, and of constants in the image, at least."""

_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators whose bias is added as it is where both factors are integers that stand for reals."""

_LEAST_WORD, _LARGEST_WORD = -(2**31), 2**31 - 1


class Address(NamedTuple):
    """A byte of a program: an address space, and how far it is from its base."""

    space: int
    offset: Bytes


@dataclass(frozen=True, slots=True)
class Copy:
    """Runs of bytes that go from one place to another."""

    source: Address
    destination: Address
    shape: StridedCopy


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A box of a tensor that a kernel reads or writes, packed.

    Parameters
    ----------
    box
        First element and length of each axis, one behind the other.
    sums
        Type of partial sums; 0 for elements of the tensor.
    place
        Where it lies packed.
    copies
        What brings an input there before the call, or an output from there after it; ``None`` where
        it lies packed where the plan has it.
    """

    box: tuple[int, ...]
    sums: int
    place: Address
    copies: tuple[Copy, ...] | None

    @property
    def rank(self) -> int:
        """Axes."""
        return len(self.box) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a kernel.

    Parameters
    ----------
    operator
        Its number in :attr:`Actions.operators`.
    part
        Of the reduction: a :class:`Part`.
    inputs
        ``None`` for one that is not read.
    previous
        Sums of the part before.
    """

    operator: int
    part: int
    inputs: tuple[Operand | None, ...]
    previous: Operand | None
    output: Operand


@dataclass(frozen=True, slots=True)
class Scale:
    """The quantisation of an operand: positions in words, and the axis of scales (-1 for one)."""

    type: int
    axis: int
    first: int
    zeros: int
    first_zero: int


@dataclass(frozen=True, slots=True)
class Described:
    """What an operator says of an operand.

    Parameters
    ----------
    rank
        Axes; ``None`` for an input that is not read.
    shape
        Of the whole tensor; zeros for partial sums.
    """

    rank: int | None
    type: int = 0
    shape: tuple[int, ...] = ()
    scale: Scale | None = None


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: codes of its name and type, words, and the first one (of a text in texts)."""

    name: int
    type: int
    count: int
    first: int


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """What all tiles of an operator have in common.

    Parameters
    ----------
    quantised
        0 for one on its inputs as they are; 1 on integers that stand for reals; 2 where the zero
        point is added before the result is rounded.
    limits
        Bits of :class:`Bound`.
    low_and_high
        Position of both limits in words; ``None`` without limits.
    """

    kind: int
    quantised: int
    limits: int
    low_and_high: int | None
    attributes: tuple[Attribute, ...]
    output: Described
    inputs: tuple[Described, ...]


@dataclass(slots=True)
class Words:
    """The pool of 32-bit words: lists of integers and bits of reals, each list kept once."""

    values: list[int] = field(default_factory=list)
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def add(self, values: Iterable[int]) -> int:
        """Return the position of the first of some words."""
        words = tuple(map(int, values))
        if words not in self._known:
            self._known[words] = len(self.values)
            self.values += words
        return self._known[words]


@dataclass(slots=True)
class Texts:
    """The pool of texts: UTF-8, each with a zero behind it and kept once; the first is empty."""

    data: bytearray = field(default_factory=lambda: bytearray(b"\0"))
    _known: dict[str, int] = field(default_factory=lambda: {"": 0})

    def add(self, text: str) -> int:
        """Return the position of a text's first byte; a zero inside it is left out."""
        if text not in self._known:
            self._known[text] = len(self.data)
            self.data += text.encode("utf-8", "backslashreplace").replace(b"\0", b"") + b"\0"
        return self._known[text]


class Segment(NamedTuple):
    """Bytes of constants that the plan has at an address, and where they stand in the image."""

    address: Bytes
    bytes: Bytes
    image: Bytes
    memory: MemoryIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a program keeps besides code or bits.

    Parameters
    ----------
    summary
        Cycles, bytes of packed operands, cycles per second, events and their scheme.
    ports
        Rows of inputs and outputs, as C has them.
    on_chip
        Constants that lie in a scratchpad at the start.
    used
        Bytes of each memory, constants in a DRAM left out.
    workspace
        Bytes for the packed operands of a core.
    image
        Bytes of the constants.
    """

    words: Sequence[int]
    texts: bytes
    summary: tuple[int, ...]
    ports: tuple[tuple[int, ...], ...]
    on_chip: tuple[Segment, ...]
    used: tuple[Bytes, ...]
    workspace: Bytes
    image: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A box of a tensor, or of a group's partial sums, as it lies in a memory; in the model's axes.

    The memory is ``None`` for the workspace.
    """

    of: str
    partial: bool
    box: Box
    offset: Bytes
    memory: MemoryIdx | None
    strides: tuple[Bytes, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class _Scope:
    """One task while its calls are made.

    Parameters
    ----------
    group
        Its operators; of a part that is not the last one, only those up to the anchor.
    part
        Of the anchor's reduction; ``None`` for all of it.
    length
        Of the anchor's reduction.
    given, sums, results
        Pieces of tensors that it reads, of partial sums, and of what it writes. Partial sums are in
        the axes of the anchor's output.
    computed
        What the calls so far have left in the workspace, by tensor.
    in_place
        Whether some bytes that it writes are bytes that it reads.
    workspace
        Bytes of it that are taken.
    """

    group: Group
    part: tuple[int, int] | None
    length: int
    regions: dict[str, Box]
    given: list[_Piece]
    sums: list[_Piece]
    results: list[_Piece]
    in_place: bool
    computed: dict[str, _Piece] = field(default_factory=dict)
    workspace: Bytes = 0

    def take(self, size: Bytes) -> Bytes:
        """Return the offset of bytes of the workspace that nothing else of the task has."""
        offset = self.workspace
        self.workspace += align_up(size, ALIGNMENT)
        return offset


class Actions:
    """Makes copies and calls; equal operators are kept once, in pools that keep only what runs.

    Raises
    ------
    ExportError
        If the network is not known.
    ValuesError
        If the model has no values of a constant.
    """

    def __init__(self, subject: Subject) -> None:
        if subject.network is None:
            raise ExportError("export: only the model says what runs: add --model MODEL.onnx")
        self.words, self.texts = Words(), Texts()
        self.operators: dict[OperatorCode, int] = {}
        self._subject, self._network = subject, subject.network
        self._problem, self._plan = subject.problem, subject.plan
        self._addresses = Addresses(subject.problem, subject.plan, subject.network)
        self._workspace = 0
        segments, self._image = constants_of(subject)
        self.places = Places(subject, segments)

    def transfer(self, number: int) -> tuple[Copy, ...]:
        """Return a copy for each destination of a transfer."""
        move = self._plan.transfers[number]
        part = self._problem.slices[move.slice]
        item = self._problem.buffers[part.buffer].item
        source = layout_in_memory(self._problem, self._plan, move.slice, move.source)
        origin = self._plan.residencies[move.source].memory
        copies = []
        for end in move.destinations:
            target = layout_in_memory(self._problem, self._plan, move.slice, end)
            copies.append(
                Copy(
                    self.places.of(origin, source.offset),
                    self.places.of(self._plan.residencies[end].memory, target.offset),
                    strided_copy(part.extent, item, source, target),
                )
            )
        return tuple(copies)

    def task(self, number: int) -> tuple[Call, ...]:
        """Return the calls of a task, in order.

        Raises
        ------
        ReplayError
            If the task is no tile of the network.
        ExportError
            If C cannot express an operator.
        """
        scope = self._scope(number, self._plan.placements[number])
        calls = tuple(
            self._call(scope, operator, is_anchor=position == scope.group.anchor)
            for position, operator in enumerate(scope.group.operators)
            if operator.output in scope.regions
        )
        self._workspace = max(self._workspace, scope.workspace)
        return calls

    def kept(self) -> Kept:
        """Return what stays, when all calls have been made: ports use the same pools."""
        subject, claim = self._subject, self._plan.claim
        lists, frequency = subject.lists, self._problem.machine.frequency or 0
        return Kept(
            ports=tuple(self._ports()),
            words=tuple(self.words.values),
            texts=bytes(self.texts.data),
            summary=(
                *(claim.makespan, self._workspace, frequency),
                *(lists.events, SCHEMES[lists.scheme]),
            ),
            on_chip=tuple(self.places.on_chip),
            used=tuple(self.places.used),
            workspace=align_up(self._workspace, 8),
            image=self._image,
        )

    def _ports(self) -> Iterator[tuple[int, ...]]:
        """Yield a row for each input and output of the network that lies in DRAM."""
        sides = (
            (Direction.INPUT, self._network.inputs),
            (Direction.OUTPUT, self._network.outputs),
        )
        tensors = {tensor.name: tensor for tensor in self._problem.tensors}
        for direction, names in sides:
            for name in names:
                if name in tensors:
                    yield self._port(direction, tensors[name])

    def _port(self, direction: Direction, tensor: DramTensor) -> tuple[int, ...]:
        known = self._network.tensors[tensor.name]
        strides = row_major_strides(tensor.shape, tensor.item)
        axes, rank = self._addresses.axes(tensor), len(known.shape)
        if axes:
            strides = tuple(strides[axis] for axis in inverse(axes))
        space, offset = self.places.of(tensor.memory, self._plan.tensors[tensor.index])
        return (
            *(offset, tensor.bytes, space - FIRST_SPACE, direction, type_code(known.dtype), rank),
            *(self.words.add(known.shape), self.words.add(strides[:rank]), 0, 0),
        )

    def _scope(self, number: int, placement: Placement) -> _Scope:
        task = self._problem.tasks[number]
        tile = task.tile
        if tile is None:
            raise ExportError(
                f"export: task {comment(task.name)} is no tile of a group of the model"
            )
        group = self._addresses.group(tile.of)
        anchor = group.operators[group.anchor]
        length = geometries(self._network)[anchor].reduction
        part = None if tile.reduction == (0, length) else tile.reduction
        pieces = [self._piece(*read) for read in zip(task.reads, placement.reads, strict=True)]
        results = [self._piece(*write) for write in zip(task.writes, placement.writes, strict=True)]
        computed, box = group, tile.box
        if part is not None and part[1] < length:
            computed, box = until_anchor(group), box_of_anchor(self._network, group, box)
            results = [self._at_anchor(group, piece) for piece in results]
        return _Scope(
            group=computed,
            part=part,
            length=length,
            regions=group_regions(self._network, computed, box, part),
            given=[piece for piece in pieces if not piece.partial],
            sums=[self._at_anchor(group, piece) for piece in pieces if piece.partial],
            results=results,
            in_place=self._shares_bytes(placement),
        )

    def _call(self, scope: _Scope, operator: Operator, *, is_anchor: bool) -> Call:
        own = scope.regions[operator.output]
        part = scope.part if is_anchor else None
        boxes = geometries(self._network)[operator].reads(own, part)
        inputs = tuple(
            None if box is None else self._input(scope, name, box)
            for name, box in zip(operator.inputs, boxes, strict=True)
        )
        previous = None
        if part is not None and part[0] > 0:
            previous = self._operand(scope, own, accumulator_dtype(operator), scope.sums, sums=True)
        output = self._output(scope, operator, own)
        which = Part.WHOLE
        if part is not None:
            which = Part.PARTIAL if part[1] < scope.length else Part.LAST
        return Call(
            operator=self._operator(operator, inputs, output),
            part=which,
            inputs=inputs,
            previous=previous,
            output=output,
        )

    def _input(self, scope: _Scope, name: str, box: Box) -> Operand:
        """Return what is read: of what was computed before, or of memory."""
        candidates = [piece for piece in scope.given if piece.of == name]
        if name in scope.computed:
            candidates = [scope.computed[name]]
        return self._operand(scope, box, self._network.tensors[name].dtype, candidates)

    def _output(self, scope: _Scope, operator: Operator, own: Box) -> Operand:
        """Return what is written: in memory for the group's output, else in the workspace."""
        dtype = self._network.tensors[operator.output].dtype
        if operator.output != scope.group.output:
            strides = row_major_strides(extents(own), dtype.itemsize)
            result = _Piece(
                of=operator.output,
                partial=False,
                box=own,
                offset=scope.take(dtype.itemsize * prod(extents(own))),
                memory=None,
                strides=strides,
            )
            scope.computed[operator.output] = result
            return self._operand(scope, own, dtype, [result])
        sums = scope.part is not None and scope.part[1] < scope.length
        return self._operand(
            scope,
            own,
            accumulator_dtype(operator) if sums else dtype,
            scope.results,
            sums=sums,
            is_written=True,
        )

    def _operand(
        self,
        scope: _Scope,
        box: Box,
        dtype: np.dtype[np.generic],
        candidates: Iterable[_Piece],
        *,
        sums: bool = False,
        is_written: bool = False,
    ) -> Operand:
        """Return a box of what some pieces hold.

        It is used where it lies if one piece holds it packed, unless it is written over bytes that
        are read; else it is packed in the workspace.
        """
        pieces = _holding(box, candidates)
        item, extent = dtype.itemsize, extents(box)
        packed = row_major_strides(extent, item)
        copies = None
        if (
            len(pieces) == 1
            and not (is_written and scope.in_place)
            and all(
                count == 1 or own == wanted
                for count, own, wanted in zip(extent, pieces[0].strides, packed, strict=True)
            )
        ):
            place = self._address(pieces[0], _bytes_to(pieces[0].box, box, pieces[0].strides))
        else:
            place = Address(WORKSPACE_SPACE, scope.take(prod(extent) * item))
            found = (self._gathered(place, box, item, piece, is_written) for piece in pieces)
            copies = tuple(copy for copy in found if copy is not None)
        return Operand(
            box=tuple(number for start, stop in box for number in (start, stop - start)),
            sums=type_code(dtype) if sums else 0,
            place=place,
            copies=copies,
        )

    def _gathered(
        self, place: Address, box: Box, item: Bytes, piece: _Piece, is_written: bool
    ) -> Copy | None:
        """Return the copy of what a piece has of a box that is packed at a place."""
        shared = intersect(box, piece.box)
        if shared is None:
            return None
        packed = row_major_strides(extents(box), item)
        inside = Layout(_bytes_to(box, shared, packed), packed)
        lies = Layout(_bytes_to(piece.box, shared, piece.strides), piece.strides)
        there = self._address(piece, lies.offset)
        here = Address(place.space, place.offset + inside.offset)
        if is_written:
            return Copy(here, there, strided_copy(extents(shared), item, inside, lies))
        return Copy(there, here, strided_copy(extents(shared), item, lies, inside))

    def _address(self, piece: _Piece, offset: Bytes) -> Address:
        """Return a byte of a piece."""
        if piece.memory is None:
            return Address(WORKSPACE_SPACE, piece.offset + offset)
        return self.places.of(piece.memory, piece.offset + offset)

    def _piece(self, slice_: int, residency: ResidencyIdx) -> _Piece:
        """Return the piece that a slice in a residency is."""
        buffer = self._addresses.buffer(slice_)
        tile, part = self._addresses.tile(buffer), self._problem.slices[slice_]
        lies = layout_in_memory(self._problem, self._plan, slice_, residency)
        box: Box = ()
        strides: tuple[Bytes, ...] = ()
        if tile.box:
            axes = tile.axes or tuple(range(len(tile.box)))
            intervals = [*tile.box]
            for axis, start, extent in zip(axes, part.start, part.extent, strict=True):
                first = tile.box[axis][0] + start
                intervals[axis] = (first, first + extent)
            box = tuple(intervals)
            strides = tuple(lies.strides[axis] for axis in inverse(axes))
        return _Piece(
            of=tile.of,
            partial=buffer.kind is BufferKind.PARTIAL,
            box=box,
            offset=lies.offset,
            memory=self._plan.residencies[residency].memory,
            strides=strides,
        )

    def _at_anchor(self, group: Group, piece: _Piece) -> _Piece:
        """Return a piece of a group's partial sums in the axes of its anchor's output.

        Axes of length 1 may come and go; the others are the same ones.
        """
        box = box_of_anchor(self._network, group, piece.box)
        shape = self._network.tensors[group.output].shape
        long = (own for own, length in zip(piece.strides, shape, strict=True) if length > 1)
        anchor = self._network.tensors[group.operators[group.anchor].output]
        strides = tuple(0 if length == 1 else next(long) for length in anchor.shape)
        return replace(piece, box=box, strides=strides)

    def _shares_bytes(self, placement: Placement) -> bool:
        """Say whether a task writes bytes that it reads."""
        residencies, span = self._plan.residencies, self._subject.span
        return any(
            residencies[read].memory == residencies[write].memory
            and residencies[read].offset < residencies[write].offset + span(residencies[write])
            and residencies[write].offset < residencies[read].offset + span(residencies[read])
            for read in placement.reads
            for write in placement.writes
        )

    def _operator(
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
            rounds_with_zero = scales[-1] is not None and scales[-1].rounds_with_zero
            quantised = 2 if rounds_with_zero else 1
        attributes = tuple(self._attributes(operator))
        made = OperatorCode(
            kind=operator_code(operator),
            quantised=quantised,
            limits=limits,
            low_and_high=low_and_high,
            attributes=attributes,
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
        tensor = self._network.tensors[name]
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
                yield Attribute(number, AttributeType.TEXT, 1, self.texts.add(value))
            elif isinstance(value, tuple):
                is_real = value != () and all(isinstance(each, float) for each in value)
                type_ = AttributeType.REALS if is_real else AttributeType.INTEGERS
                words = map(_bits if is_real else int, value)
                yield Attribute(number, type_, len(value), self.words.add(words))
            elif isinstance(value, float):
                yield Attribute(number, AttributeType.REAL, 1, self.words.add([_bits(value)]))
            else:
                yield Attribute(number, AttributeType.INTEGER, 1, self.words.add([value]))


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


def _holding(box: Box, candidates: Iterable[_Piece]) -> list[_Piece]:
    """Return the pieces that have elements of a box; one alone if it has all of them."""
    found = []
    for piece in candidates:
        shared = intersect(box, piece.box)
        if shared == box:
            return [piece]
        if shared is not None:
            found.append(piece)
    return found


def _bytes_to(outer: Box, inner: Box, strides: Iterable[Bytes]) -> Bytes:
    """Return the bytes from the first element of a box to that of one inside."""
    firsts = zip(inner, outer, strides, strict=True)
    return sum((start - first) * stride for (start, _), (first, _), stride in firsts)


@lru_cache(maxsize=1)
def constants_of(subject: Subject) -> tuple[tuple[Segment, ...], bytes]:
    """Return where constants lie at the start, and the image of their bytes."""
    network = subject.network
    if network is None:
        return (), b""
    segments: list[Segment] = []
    image = bytearray()
    for memory, address, values in (*_in_dram(subject, network), *_on_chip(subject, network)):
        content = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
        alignment = max(ALIGNMENT, subject.problem.machine.memories[memory].alignment)
        image += bytes(align_up(len(image), alignment) - len(image))
        segments.append(Segment(address, len(content), len(image), memory))
        image += content
    return tuple(segments), bytes(image)


_Placed = tuple[MemoryIdx, Bytes, np.ndarray[tuple[int, ...], np.dtype]]
"""Values at an address of a memory, in the order in which they lie."""


def _in_dram(subject: Subject, network: Network) -> Iterator[_Placed]:
    """Yield the constants that lie in DRAM tensors."""
    addresses = Addresses(subject.problem, subject.plan, network)
    starting = {
        buffer.place.tensor
        for buffer in subject.problem.buffers
        if buffer.place is not None and buffer.starts_in is not None
    }
    for tensor in subject.problem.tensors:
        if tensor.index in starting and tensor.name not in network.inputs:
            values = given_values(network, {}, tensor.name)
            axes = addresses.axes(tensor)
            ordered = values.transpose(axes) if axes else values
            yield tensor.memory, subject.plan.tensors[tensor.index], ordered


def _on_chip(subject: Subject, network: Network) -> Iterator[_Placed]:
    """Yield the constants that lie packed in a memory at cycle 0."""
    addresses = Addresses(subject.problem, subject.plan, network)
    for residency in subject.plan.residencies:
        if residency.slice is None or _is_filled(residency) or subject.is_at_place(residency):
            continue
        part = subject.problem.slices[residency.slice]
        buffer = subject.problem.buffers[part.buffer]
        tile: Tile = addresses.tile(buffer)
        if tile.of in network.inputs:
            continue
        whole = given_values(network, {}, tile.of)
        values = whole[slices(tile.box, (0,) * len(tile.box))]
        inside = tuple(
            slice(start, start + extent)
            for start, extent in zip(part.start, part.extent, strict=True)
        )
        lies = addresses.in_memory_order(buffer, values)[inside]
        yield residency.memory, residency.offset, lies


def _is_filled(residency: Residency) -> bool:
    return residency.filled_by_task is not None or residency.filled_by_transfer is not None


class Places:
    """Maps addresses of the plan to those of the program.

    A DRAM's constants stay in the image, which nothing writes. What else the plan uses of it
    lies together without the gaps that the constants leave; each run of bytes keeps its place in
    relation to the memory's alignment. Other memories stay as they are.
    """

    def __init__(self, subject: Subject, segments: Iterable[Segment]) -> None:
        self._memories = subject.problem.machine.memories
        self.image = FIRST_SPACE + len(self._memories)
        self.used = list(subject.used())
        self.on_chip: list[Segment] = []
        self._runs: dict[MemoryIdx, list[tuple[Bytes, Bytes, int, Bytes]]] = {}
        constants: dict[MemoryIdx, list[Segment]] = {}
        for segment in segments:
            if self._memories[segment.memory].kind is MemoryKind.DRAM:
                constants.setdefault(segment.memory, []).append(segment)
            else:
                self.on_chip.append(segment)
        for memory in self._memories:
            if memory.kind is MemoryKind.DRAM:
                self._place(subject, memory.index, constants.get(memory.index, []))

    def of(self, memory: MemoryIdx, address: Bytes) -> Address:
        """Return where a byte of the plan lies.

        Raises
        ------
        ExportError
            If nothing of the plan lies there.
        """
        if memory not in self._runs:
            return Address(FIRST_SPACE + memory, address)
        runs = self._runs[memory]
        found = bisect_right(runs, address, key=lambda run: run[0]) - 1
        if found < 0 or address >= runs[found][1]:
            name = self._memories[memory].name
            raise ExportError(f"export: nothing lies at {address} of memory {name}")
        start, _, space, offset = runs[found]
        return Address(space, offset + address - start)

    def _place(self, subject: Subject, index: MemoryIdx, constants: Sequence[Segment]) -> None:
        alignment = self._memories[index].alignment
        starts = {each.address for each in constants}
        runs = [(c.address, c.address + c.bytes, self.image, c.image) for c in constants]
        end_of_all = 0
        for start, end in _joined(_written(subject, index, starts)):
            offset = align_up(end_of_all, alignment) + start % alignment
            runs.append((start, end, FIRST_SPACE + index, offset))
            end_of_all = offset + end - start
        self._runs[index] = sorted(runs)
        self.used[index] = end_of_all


def _written(
    subject: Subject, memory: MemoryIdx, constants: set[Bytes]
) -> Iterator[tuple[Bytes, Bytes]]:
    """Yield the bytes of a DRAM that are no constants: tensors, and what lies there for a while."""
    for tensor, address in zip(subject.problem.tensors, subject.plan.tensors, strict=True):
        if tensor.memory == memory and address not in constants:
            yield address, address + tensor.bytes
    for residency in subject.plan.residencies:
        if residency.memory == memory and not subject.is_at_place(residency):
            yield residency.offset, residency.offset + residency.bytes


def _joined(runs: Iterable[tuple[Bytes, Bytes]]) -> list[tuple[Bytes, Bytes]]:
    """Return runs of bytes without overlaps, in order."""
    found: list[tuple[Bytes, Bytes]] = []
    for start, end in sorted(runs):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
