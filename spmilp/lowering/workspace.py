"""Where the calls of a task compute what is neither an operand of the task nor a result of it.

A kernel takes packed boxes. What the calls of a group compute on the way to its output, and copies
of operands that do not lie packed, is the workspace of the task: its scratch. Lowering takes the
bytes from here, and exports the addresses.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spmilp.frontend.graph import Group, Network, Operator
from spmilp.frontend.operators.boxes import extents, volume
from spmilp.frontend.operators.geometry import Fusion
from spmilp.frontend.operators.registry import family_of, geometries
from spmilp.lowering.tiling import Interval
from spmilp.machine.machine import CoreKind
from spmilp.problem.problem import Buffer, BufferKind, Slice, Task
from spmilp.units import Box, Bytes, Extents, SliceIdx, align_up

PARTIAL_ITEM: Bytes = 4
"""Bytes of an element of a partial sum: int32 for integer operators, float32 for all others."""

ROOM_ALIGNMENT: Bytes = 8
"""Of what lies in a workspace, from its first byte on: the bytes of the largest elements."""

ALL_OPERATORS = "*"
"""Stands for all other operators where a machine states bytes of workspace."""

OUTPUT, SUMS_BEFORE = -1, -2
"""What a call writes, and the partial sums that it adds to; its inputs have their positions."""

SUMS, RESULT, IN_PLACE = " sums", " result", " in place"
"""Notes on a task, besides the names of inputs that may not lie packed: that the partial sums
before, or its result, lie in pieces; that the result may be written over an operand."""

_VIEWS = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that keep all elements in their order."""


class Room(NamedTuple):
    """An offset in a task's scratch, or in the bytes of its result, which are free until then."""

    in_result: bool
    offset: Bytes


class Workspace(NamedTuple):
    """Bytes of scratch; rooms by ``(operator of the group, input, OUTPUT or SUMS_BEFORE)``."""

    bytes: Bytes
    rooms: Mapping[tuple[int, int], Room]


class _Read(NamedTuple):
    """An input of a call; ``is_run`` if it lies packed within all of it that the task reads."""

    position: int
    name: str
    bytes: Bytes
    is_run: bool


class _Call(NamedTuple):
    """A call of a kernel."""

    operator: int
    output: str
    bytes: Bytes
    reads: tuple[_Read, ...]
    adds_up: bool
    in_order: bool
    is_view: bool


@dataclass(slots=True, kw_only=True)
class _Values:
    """What lies in one room, one after the other, from call ``first`` to call ``last``."""

    first: int
    last: int
    bytes: Bytes
    rooms: list[tuple[int, int]]

    def meets(self, other: "_Values") -> bool:
        """Say whether both are there during some call."""
        return self.first <= other.last and other.first <= self.last


def is_view(operator: Operator) -> bool:
    """Say whether an operator's output has its input's bytes."""
    return operator.kind in _VIEWS and operator.quantisation is None


def computes_in_order(operator: Operator) -> bool:
    """Say whether element ``i`` of the output may be written over element ``i`` of an input.

    That is, of an input of as many elements of the same size: element-wise kernels go from one
    element to the next.
    """
    return family_of(operator.kind).fusion is Fusion.ELEMENTWISE or operator.kind in _VIEWS


class TileCalls:
    """The calls for a tile of a group, or for a part of its reduction.

    Parameters
    ----------
    regions
        As of :func:`spmilp.frontend.regions.group_regions`.
    part
        Of the anchor's reduction; ``None`` for all of it.
    gives_sums
        Whether the output is partial sums.
    """

    def __init__(
        self,
        network: Network,
        group: Group,
        regions: Mapping[str, Box],
        part: Interval | None,
        *,
        gives_sums: bool,
    ) -> None:
        self._calls: list[_Call] = []
        self._last_reader: dict[str, int] = {}
        self._known: dict[frozenset[str], Workspace] = {}
        tensors, known = network.tensors, geometries(network)
        for number, operator in enumerate(group.operators):
            own = regions.get(operator.output)
            if own is None:
                continue
            own_part = part if number == group.anchor else None
            boxes, reads = known[operator].reads(own, own_part), list[_Read]()
            for position, (name, box) in enumerate(zip(operator.inputs, boxes, strict=True)):
                if box is not None:
                    is_run = lies_in_one_run(extents(box), extents(regions[name]))
                    size = volume(box) * tensors[name].dtype.itemsize
                    reads.append(_Read(position, name, size, is_run))
                    self._last_reader[name] = len(self._calls)
            is_sums = gives_sums and operator.output == group.output
            item = PARTIAL_ITEM if is_sums else tensors[operator.output].dtype.itemsize
            self._calls.append(
                _Call(
                    operator=number,
                    output=operator.output,
                    bytes=volume(own) * item,
                    reads=tuple(reads),
                    adds_up=own_part is not None and own_part[0] > 0,
                    in_order=computes_in_order(operator),
                    is_view=is_view(operator),
                )
            )

    def workspace(self, notes: frozenset[str]) -> Workspace:
        """Return the workspace of a task with some notes, those of :func:`notes_of`."""
        if notes not in self._known:
            values, over_result = self._values(notes)
            in_result = []
            if notes.isdisjoint((RESULT, IN_PLACE)):
                in_result = self._fitting_in_result(values, over_result)
            rooms = {room: Room(True, 0) for one in in_result for room in one.rooms}
            rest = [one for one in values if one not in in_result]
            self._known[notes] = _packed(rest, rooms)
        return self._known[notes]

    def _values(self, notes: frozenset[str]) -> tuple[list[_Values], _Values | None]:
        """Return what needs room, and that over which the result may be written."""
        found, lying = list[_Values](), dict[str, _Values | None]()
        over = None

        def add(size: Bytes, room: tuple[int, int]) -> _Values:
            found.append(_Values(first=number, last=number, bytes=size, rooms=[room]))
            return found[-1]

        for number, call in enumerate(self._calls):
            inputs = list[_Values | None]()
            for read in call.reads:
                is_there = read.is_run and read.name not in notes
                room = call.operator, read.position
                inputs.append(lying.get(read.name) if is_there else add(read.bytes, room))
            if call.adds_up and SUMS in notes:
                add(call.bytes, (call.operator, SUMS_BEFORE))
            over = _overwritable(call, inputs, number)
            is_last = number == len(self._calls) - 1
            if is_last and RESULT not in notes:
                break
            until = self._last_reader.get(call.output, number)
            source = call.reads[0] if call.is_view and not is_last else None
            if source and source.is_run and source.name not in notes:
                lying[call.output] = place = inputs[0]
            else:
                place = over or add(call.bytes, (call.operator, OUTPUT))
                if over is not None:
                    over.rooms.append((call.operator, OUTPUT))
                lying[call.output] = place
            if place is not None:
                place.last = max(place.last, until)
        return found, over

    def _fitting_in_result(self, values: list[_Values], over: _Values | None) -> list[_Values]:
        """Return values that can lie where the result will, the largest first."""
        chosen: list[_Values] = []
        last = len(self._calls) - 1
        for one in sorted(values, key=lambda one: -one.bytes):
            in_time = one.last < last or one is over
            if in_time and one.bytes <= self._calls[-1].bytes and not any(map(one.meets, chosen)):
                chosen.append(one)
        return chosen


def _overwritable(call: _Call, inputs: Sequence[_Values | None], number: int) -> _Values | None:
    """Return an input that a call may overwrite: as large as its output, and read for good."""
    for one in inputs if call.in_order else ():
        if one is not None and (one.last, one.bytes) == (number, call.bytes):
            reads = zip(call.reads, inputs, strict=True)
            if all(read.bytes == call.bytes for read, other in reads if other is one):
                return one
    return None


def _packed(values: Sequence[_Values], rooms: dict[tuple[int, int], Room]) -> Workspace:
    """Give values the first bytes that are free, the largest first, and add their rooms."""
    placed: list[tuple[Bytes, Bytes, _Values]] = []
    for one in sorted(values, key=lambda one: -one.bytes):
        offset = 0
        for start, end, other in sorted(placed, key=lambda each: each[:2]):
            if one.meets(other) and start < offset + one.bytes and offset < end:
                offset = end
        placed.append((offset, offset + align_up(one.bytes, ROOM_ALIGNMENT), one))
        rooms |= dict.fromkeys(one.rooms, Room(False, offset))
    return Workspace(max((offset + one.bytes for offset, _, one in placed), default=0), rooms)


def notes_of(
    task: Task,
    reads: Mapping[str, Box],
    slices: Sequence[Slice],
    buffers: Sequence[Buffer],
    read_whole: Collection[SliceIdx],
) -> frozenset[str]:
    """Return the names of inputs that may not lie packed in some plan, and other notes.

    A slice may be read from a residency of its parent, unless that is given and ``read_whole`` by
    no task: nobody has a use for all of it.

    Parameters
    ----------
    reads
        The box of each of the group's inputs that the task reads.
    """
    notes = {RESULT} if len(task.writes) > 1 else set[str]()
    if task.in_place:
        notes.add(IN_PLACE)
    known: set[str] = set()
    for number in task.reads:
        piece = slices[number]
        buffer = buffers[piece.buffer]
        tile = buffer.tile
        if tile is None:
            continue
        name = SUMS if buffer.kind is BufferKind.PARTIAL else tile.of
        if name in known or tile.axes:
            notes.add(name)
        known.add(name)
        is_apart = buffer.starts_in is not None and piece.buffer not in read_whole
        outer = piece.extent if is_apart else buffer.shape
        if name in reads and not lies_in_one_run(extents(reads[name]), outer):
            notes.add(name)
    return frozenset(notes)


def slices_read_whole(tasks: Iterable[Task], buffers: int) -> frozenset[SliceIdx]:
    """Return the slices, of whole buffers, that tasks read; a problem begins with these slices."""
    return frozenset(read for task in tasks for read in task.reads if read < buffers)


def lies_in_one_run(inner: Extents, outer: Extents) -> bool:
    """Say whether a box lies packed in a packed box of ``outer`` elements around it."""
    goes_on = True
    for length, whole in zip(reversed(inner), reversed(outer), strict=False):
        if length > 1 and not goes_on:
            return False
        goes_on &= length == whole
    return True


def stated_bytes(needed: Bytes, operator: str, kinds: Sequence[CoreKind]) -> Bytes:
    """Return the workspace of a task whose anchor is of some type, on any of some kinds of core.

    What a kind states replaces the bytes that the kernels here need.
    """
    found = []
    for kind in kinds:
        stated = dict(kind.workspace or ())
        found.append(stated.get(operator, stated.get(ALL_OPERATORS, needed)))
    return max(found, default=needed)
