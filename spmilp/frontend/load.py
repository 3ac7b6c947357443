"""From a model file to a network of fused groups: the front end's straight line."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import compress
from pathlib import Path

from spmilp.errors import FileError
from spmilp.frontend.cleanup.clean import clean_up
from spmilp.frontend.convert import convert
from spmilp.frontend.divide import as_network, divide, fits
from spmilp.frontend.find import find_model
from spmilp.frontend.fuse import fuse
from spmilp.frontend.graph import Group, Network
from spmilp.frontend.operators.registry import known_kinds
from spmilp.frontend.passes import DEFAULT_PASSES, Fuse, Passes, passes_of
from spmilp.frontend.quantise import integerise
from spmilp.frontend.read import read_model
from spmilp.frontend.sanity import check_groups
from spmilp.frontend.unfused import UnfusedNetwork, settle_outputs, without_dead
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem

NO_DIMENSIONS: Mapping[str, int] = {}


def load_network(
    path: Path,
    dims: Mapping[str, int] = NO_DIMENSIONS,
    machine: Machine | None = None,
    passes: Passes = DEFAULT_PASSES,
) -> Network:
    """Read an ONNX model and prepare it for tiling.

    Parameters
    ----------
    dims
        Lengths of the model's dynamic dimensions by name.
    machine
        Operators are only fused if one of its kinds of core can run all; what fits none of its
        memories is divided.
    passes
        Those that are on.

    Raises
    ------
    FileError
        If the file is no sound ONNX model.
    UnsupportedOperatorError
        If it has nodes that cannot be lowered; all of them are listed.
    SpmilpError
        If a dynamic dimension is unknown or has no length.
    """
    model, sha256 = read_model(path)
    names = tuple(str(value.name) for value in model.graph.outputs)
    model = clean_up(model, dims, known_kinds(), passes)
    unfused = integerise(convert(model))
    # A constant without elements may be an output; there is nothing to compute.
    filled = [unfused.tensors[own].bytes > 0 for own in unfused.outputs]
    names = tuple(compress(names, filled))
    unfused = replace(unfused, outputs=tuple(compress(unfused.outputs, filled)))
    if not names:
        raise FileError(f"{path}: none of its outputs has elements, so there is nothing to compute")
    unfused = without_dead(settle_outputs(unfused, names))
    groups = fuse(unfused, machine.kinds if machine else (), passes.fuse)
    if machine is not None:
        unfused, groups = _as_fits(unfused, groups, machine, passes.fuse)
    operators = (operator for group in groups for operator in group.operators)
    used = {name for operator in operators for name in (*operator.inputs, operator.output)}
    used |= {*unfused.inputs, *unfused.outputs}
    outputs = zip(unfused.outputs, names, strict=True)
    network = Network(
        name=path.stem,
        tensors={name: tensor for name, tensor in unfused.tensors.items() if name in used},
        groups=groups,
        inputs=unfused.inputs,
        outputs=unfused.outputs,
        sha256=sha256,
        renamed={own: name for own, name in outputs if own != name},
        passes=passes,
    )
    check_groups(network)
    return network


def _as_fits(
    unfused: UnfusedNetwork, groups: tuple[Group, ...], machine: Machine, how: Fuse
) -> tuple[UnfusedNetwork, tuple[Group, ...]]:
    """Return a network and its groups, divided and fused anew if one fits no memory."""
    if all(map(partial(fits, as_network(unfused), machine), groups)):
        return unfused, groups
    unfused = divide(unfused, machine)
    return unfused, fuse(unfused, machine.kinds, how, partial(fits, as_network(unfused), machine))


def load_network_of(
    problem: Problem, model: str | Path, dims: Mapping[str, int]
) -> tuple[Path, Network]:
    """Return the file and the network that a problem was made from.

    Raises a ``SpmilpError`` if the model cannot be used, or is another one than the problem names.
    """
    file = find_model(str(model))
    network = load_network(file, dims, problem.machine, passes_of(problem.sources))
    wanted = dict(problem.sources).get("model")
    if wanted is not None and wanted != network.sha256:
        raise FileError(
            f"{file} is not the model of this problem: SHA-256 {network.sha256[:12]}…, expected "
            f"{wanted[:12]}…"
        )
    return file, network
