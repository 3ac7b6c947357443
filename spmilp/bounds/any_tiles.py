"""Bounds for any tiling of a network: the least peak and the least DRAM traffic.

A smallest tile is one position along the axes that tiles may split, and the whole of the others.
Every tile consists of some of them, and reads at least what one of them reads.
"""

from collections.abc import Hashable, Iterator
from itertools import product
from math import prod

from spmilp.bounds.resources import lowest_end
from spmilp.bounds.roofline import compulsory_bytes
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import volume, whole
from spmilp.frontend.operators.geometry import Fusion, Geometry
from spmilp.frontend.operators.moves import Concat, DepthToSpace, Pad, Reshape, Slice, Transpose
from spmilp.frontend.operators.products import Contraction
from spmilp.frontend.operators.registry import geometries
from spmilp.frontend.operators.windows import GlobalPool
from spmilp.frontend.regions import (
    box_of_anchor,
    group_regions,
    overwritable_inputs,
    splittable_axes,
    until_anchor,
)
from spmilp.frontend.workspace import PARTIAL_ITEM
from spmilp.lowering.cost import can_run
from spmilp.lowering.groups import class_of, reduction_length
from spmilp.machine.machine import Machine, Memory
from spmilp.units import Box, Bytes, Interval

MOVED = (Reshape, Slice, Transpose)
"""Operators of which each element of the output is another one of the input."""

PARTLY_READ = (Concat, Pad)
"""Operators that read nothing of an operand for some of their output."""

RESHAPED = (DepthToSpace, Reshape)
"""Operators that do not read each axis by itself."""


def smallest_tiles(network: Network, group: Group) -> list[list[Interval]]:
    """Return the parts of each axis of a group's output; their product are its smallest tiles."""
    splits = splittable_axes(network, group)
    return [
        [(at, at + 1) for at in range(length)] if is_split else [(0, length)]
        for length, is_split in zip(network.tensors[group.output].shape, splits, strict=True)
    ]


def surely_read(network: Network, group: Group, part: tuple[int, int] | None) -> frozenset[str]:
    """Return the operands of which each smallest tile reads some, perhaps in a part of a reduction.

    Operands of which parts of the output read nothing (Concat, padding) are found by single
    positions along each axis; where a reshape comes with a Concat or Pad, which do not tell, none
    is named.
    """
    known = geometries(network)
    owns = [known[operator] for operator in group.operators]
    if all(any(isinstance(own, some) for own in owns) for some in (PARTLY_READ, RESHAPED)):
        return frozenset()
    box = whole(network.tensors[group.output].shape)
    found = set(group.inputs) & set(group_regions(network, group, box, part))
    if all(_is_regular(own) or isinstance(own, MOVED) for own in owns):
        return frozenset(found)
    for axis, (start, stop) in enumerate(box):
        for at in range(start, stop):
            slab = (*box[:axis], (at, at + 1), *box[axis + 1 :])
            found &= set(group_regions(network, group, slab, part))
    return frozenset(found)


def _is_regular(own: Geometry) -> bool:
    """Return whether every element of an operator's output reads something of every operand."""
    return own.fusion in (Fusion.ELEMENTWISE, Fusion.REDUCTION) or isinstance(
        own, Contraction | GlobalPool
    )


MOST_TILES_ASKED = 512
"""In a group with more smallest tiles, each is taken to read one element of an operand, which is
weaker and quick."""


def traffic_for_any_tiles(network: Network) -> Bytes:
    """Return the bytes that every plan of every tiling moves from DRAM and to it.

    What :func:`.compulsory_bytes` counts as loaded and what it counts as stored are different
    tensors, or different transfers of one; so they add up.
    """
    return sum(compulsory_bytes(network))


def peak_for_any_tiles(network: Network, machine: Machine) -> Bytes:
    """Return the bytes below which no plan of any tiling keeps the peak of the scratchpads.

    Each group has a task whose operands and result lie side by side in the memory of its core,
    and a tile holds one of the smallest tiles at least (:func:`smallest_tiles`), so that it
    reads what that reads, or more. Of a reduction that is split, this is the first task of a
    chain: it reads what the first element of the reduction needs, and writes a partial sum,
    over no operand, since none of them is used element by element. A whole reduction has the
    same task, with a result in place of the partial sum. A group without reduction may write
    its result over an operand; then the result is not counted. Different tensors lie in
    different buffers, and of an operand that comes in pieces each one is padded, all together
    no less than one piece. All parts but the highest one take whole multiples of the memory's
    alignment, and none lies in reserved ranges. Where cores read in other memories, operands
    are not counted, and where a group can run in a memory that is no scratchpad, it has no
    peak.
    """
    known: dict[Hashable, list[Bytes]] = {}
    best = 0
    for group in network.groups:
        kind = class_of(network, group)
        if kind not in known:
            known[kind] = list(_parts(network, group, machine))
        ends = (lowest_end(memory, known[kind]) for memory in _memories(group, machine))
        best = max(best, min(ends, default=0))
    return best


def _memories(group: Group, machine: Machine) -> list[Memory]:
    able = (core for core in machine.cores if can_run(machine.kinds[core.kind], group))
    return [machine.memories[index] for index in sorted({core.memory for core in able})]


def _parts(network: Network, group: Group, machine: Machine) -> Iterator[Bytes]:
    """Yield the least bytes of what one task of a group has in its memory."""
    tensors, is_split = network.tensors, reduction_length(network, group) > 1
    axes, boxes = smallest_tiles(network, group), list[Box]()
    computed, first = (until_anchor(group), (0, 1)) if is_split else (group, None)
    if machine.remote is None:
        if prod(map(len, axes)) <= MOST_TILES_ASKED:
            boxes = [*product(*axes)]
        if is_split:
            boxes = [box_of_anchor(network, group, tile) for tile in boxes]
        regions = [group_regions(network, computed, box, first) for box in boxes]
        for name in sorted(surely_read(network, computed, first)):
            sizes = (volume(region[name]) for region in regions if name in region)
            yield max(1, min(sizes, default=1)) * tensors[name].dtype.itemsize
    made = tensors[group.output].dtype
    overwrites = any(tensors[name].dtype == made for name in overwritable_inputs(network, group))
    if is_split or machine.remote is not None or not overwrites:
        item = min(made.itemsize, PARTIAL_ITEM) if is_split else made.itemsize
        yield volume(tuple(parts[0] for parts in axes)) * item
