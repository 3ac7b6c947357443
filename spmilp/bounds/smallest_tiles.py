"""The smallest tiles of groups: what they surely read, and the least cycles of any tile."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, prod
from typing import NamedTuple

from spmilp.bounds.roofline import MARGIN, able_kinds, least_core_cycles
from spmilp.frontend.graph import Group, Network, Operator
from spmilp.frontend.operators.attributes import integer
from spmilp.frontend.operators.boxes import volume, whole
from spmilp.frontend.operators.family import Fusion, Reads
from spmilp.frontend.operators.registry import core_operator, family_of
from spmilp.frontend.operators.windows import windows_of
from spmilp.frontend.regions import group_regions, group_work, until_anchor
from spmilp.lowering.groups import reduction_length, splittable_axes
from spmilp.machine.machine import CoreKind
from spmilp.units import Box, Cycles

PRODUCTS = frozenset({"Conv", "Einsum", "Gemm", "MatMul"})
POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})
GLOBAL_POOLS = frozenset({"GlobalAveragePool", "GlobalMaxPool"})

MOVED = frozenset({"Flatten", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators of which each element of the output is another one of the input."""

PARTLY_READ = frozenset({"Concat", "Pad"})
"""Operators that read nothing of an operand for some of their output."""

RESHAPED = frozenset({"DepthToSpace", "Flatten", "Reshape", "SpaceToDepth", "Squeeze", "Unsqueeze"})
"""Operators that do not read each axis by itself."""


class Facts(NamedTuple):
    """What holds of a group however it is tiled.

    Parameters
    ----------
    first, reads
        Operands of which every first task of a chain of partial sums reads some, and every chain.
    chain, last
        Least cycles of all tasks of one tile together, and of the task that finishes a tile.
    """

    first: frozenset[str]
    reads: frozenset[str]
    chain: Cycles
    last: Cycles


class SmallestTiles:
    """The smallest tiles of one group, and the boxes that they make up.

    A smallest tile is one position along the axes that tiles may split, and the whole of the
    others. Every tile consists of some of them, takes at least the cycles of one of them, and reads
    at least what it reads.

    Cycles are those of the anchor and what follows it. Where they depend on where a tile lies
    (padding of a transposed convolution, resizing), or on how it cuts through the groups of a
    grouped convolution, they are one launch. A box that an operator reads with gaps (a stride that
    is wider than its window, gathering) counts as what its first element reads. Operands of which
    parts of the output read nothing (Concat, padding) are found by single positions along each
    axis; where a reshape comes with a Concat or Pad, which do not tell, none is named.
    """

    def __init__(self, network: Network, group: Group, kinds: Sequence[CoreKind]) -> None:
        self._network = network
        self._group = group
        self._shape = network.tensors[group.output].shape
        self._splits = splittable_axes(network, group)
        self._length = reduction_length(network, group)
        anchor = group.operators[group.anchor]
        self._worked = replace(group, operators=group.operators[group.anchor :], anchor=0)
        work = group_work(network, self._worked, whole(self._shape))
        self._kinds = able_kinds(group, work, kinds)
        self._is_alike = _costs_the_same_anywhere(anchor)

    @property
    def count(self) -> int:
        """The number of smallest tiles."""
        return prod(
            length for length, splits in zip(self._shape, self._splits, strict=True) if splits
        )

    def each(self) -> Iterator[Box]:
        """Yield all of them."""
        axes = [
            [(at, at + 1) for at in range(length)] if splits else [(0, length)]
            for length, splits in zip(self._shape, self._splits, strict=True)
        ]
        return product(*axes)

    def around(self, box: Box) -> Box:
        """Return the box of all smallest tiles that have a part of a box."""
        axes = zip(box, self._shape, self._splits, strict=True)
        return tuple(one if splits else (0, length) for one, length, splits in axes)

    def facts(self) -> Facts:
        """Return what holds of every tile."""
        one = next(self.each())
        last = (self._length - 1, self._length) if self._length > 1 else None
        first = (0, 1) if self._length > 1 else None
        reads = self._always(self._group, None)
        return Facts(
            first=self._always(until_anchor(self._group), first) if first else reads,
            reads=reads,
            chain=self.cycles(one),
            last=self.cycles(one, last),
        )

    def cycles(self, box: Box, part: tuple[int, int] | None = None) -> Cycles:
        """Return the least core cycles of all tiles that have a part of a box, together."""
        work = group_work(self._network, self._worked, box, part)
        groups = dict(work.loops)
        cut = groups.get("G", 1) > 1 or box != whole(self._shape)
        if not self._is_alike or (cut and self._has_wide_groups()):
            return max(1, min(kind.launch for kind in self._kinds))
        return max(1, ceil(least_core_cycles(work, self._kinds) * (1 - MARGIN)))

    def surely_read(self, box: Box) -> Mapping[str, Box]:
        """Return a box of each operand that the tiles of a box of the output read together.

        It is a part of what :func:`group_regions` returns, which may have gaps.
        """
        found: dict[str, Box] = {self._group.output: box}
        for operator in reversed(self._group.operators):
            needed = found.get(operator.output)
            if needed is None:
                continue
            for name, read in zip(operator.inputs, self._read_by(operator, needed), strict=True):
                if name and read is not None:
                    larger = name not in found or volume(read) > volume(found[name])
                    found[name] = read if larger else found[name]
        return {name: found[name] for name in self._group.inputs if name in found}

    def _read_by(self, operator: Operator, box: Box) -> Reads:
        family, tensors = family_of(operator.kind), self._network.tensors
        reads = family.reads(operator, tensors, box)
        one = family.reads(operator, tensors, tuple((start, start + 1) for start, _ in box))
        return reads if _reads_without_gaps(operator, box, reads, one) else one

    def _always(self, group: Group, part: tuple[int, int] | None) -> frozenset[str]:
        """Return the operands of which each smallest tile reads some."""
        kinds = {operator.kind for operator in group.operators}
        if kinds & PARTLY_READ and kinds & RESHAPED:
            return frozenset()
        box = whole(self._network.tensors[group.output].shape)
        found = set(group.inputs) & set(group_regions(self._network, group, box, part))
        if all(_reads_all(operator) for operator in group.operators):
            return frozenset(found)
        for axis, (start, stop) in enumerate(box):
            for at in range(start, stop):
                slab = (*box[:axis], (at, at + 1), *box[axis + 1 :])
                found &= set(group_regions(self._network, group, slab, part))
        return frozenset(found)

    def _has_wide_groups(self) -> bool:
        """Return whether a convolution has groups of several channels each."""
        work = group_work(self._network, self._worked, whole(self._shape))
        loops = dict(work.loops)
        return loops.get("G", 1) > 1 and loops.get("K", 1) > 1


def _costs_the_same_anywhere(operator: Operator) -> bool:
    """Return whether equal boxes take equal work wherever they lie."""
    kind = core_operator(operator.kind)
    if kind in POOLS:
        # What is read of integers counts, and that is less at an edge.
        return operator.quantisation is None
    fusion = family_of(operator.kind).fusion
    return fusion in (Fusion.ELEMENTWISE, Fusion.REDUCTION) or kind in PRODUCTS | GLOBAL_POOLS


def _reads_all(operator: Operator) -> bool:
    """Return whether every element of the output reads something of every operand."""
    fusion = family_of(operator.kind).fusion
    kind = core_operator(operator.kind)
    return (
        fusion in (Fusion.ELEMENTWISE, Fusion.REDUCTION)
        or kind in MOVED | GLOBAL_POOLS
        or kind in PRODUCTS - {"Conv"}
    )


def _reads_without_gaps(operator: Operator, box: Box, reads: Reads, one: Reads) -> bool:
    """Return whether each element of what a box reads is read by an element of the box.

    Parameters
    ----------
    one
        What the first element of the box reads.
    """
    kind = core_operator(operator.kind)
    if kind in POOLS or kind == "Conv":
        windows = windows_of(operator, len(box) - 2)
        return all(each.dilation == 1 and each.stride <= each.kernel for each in windows)
    if kind in MOVED or kind == "Concat":
        return sum(volume(read) for read in reads if read is not None) == volume(box)
    if kind == "Gather" and reads[0] is not None and one[0] is not None:
        # Indices that are computed may name any position, so each element reads them all.
        axis = integer(operator, "axis")
        return reads[0][axis] == one[0][axis]
    fusion = family_of(operator.kind).fusion
    return fusion in (Fusion.ELEMENTWISE, Fusion.REDUCTION) or kind in PRODUCTS | GLOBAL_POOLS
