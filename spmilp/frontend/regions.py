"""Boxes that a tile of a group needs of every tensor, and its work."""

from collections.abc import Mapping
from dataclasses import replace

from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import cover
from spmilp.frontend.operators.geometry import Fusion, Work
from spmilp.frontend.operators.moves import covering_box
from spmilp.frontend.operators.registry import core_operator, family_of, geometries
from spmilp.units import Box


def group_regions(
    network: Network, group: Group, box: Box, reduction: tuple[int, int] | None = None
) -> dict[str, Box]:
    """Return the box of every tensor that a group touches to compute ``box`` of its output.

    Tensors between its operators are among them. Where several operators read one tensor, the box
    covers what all of them need; what is not needed at all is missing.

    Parameters
    ----------
    reduction
        The part of the anchor's reduction; ``None`` for all of it.
    """
    regions: dict[str, Box] = {group.output: box}
    known = geometries(network)
    for position in reversed(range(len(group.operators))):
        operator = group.operators[position]
        needed = regions.get(operator.output)
        if needed is None:
            continue
        part = reduction if position == group.anchor else None
        reads = known[operator].reads(needed, part)
        for name, read in zip(operator.inputs, reads, strict=True):
            if name and read is not None:
                regions[name] = cover(regions[name], read) if name in regions else read
    return regions


def until_anchor(group: Group) -> Group:
    """Return what tasks compute of a group that leave partial sums: all up to its anchor."""
    until = group.operators[: group.anchor + 1]
    return replace(group, operators=until, output=until[-1].output)


def box_of_anchor(network: Network, group: Group, box: Box) -> Box:
    """Return the box of the anchor's output whose elements become ``box`` of the group's.

    Of a group whose reduction tasks may split, so that nothing but axes of length 1 are different
    (:func:`spmilp.lowering.groups.reduction_length`).
    """
    anchor = group.operators[group.anchor].output
    return covering_box(network.tensors[anchor].shape, network.tensors[group.output].shape, box)


def group_work(
    network: Network, group: Group, box: Box, reduction: tuple[int, int] | None = None
) -> Work:
    """Return the work of a group for ``box`` of its output: the anchor's MACs, all vector work."""
    return work_of_regions(network, group, group_regions(network, group, box, reduction), reduction)


def work_of_regions(
    network: Network,
    group: Group,
    regions: Mapping[str, Box],
    reduction: tuple[int, int] | None = None,
) -> Work:
    """Return the work of a group for the boxes that :func:`group_regions` has found."""
    vector = 0
    anchor = Work()
    known = geometries(network)
    for position, operator in enumerate(group.operators):
        if operator.output not in regions:
            continue
        part = reduction if position == group.anchor else None
        work = known[operator].work(regions[operator.output], part)
        vector += work.vector
        if position == group.anchor:
            anchor = work
    return Work(loops=anchor.loops, vector=vector, dtype=anchor.dtype)


def kinds_to_run(group: Group) -> frozenset[str]:
    """Return the kinds of operators that a core must run for a group; views need none."""
    return frozenset(
        core_operator(operator.kind)
        for operator in group.operators
        if family_of(operator.kind).fusion is not Fusion.VIEW
    )
