"""Which tiles a group has, what a tile needs of every tensor, its work, and what it overwrites."""

from collections.abc import Mapping
from dataclasses import replace

from spmilp.frontend.graph import Group, Network, Operator
from spmilp.frontend.operators.boxes import cover
from spmilp.frontend.operators.geometry import Fusion, Part, Work
from spmilp.frontend.operators.moves import covering_box
from spmilp.frontend.operators.registry import core_operator, family_of, geometries
from spmilp.units import Box


def group_regions(network: Network, group: Group, box: Box, part: Part = None) -> dict[str, Box]:
    """Return the box of every tensor that a group touches to compute ``box`` of its output.

    Tensors between its operators are among them. Where several operators read one tensor, the box
    covers what all of them need; what is not needed at all is missing. ``part`` is that of
    the anchor's reduction; ``None`` for all of it.
    """
    regions: dict[str, Box] = {group.output: box}
    known = geometries(network)
    for position in reversed(range(len(group.operators))):
        operator = group.operators[position]
        needed = regions.get(operator.output)
        if needed is None:
            continue
        reads = known[operator].reads(needed, part if position == group.anchor else None)
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


def group_work(network: Network, group: Group, box: Box, reduction: Part = None) -> Work:
    """Return the work of a group for ``box`` of its output: the anchor's MACs, all vector work."""
    return work_of_regions(network, group, group_regions(network, group, box, reduction), reduction)


def work_of_regions(
    network: Network, group: Group, regions: Mapping[str, Box], reduction: Part = None
) -> Work:
    """Return the work of a group for the boxes that :func:`group_regions` has found."""
    vector, anchor = 0, Work()
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


def splittable_axes(network: Network, group: Group) -> tuple[bool, ...]:
    """For each axis of the group's output, whether tiles may split it.

    Every operator from the anchor on has a say; where their ranks differ, axes are aligned at the
    right, as broadcasting does. What comes before the anchor is read as the tile needs it.
    """
    shape = network.tensors[group.output].shape
    allowed = [length > 1 for length in shape]
    for operator in group.operators[group.anchor :]:
        if network.tensors[operator.output].shape == () or not shape:
            continue
        own = geometries(network)[operator]
        for distance in range(1, min(len(own.shape), len(shape)) + 1):
            allowed[-distance] &= len(own.shape) - distance not in own.untiled
    return tuple(allowed)


def overwritable_inputs(network: Network, group: Group) -> frozenset[str]:
    """Return the inputs of which element ``i`` is needed for element ``i`` of the output alone.

    They have its type, reach it through element-wise operators only, never broadcast, and are used
    by no other operator of the group; their bytes may be overwritten by the output. What comes
    before an anchor that is not element-wise is not among them. Without the pass ``sharing`` there
    are none.
    """
    if not network.passes.sharing:
        return frozenset()
    output = network.tensors[group.output]
    found, spoilt = {group.output}, set[str]()
    for operator in reversed(group.operators):
        keeps = operator.output in found and is_elementwise(operator)
        for name in filter(None, operator.inputs):
            aligned = keeps and network.tensors[name].shape == output.shape
            (found if aligned else spoilt).add(name)
    found = (found - spoilt) & set(group.inputs)
    return frozenset(name for name in found if network.tensors[name].dtype == output.dtype)


def is_elementwise(operator: Operator) -> bool:
    """Return whether an operator needs one element, or a broadcast one, of each input."""
    return family_of(operator.kind).fusion is Fusion.ELEMENTWISE
