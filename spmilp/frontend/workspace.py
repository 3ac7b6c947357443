"""Where the calls of a task compute what is neither an operand of the task nor a result of it.

A kernel takes packed boxes. What the calls of a group compute on the way to its output, and copies
of operands that do not lie packed, is the workspace of the task: its scratch. Lowering takes the
bytes from here, and exports the addresses.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from spmilp.frontend.graph import Group, Network, Operator
from spmilp.frontend.operators.boxes import extents, volume
from spmilp.frontend.operators.geometry import Part, Reads
from spmilp.frontend.operators.moves import shows_all
from spmilp.frontend.operators.registry import geometries
from spmilp.frontend.regions import is_elementwise
from spmilp.machine.machine import CoreKind
from spmilp.problem.problem import Buffer, BufferKind, Slice
from spmilp.units import Box, BufferIdx, Bytes, Extents, SliceIdx, align_up

PARTIAL_ITEM: Bytes = 4
"""Bytes of an element of a partial sum: int32 for integer operators, float32 for all others."""

ROOM_ALIGNMENT: Bytes = 8
"""Of what lies in a workspace, from its first byte on: the bytes of the largest elements."""

Room: TypeAlias = tuple[int, int]
"""Operator of a group, and which operand of it: the position of an input, or one of these."""
OUTPUT, SUMS_BEFORE = -1, -2

SUMS, RESULT, OVERWRITTEN = " sums", " result", " overwritten "
"""Notes on a task, besides the names of inputs that may not lie packed: that the partial sums
before, or its result, lie in pieces; and, before a name, that the result may be written over it."""


class Workspace(NamedTuple):
    """Bytes of scratch, and the offset of each room in it; ``None`` for one in the result's bytes.

    These are free until the last call.
    """

    bytes: Bytes
    rooms: Mapping[Room, Bytes | None]


def keeps_bytes(operator: Operator, own: Box, reads: Reads) -> bool:
    """Say whether a box of a view has the bytes of the box of its input, in their order."""
    return shows_all(operator) and reads[0] is not None and volume(reads[0]) == volume(own)


def computes_in_order(operator: Operator) -> bool:
    """Say whether element ``i`` of the output may be written over element ``i`` of an input.

    That is, of an input with as many elements of the same size: element-wise kernels go from one
    element to the next.
    """
    return is_elementwise(operator) or shows_all(operator)


def workspace_of(
    network: Network,
    group: Group,
    regions: Mapping[str, Box],
    part: Part,
    notes: frozenset[str],
    *,
    gives_sums: bool,
) -> Workspace:
    """Return the workspace of the calls for a tile of a group, or for a part of its reduction.

    What is computed stays; copies of operands are there for one call, behind all that. A chain of
    calls that may each write over what they read, up to the last call, writes into the result.

    ``regions`` and ``part`` are as of :func:`~spmilp.frontend.regions.group_regions`, ``notes``
    those of :func:`notes_of`; ``gives_sums`` says whether the output is partial sums.
    """
    tensors, last = network.tensors, dict[str, int]()
    called = [each for each in enumerate(group.operators) if each[1].output in regions]
    for number, operator in called:
        last |= dict.fromkeys(operator.inputs, number)
    kept, copies = dict[Room, Bytes](), dict[Room, Bytes]()
    lying = dict[str, Room]()  # of values and of views of them
    until = dict[Room, int]()  # the last call that reads it
    over = dict[Room, Room]()  # by output, what it may be written over
    free_from = -1  # the call that reads what the result may be written over
    for number, operator in called:
        own, output = regions[operator.output], (number, OUTPUT)
        own_part = part if number == group.anchor else None
        is_result = operator.output == group.output
        item = tensors[operator.output].dtype.itemsize
        if is_result and gives_sums:
            item = PARTIAL_ITEM
        size, fits = volume(own) * item, dict[Room, bool]()
        boxes = geometries(network)[operator].reads(own, own_part)
        is_view = not is_result and keeps_bytes(operator, own, boxes)
        for position, (name, box) in enumerate(zip(operator.inputs, boxes, strict=True)):
            if box is None:
                continue
            read, room = volume(box) * tensors[name].dtype.itemsize, lying.get(name)
            if name in notes or not lies_in_one_run(extents(box), extents(regions[name])):
                room = output if is_view else (number, position)
                (kept if is_view else copies)[room], until[room] = read, number
            if OVERWRITTEN + name in notes:
                free_from = number
            if room is not None:
                whole = kept.get(room, read)
                fits[room] = fits.get(room, until[room] == number) and read == whole == size
        if own_part and own_part[0] > 0:
            if OVERWRITTEN + SUMS in notes:
                free_from = number
            if SUMS in notes:
                copies[number, SUMS_BEFORE] = size
        if is_view:
            for room in fits:
                lying[operator.output] = room
                until[room] = max(until[room], last[operator.output])
        elif is_result and RESULT in notes:
            copies[output] = size
        else:
            if computes_in_order(operator):
                over.update((output, room) for room, fit in fits.items() if fit)
            if not is_result:
                lying[operator.output], kept[output] = output, size
                until[output] = last[operator.output]
    in_result, room = set[Room](), over.get(output)
    # What the result overwrites may be overwritten by the call that reads it, and after that.
    while room is not None and RESULT not in notes and room[0] + (room[1] == OUTPUT) > free_from:
        in_result.add(room)
        room = over.get(room)
    return _laid_out(kept, copies, in_result)


def _laid_out(
    kept: Mapping[Room, Bytes], copies: Mapping[Room, Bytes], in_result: Collection[Room]
) -> Workspace:
    """Give what is kept one room behind the other, and copies of each call those behind that."""
    rooms: dict[Room, Bytes | None] = dict.fromkeys(in_result)
    end = 0
    for room, size in kept.items():
        if room not in in_result:
            rooms[room], end = end, end + align_up(size, ROOM_ALIGNMENT)
    ends = dict[int, Bytes]()
    for room, size in copies.items():
        if room not in in_result:
            rooms[room] = ends.get(room[0], end)
            ends[room[0]] = ends.get(room[0], end) + align_up(size, ROOM_ALIGNMENT)
    return Workspace(max((end, *ends.values())), rooms)


def notes_of(
    pieces: Iterable[Slice],
    boxes: Mapping[str, Box],
    buffers: Sequence[Buffer],
    results: int,
    in_place: Iterable[tuple[SliceIdx, BufferIdx]],
) -> frozenset[str]:
    """Return the names of inputs that may not lie packed in some plan, and other notes.

    A slice may lie as it does in its parent, for plans may read it from a residency of that.

    Of a task these are the ``pieces`` and the ``boxes`` of the group's inputs that it reads, how
    many buffers it writes (``results``), and over what it may write which of them (``in_place``).
    """
    notes = {RESULT} if results > 1 else set[str]()
    known, overwritten = set[str](), {read for read, _ in in_place}
    for piece in pieces:
        buffer = buffers[piece.buffer]
        if buffer.tile is not None:
            name = SUMS if buffer.kind is BufferKind.PARTIAL else buffer.tile.of
            inner = extents(boxes[name]) if name in boxes else piece.extent
            if name in known or buffer.tile.axes or not lies_in_one_run(inner, buffer.shape):
                notes.add(name)
            if piece.index in overwritten:
                notes.add(OVERWRITTEN + name)
            known.add(name)
    return frozenset(notes)


@lru_cache(maxsize=1 << 12)
def lies_in_one_run(inner: Extents, outer: Extents) -> bool:
    """Say whether a box lies packed in a packed box of ``outer`` elements around it."""
    goes_on = True
    for length, whole in zip(reversed(inner), reversed(outer), strict=False):
        if length > 1 and not goes_on:
            return False
        goes_on &= length == whole
    return True


def stated_bytes(needed: Bytes, operator: str, kinds: Iterable[CoreKind]) -> Bytes:
    """Return the workspace of a task around an operator, on any of some kinds of core.

    What a kind states, for the operator or for all others as ``*``, replaces the reference kernels'
    needs.
    """
    stated = (dict(kind.workspace or ()) for kind in kinds)
    return max((each.get(operator, each.get("*", needed)) for each in stated), default=needed)
