"""What a task computes from the bytes of its operands."""

from collections.abc import Sequence

from spmilp.checker.values.addresses import Addresses, Piece, gather
from spmilp.checker.values.errors import ReplayError
from spmilp.checker.values.group import evaluate
from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.memory import raw
from spmilp.frontend.graph import Network
from spmilp.frontend.operators.boxes import contains, slices, starts
from spmilp.problem.problem import Buffer, Problem, Task
from spmilp.units import Box, SliceIdx


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
