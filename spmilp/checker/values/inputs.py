"""Inputs for a replay: random ones, or those of a file."""

from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from spmilp.checker.values.kernels.call import Array
from spmilp.errors import FileError
from spmilp.frontend.graph import Network, Operator, Tensor

_PASSES_INTEGERS_ON = frozenset(
    {
        *("Cast", "Concat", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze"),
        *("Tile", "Transpose", "Unsqueeze"),
    }
)


def random_inputs(network: Network, seed: int) -> dict[str, Array]:
    """Return random values for every network input; the same seed gives the same ones.

    Floats are normal. Integers of one byte have any value (quantised data). Others that index a
    table are below its length; those that do not are 0 or 1 (masks, kinds of tokens).
    """
    generator = np.random.default_rng(seed)
    limits = _index_limits(network)
    return {
        name: _random(network.tensors[name], limits.get(name), generator) for name in network.inputs
    }


def read_inputs(path: Path, network: Network) -> dict[str, Array]:
    """Read the network's inputs from an ``.npz`` file, one array for each by its name.

    Raises
    ------
    FileError
        If the file cannot be read, or an array is missing or has another shape or type.
    """
    try:
        stored = np.load(path, allow_pickle=False)
        if isinstance(stored, np.ndarray):
            raise FileError(f"{path}: one array without a name; save it with numpy.savez")
        with stored:
            arrays: dict[str, Array] = {name: stored[name] for name in stored.files}
    except FileNotFoundError as error:
        raise FileError(f"{path}: no such file") from error
    except (OSError, ValueError, BadZipFile) as error:
        raise FileError(f"{path}: no .npz file of arrays: {error}") from error
    for name in network.inputs:
        if name not in arrays:
            known = ", ".join(sorted(arrays)) or "none"
            raise FileError(f"{path}: no array {name} for that network input; it has {known}")
        tensor, given = network.tensors[name], arrays[name]
        if given.shape != tensor.shape or given.dtype != tensor.dtype:
            raise FileError(
                f"{path}: array {name} is {given.dtype} of shape {given.shape}, expected "
                f"{tensor.dtype} of shape {tensor.shape}"
            )
    return {name: arrays[name] for name in network.inputs}


def _random(tensor: Tensor, limit: int | None, generator: np.random.Generator) -> Array:
    if tensor.dtype == np.bool_:
        return generator.integers(0, 2, size=tensor.shape).astype(np.bool_)
    if not np.issubdtype(tensor.dtype, np.integer):
        return np.asarray(generator.normal(size=tensor.shape)).astype(tensor.dtype)
    low, high = 0, 2
    if limit is not None:
        high = limit
    elif tensor.dtype.itemsize == 1:
        range_ = np.iinfo(tensor.dtype.name)
        low, high = int(range_.min), int(range_.max) + 1
    return np.asarray(generator.integers(low, high, size=tensor.shape)).astype(tensor.dtype)


def _index_limits(network: Network) -> dict[str, int]:
    """Return the length of the shortest table that each network input indexes."""
    operators = [operator for group in network.groups for operator in group.operators]
    producers = {operator.output: operator for operator in operators}
    limits: dict[str, int] = {}
    for operator in operators:
        if operator.kind != "Gather" or len(operator.inputs) < 2 or not operator.inputs[1]:
            continue
        axis = operator.attributes["axis"]
        table = network.tensors[operator.inputs[0]].shape
        length = table[axis] if isinstance(axis, int) else 1
        for source in _sources(operator.inputs[1], producers):
            limits[source] = min(length, limits.get(source, length))
    return limits


def _sources(name: str, producers: dict[str, Operator]) -> list[str]:
    """Return the tensors whose integers arrive at ``name`` as they are."""
    operator = producers.get(name)
    if operator is None:
        return [name]
    if operator.kind not in _PASSES_INTEGERS_ON:
        return []
    return [source for given in operator.inputs if given for source in _sources(given, producers)]
