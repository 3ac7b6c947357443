"""Values that a replay begins with: the model's constants, and inputs, random or of a file."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import networkx as nx
import numpy as np

from spmilp.checker.rules.case import is_filled
from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.state import Addresses, ValuesError
from spmilp.errors import FileError
from spmilp.files import is_device
from spmilp.frontend.cleanup.constants import KEEPING_VALUES
from spmilp.frontend.graph import Network, Tensor
from spmilp.frontend.operators.boxes import slices
from spmilp.plan.memory import home_of
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.units import Bytes, MemoryIdx


def values_at_start(
    problem: Problem, plan: Plan, network: Network, inputs: Mapping[str, Array] | None
) -> Iterator[tuple[MemoryIdx, Bytes, Array]]:
    """Yield memory, address and values, as they lie packed, of what is there at cycle 0.

    DRAM tensors in which some buffer starts come first, then buffers that start on chip. ``None``
    in place of the values of the network's inputs passes these over; in a stream they are there for
    states alone.
    """
    addresses, given = Addresses(problem, plan, network), inputs or {}
    passed_over = set(network.inputs) if inputs is None else set()
    starting = {
        buffer.place.tensor
        for buffer in problem.buffers
        if buffer.place is not None and buffer.starts_in is not None
    }
    for tensor in problem.tensors:
        if tensor.index in starting and tensor.name not in passed_over:
            values, axes = given_values(network, given, tensor.name), addresses.axes(tensor)
            ordered = values.transpose(axes) if axes else values
            yield tensor.memory, plan.tensors[tensor.index], ordered.reshape(tensor.shape)
    for each in plan.residencies:
        if each.slice is None or is_filled(each) or home_of(problem, each) is not None:
            continue
        part, buffer = problem.slices[each.slice], addresses.buffer(each.slice)
        tile = addresses.tile(buffer)
        if buffer.starts_in == each.memory and each.start == 0 and tile.of not in passed_over:
            whole = given_values(network, given, tile.of)
            values = whole[slices(tile.box, (0,) * len(tile.box))]
            sides = zip(part.start, part.extent, strict=True)
            inside = tuple(slice(start, start + extent) for start, extent in sides)
            yield each.memory, each.offset, addresses.in_memory_order(buffer, values)[inside]


def given_values(network: Network, inputs: Mapping[str, Array], name: str) -> Array:
    """Return the values of a network input or constant.

    Raises a ``ValuesError`` if there are none, or they have another shape or type than the
    network's.
    """
    tensor = network.tensors.get(name)
    if tensor is None:
        raise ValuesError(f"the model has no tensor {name}; is the plan of another model?")
    values = inputs.get(name) if tensor.values is None else tensor.values
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


_INDEXED = frozenset({"Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"})


def random_inputs(network: Network, seed: int) -> dict[str, Array]:
    """Return random values for every network input; the same seed gives the same ones.

    Floats are normal. Integers of one byte have any value (quantised data). Others are below the
    length of what they are indices of, or 0 or 1 (masks, kinds of tokens). No divisor is 0.
    """
    generator = np.random.default_rng(seed)
    limits, divisors = _index_limits(network)
    return {
        name: _random(network.tensors[name], limits.get(name), name in divisors, generator)
        for name in network.inputs
    }


def _random(
    tensor: Tensor, limit: int | None, divides: bool, generator: np.random.Generator
) -> Array:
    low, high = 0, 2
    if tensor.dtype != np.bool_ and not np.issubdtype(tensor.dtype, np.integer):
        return np.asarray(generator.normal(size=tensor.shape)).astype(tensor.dtype)
    if tensor.dtype != np.bool_ and limit is not None:
        high = limit
    elif tensor.dtype != np.bool_ and tensor.dtype.itemsize == 1:
        range_ = np.iinfo(tensor.dtype.name)
        low, high = int(range_.min), int(range_.max) + 1
    drawn = np.asarray(generator.integers(low, high, size=tensor.shape)).astype(tensor.dtype)
    return np.where(drawn == 0, np.ones_like(drawn), drawn) if divides else drawn


def _index_limits(network: Network) -> tuple[dict[str, int], set[str]]:
    """Return of each tensor the shortest axis of which it has indices, and which are divisors."""
    operators = [operator for group in network.groups for operator in group.operators]
    passed_on = nx.DiGraph()
    for operator in operators:
        passed_on.add_nodes_from(operator.inputs)
        if operator.kind in KEEPING_VALUES or operator.kind == "Concat":
            passed_on.add_edges_from((name, operator.output) for name in operator.inputs)
    limits: dict[str, int] = {}
    divisors: set[str] = set()
    for operator in operators:
        if operator.kind in ("Div", "Mod"):
            divisors |= {operator.inputs[1], *nx.ancestors(passed_on, operator.inputs[1])}
        if operator.kind in _INDEXED and len(operator.inputs) > 1:
            table, indices = (network.tensors[name] for name in operator.inputs[:2])
            axes = table.shape[: indices.shape[-1]] if operator.kind.endswith("ND") else ()
            length = min(axes) if axes else table.shape[operator.integer("axis")]
            for source in (indices.name, *nx.ancestors(passed_on, indices.name)):
                limits[source] = min(length, limits.get(source, length))
    return limits, divisors


def read_values(path: Path, network: Network) -> tuple[dict[str, Array], dict[str, Array] | None]:
    """Read the network's inputs from an ``.npz`` file, and what its outputs shall be, if given.

    There is one array for each by its name; integers of inputs may be of another type that holds
    the same values.

    Raises a ``FileError`` if the file cannot be read, an input is missing or has another shape or
    type, or only some of the outputs are there.
    """
    arrays = _read_arrays(path)
    inputs: dict[str, Array] = {}
    for name in network.inputs:
        if name not in arrays:
            known = ", ".join(sorted(arrays)) or "none"
            raise FileError(f"{path}: no array {name} for that network input; it has {known}")
        tensor, given = network.tensors[name], arrays[name]
        if np.issubdtype(given.dtype, np.integer) and np.issubdtype(tensor.dtype, np.integer):
            limits = np.iinfo(tensor.dtype.name)
            if limits.min <= given.min() and given.max() <= limits.max:
                given = given.astype(tensor.dtype)
        if given.shape != tensor.shape or given.dtype != tensor.dtype:
            raise FileError(
                f"{path}: array {name} is {given.dtype} of shape {given.shape}, expected "
                f"{tensor.dtype} of shape {tensor.shape}"
            )
        inputs[name] = given
    # An output that is an input is one array: it says nothing of whether the outputs are given.
    names = [network.renamed.get(name, name) for name in network.outputs]
    if not set(names).intersection(arrays).difference(network.inputs):
        return inputs, None
    for name in names:
        if name not in arrays:
            raise FileError(
                f"{path}: no array {name} for that network output; give all outputs or none"
            )
    return inputs, {name: arrays[name] for name in names}


def _read_arrays(path: Path) -> dict[str, Array]:
    if is_device(path):
        raise FileError(f"{path}: cannot be read: it is a device")
    try:
        stored = np.load(path, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            raise FileError(f"{path}: one array without a name; save it with numpy.savez")
        with stored:
            every = {name: stored[name] for name in stored.files}
            # NumPy writes bfloat16 as pairs of bytes.
            return {n: a.view("bfloat16") if a.dtype == "V2" else a for n, a in every.items()}
    except FileError:
        raise
    except FileNotFoundError as error:
        raise FileError(f"{path}: no such file") from error
    except Exception as error:
        # A damaged archive raises almost anything: zlib.error, TokenError, EOFError, MemoryError.
        raise FileError(f"{path}: no .npz file of arrays: {error}") from error
