"""What a search for tilings changes: stretches of a network, and a group's tiling by one step."""

from collections.abc import Iterator
from dataclasses import replace

from spmilp.frontend.graph import Group, Network
from spmilp.lowering.groups import reduction_length, splittable_axes
from spmilp.lowering.tiling import Tiling

MOST_STRETCHES = 8
"""The most into which a network is cut."""


def stretches(groups: int) -> Iterator[range]:
    """Yield stretches of successive groups: halves of a network, then quarters, then eighths."""
    count = 2
    while count <= min(groups, MOST_STRETCHES):
        for number in range(count):
            yield range(groups * number // count, groups * (number + 1) // count)
        count *= 2


def nearby(network: Network, group: Group, own: Tiling) -> Iterator[Tiling]:
    """Yield tilings with twice or half as many parts of the reduction, or tiles along an axis.

    Tiles along one axis may be doubled while those along another are halved. The first axis stays
    as it is where waves cut it.
    """
    shape, length = network.tensors[group.output].shape, reduction_length(network, group)
    for parts in (min(2 * own.parts, length), max(1, own.parts // 2)):
        yield replace(own, parts=parts)
    first = 0 if own.waves == 1 else 1
    cut = splittable_axes(network, group)
    axes = [axis for axis in range(first, len(shape)) if cut[axis]]
    for axis in axes:
        more = _with(own, axis, min(2 * own.counts[axis], shape[axis]))
        yield more
        yield _with(own, axis, max(1, own.counts[axis] // 2))
        for other in axes:
            if other != axis and own.counts[other] > 1:
                yield _with(more, other, own.counts[other] // 2)


def _with(tiling: Tiling, axis: int, count: int) -> Tiling:
    counts = tiling.counts
    return replace(tiling, counts=(*counts[:axis], count, *counts[axis + 1 :]))
