"""Computes a fused group on a box of its output, as one task does."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.kernels.registry import complete, compute, partial
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import slices, starts
from spmilp.frontend.operators.registry import family_of
from spmilp.frontend.regions import group_regions
from spmilp.units import Box

Fetch: TypeAlias = Callable[[str, Box], Array]
"""Gives the values of a box of a tensor that lies in memory."""


def evaluate(
    network: Network,
    group: Group,
    box: Box,
    fetch: Fetch,
    reduction: tuple[int, int] | None = None,
    previous: Array | None = None,
) -> Array:
    """Return ``box`` of a group's output, or of the partial sums of its anchor.

    Parameters
    ----------
    box
        Of the group's output; of the anchor's where ``reduction`` ends before its length.
    reduction
        The part of the anchor's reduction; ``None`` for all of it. The part that ends at its length
        gives the output, every other one partial sums (int32 for integer operators, else float32).
    previous
        The partial sums of the parts before, for the same box; ``None`` for the first part.
    """
    anchor = group.operators[group.anchor]
    length = family_of(anchor.kind).reduction(anchor, network.tensors)
    part = None if reduction == (0, length) else reduction
    if part is not None and part[1] < length:
        until = group.operators[: group.anchor + 1]
        group = replace(group, operators=until, output=anchor.output)
    regions = group_regions(network, group, box, part)
    values: dict[str, Array] = {}
    for position, operator in enumerate(group.operators):
        if operator.output not in regions:
            continue
        own = regions[operator.output]
        own_part = part if position == group.anchor else None
        boxes = family_of(operator.kind).reads(operator, network.tensors, own, own_part)
        inputs = [
            None if read is None else _value(name, read, values, regions, fetch)
            for name, read in zip(operator.inputs, boxes, strict=True)
        ]
        if own_part is None:
            result = compute(operator, network.tensors, inputs, boxes, own)
        else:
            result = partial(operator, network.tensors, inputs, boxes, own, previous)
            if own_part[1] == length:
                result = complete(operator, network.tensors, inputs, boxes, own, result)
        values[operator.output] = result
    return values[group.output]


def _value(
    name: str, read: Box, values: dict[str, Array], regions: dict[str, Box], fetch: Fetch
) -> Array:
    """Return what an operator reads: a part of what was computed before it, or from memory."""
    if name in values:
        return values[name][slices(read, starts(regions[name]))]
    return fetch(name, read)
