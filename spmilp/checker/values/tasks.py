"""The values that a task computes from its operands' bytes, operator by operator."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from spmilp.checker.values.addresses import Addresses, Piece, gather
from spmilp.checker.values.errors import ReplayError
from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.kernels.registry import complete, compute, partial
from spmilp.checker.values.state import raw
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.boxes import contains, extents, slices, starts
from spmilp.frontend.operators.registry import family_of
from spmilp.frontend.regions import box_of_anchor, group_regions, until_anchor
from spmilp.problem.problem import Buffer, Problem, Task
from spmilp.units import Box, SliceIdx

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
    """Return ``box`` of a group's output, or the partial sums for it.

    Parameters
    ----------
    box
        Of the group's output.
    reduction
        The part of the anchor's reduction; ``None`` for all of it. The part that ends at its length
        gives the output, every other one partial sums (int32 for integer operators, else float32).
    previous
        The partial sums of the parts before, for the same box; ``None`` for the first part.
    """
    anchor = group.operators[group.anchor]
    length = family_of(anchor.kind).reduction(anchor, network.tensors)
    part = None if reduction == (0, length) else reduction
    computed, needed = group, box
    if part is not None and part[1] < length:
        computed, needed = until_anchor(group), box_of_anchor(network, group, box)
    regions = group_regions(network, computed, needed, part)
    values: dict[str, Array] = {}
    for position, operator in enumerate(computed.operators):
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
            before = None if previous is None else previous.reshape(extents(own))
            result = partial(operator, network.tensors, inputs, boxes, own, before)
            if own_part[1] == length:
                result = complete(operator, network.tensors, inputs, boxes, own, result)
        values[operator.output] = result
    return values[computed.output].reshape(extents(box))


def _value(
    name: str, read: Box, values: dict[str, Array], regions: dict[str, Box], fetch: Fetch
) -> Array:
    """Return what an operator reads: a part of what was computed before it, or from memory."""
    if name in values:
        return values[name][slices(read, starts(regions[name]))]
    return fetch(name, read)


def compute_task(
    problem: Problem,
    network: Network,
    addresses: Addresses,
    task: Task,
    operands: Sequence[tuple[SliceIdx, Array]],
) -> list[Array]:
    """Return the bytes of each buffer that a task writes, in their order.

    Parameters
    ----------
    operands
        Each slice that it reads, and its bytes.

    Raises
    ------
    ReplayError
        If the operands do not hold all that the task needs, or its result does not fit its buffers.
    """
    who = f"task {task.name}"
    if task.tile is None:
        raise ReplayError(f"{who} is no tile of a group: nothing to compute")
    group, box = addresses.group(task.tile.of), task.tile.box
    tensors: dict[str, list[Piece]] = {}
    sums: list[Piece] = []
    for slice_, values in operands:
        piece = addresses.piece(slice_, values)
        if piece.partial:
            sums.append(piece)
        else:
            tensors.setdefault(piece.of, []).append(piece)

    def fetch(name: str, needed: Box) -> Array:
        return gather(who, name, needed, tensors.get(name, ()))

    part, previous = task.tile.reduction, None
    if part is not None and part[0] > 0:
        previous = gather(who, f"the partial sums of {group.name}", box, sums)
    result = evaluate(network, group, box, fetch, part, previous)
    written = (problem.buffers[index] for index in task.writes)
    return [_share(who, addresses, box, result, buffer) for buffer in written]


def _share(who: str, addresses: Addresses, box: Box, result: Array, buffer: Buffer) -> Array:
    """Return the part of a task's result that one of its buffers holds."""
    own, dtype = addresses.tile(buffer).box, addresses.dtype(buffer)
    if len(own) != len(box) or not contains(box, own):
        raise ReplayError(f"{who} computes box {box}, but the buffer {buffer.name} holds {own}")
    if result.dtype != dtype:
        raise ReplayError(
            f"{who} computes {result.dtype}, but the buffer {buffer.name} holds {dtype}"
        )
    return raw(addresses.in_memory_order(buffer, result[slices(own, starts(box))]))
