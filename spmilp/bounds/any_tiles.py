"""Bounds on the peak of the scratchpads and on DRAM traffic, for any tiling of a network."""

from collections.abc import Hashable, Iterator

from spmilp.bounds.compulsory import compulsory_bytes
from spmilp.bounds.smallest_tiles import SmallestTiles
from spmilp.bounds.working_set import lowest_end
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import volume
from spmilp.frontend.regions import box_of_anchor, group_regions, until_anchor
from spmilp.lowering.cost import can_run
from spmilp.lowering.groups import PARTIAL_ITEM, class_of, overwritable_inputs, reduction_length
from spmilp.machine.machine import Machine, Memory
from spmilp.units import Bytes

MOST_TILES_ASKED = 512
"""Of a group with more smallest tiles each is taken to read one element of an operand."""


def traffic_for_any_tiles(network: Network) -> Bytes:
    """Return the bytes that every plan of every tiling moves from DRAM and to it.

    What :func:`.compulsory_bytes` counts as loaded and what it counts as stored are different
    tensors, or different transfers of one; so they add up.
    """
    loads, stores = compulsory_bytes(network)
    return loads + stores


def peak_for_any_tiles(network: Network, machine: Machine) -> Bytes:
    """Return the bytes below which no plan of any tiling keeps the peak of the scratchpads.

    Each group has a task whose operands and result lie side by side in the memory of its core,
    and a tile holds one of the smallest tiles at least (:class:`.SmallestTiles`), so that it
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
    tiles = SmallestTiles(network, group, machine.kinds)
    tensors, is_split = network.tensors, reduction_length(network, group) > 1
    facts = tiles.facts()
    operands = facts.first if is_split else facts.reads
    if machine.remote is None:
        for name in sorted(operands):
            yield _least_read(network, group, tiles, name, is_split) * tensors[name].dtype.itemsize
    made = tensors[group.output].dtype
    overwrites = any(tensors[name].dtype == made for name in overwritable_inputs(network, group))
    if is_split or machine.remote is not None or not overwrites:
        item = min(made.itemsize, PARTIAL_ITEM) if is_split else made.itemsize
        yield volume(next(tiles.each())) * item


def _least_read(
    network: Network, group: Group, tiles: SmallestTiles, name: str, is_split: bool
) -> int:
    """Return the fewest elements that a smallest tile reads of an operand that each reads."""
    if tiles.count > MOST_TILES_ASKED:
        return 1
    boxes, computed, first = tiles.each(), group, None
    if is_split:
        boxes = (box_of_anchor(network, group, tile) for tile in boxes)
        computed, first = until_anchor(group), (0, 1)
    read = (group_regions(network, computed, box, first).get(name) for box in boxes)
    return max(1, min((volume(box) for box in read if box is not None), default=1))
