"""Puts network inputs and constants where they are at cycle 0."""

from collections.abc import Mapping

from spmilp.checker.values.addresses import Addresses
from spmilp.checker.values.errors import ValuesError
from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.memory import raw
from spmilp.checker.values.state import State
from spmilp.frontend.graph import Network
from spmilp.frontend.operators.boxes import slices
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.problem import Buffer, Problem


def write_what_is_given(
    problem: Problem,
    plan: Plan,
    network: Network,
    inputs: Mapping[str, Array],
    addresses: Addresses,
    state: State,
) -> None:
    """Write every DRAM tensor that some buffer starts in, and every buffer that starts on chip.

    Raises
    ------
    ValuesError
        If a value is missing, or has another shape or type than the network's.
    """
    starting = {
        buffer.place.tensor
        for buffer in problem.buffers
        if buffer.place is not None and buffer.starts_in is not None
    }
    for tensor in problem.tensors:
        if tensor.index in starting:
            values = given_values(network, inputs, tensor.name)
            axes = addresses.axes(tensor)
            ordered = values.transpose(axes) if axes else values
            state.write_tensor(tensor, raw(ordered.reshape(tensor.shape)))
    for residency in plan.residencies:
        buffer = _starting_on_chip(addresses, residency)
        if buffer is not None:
            tile = addresses.tile(buffer)
            values = given_values(network, inputs, tile.of)
            part = values[slices(tile.box, (0,) * len(tile.box))]
            box = problem.slices[residency.slice or 0]
            inside = tuple(
                slice(start, start + extent)
                for start, extent in zip(box.start, box.extent, strict=True)
            )
            state.write(residency.index, raw(addresses.in_memory_order(buffer, part)[inside]))


def given_values(network: Network, inputs: Mapping[str, Array], name: str) -> Array:
    """Return the values of a network input or constant.

    Raises
    ------
    ValuesError
        If there are none, or they have another shape or type than the network's.
    """
    tensor = network.tensors.get(name)
    if tensor is None:
        raise ValuesError(f"the model has no tensor {name}; is the plan of another model?")
    values = tensor.data if tensor.data is not None else inputs.get(name)
    if values is None and name in network.inputs:
        raise ValuesError(f"no values are given for the network input {name}")
    if values is None:
        raise ValuesError(f"the model file has only a shape for the constant {name}, no values")
    if values.shape != tensor.shape or values.dtype != tensor.dtype:
        raise ValuesError(
            f"{name}: given {values.dtype} of shape {values.shape}, expected {tensor.dtype} of "
            f"shape {tensor.shape}"
        )
    return values


def _starting_on_chip(addresses: Addresses, residency: Residency) -> Buffer | None:
    """Return the buffer that is in a residency at cycle 0 without lying in a DRAM tensor."""
    filled = residency.filled_by_task is not None or residency.filled_by_transfer is not None
    if filled or residency.slice is None or addresses.is_at_place(residency):
        return None
    buffer = addresses.buffer(residency.slice)
    starts = buffer.starts_in == residency.memory and residency.start == 0
    return buffer if starts else None
