"""From a model file to a network of fused groups: the front end's straight line."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import compress
from pathlib import Path

from spmilp.errors import FileError
from spmilp.frontend.cleanup.bind import bind_inputs
from spmilp.frontend.cleanup.clean import clean_up
from spmilp.frontend.convert import convert
from spmilp.frontend.divide import divide, fits, rooms_of
from spmilp.frontend.find import find_model
from spmilp.frontend.fuse import fuse
from spmilp.frontend.graph import GIVEN, Network
from spmilp.frontend.operators.registry import known_kinds
from spmilp.frontend.passes import DEFAULT_PASSES, Passes, passes_of
from spmilp.frontend.quantise import integerise
from spmilp.frontend.read import read_model
from spmilp.frontend.sanity import check_groups
from spmilp.frontend.unfused import UnfusedNetwork, settle_outputs, without_dead
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.quantities import input_values

NO_DIMENSIONS: Mapping[str, int] = {}


def load_network(
    path: Path,
    dims: Mapping[str, int] = NO_DIMENSIONS,
    machine: Machine | None = None,
    passes: Passes = DEFAULT_PASSES,
    values: Mapping[str, str] | None = None,
) -> Network:
    """Read an ONNX model and prepare it for tiling.

    Parameters
    ----------
    dims
        Lengths of the model's dynamic dimensions by name, or by input and axis.
    machine
        Operators are only fused if one of its kinds of core can run all; what fits none of its
        memories is divided.
    passes
        Those that are on.
    values
        Of inputs that are to be constants, with commas between them.

    Raises a ``FileError`` if the file is no sound ONNX model, an ``UnsupportedOperatorError`` that
    lists all nodes that cannot be lowered, and a ``SpmilpError`` if a dynamic dimension is unknown
    or has no length, or values are not an input's.
    """
    model, sha256 = read_model(path)
    names = tuple(str(value.name) for value in model.graph.outputs)
    given = bind_inputs(model, values or {})
    model = clean_up(model, dims, known_kinds(), passes)
    unfused = integerise(convert(model))
    # A constant without elements may be an output; there is nothing to compute.
    filled = [unfused.tensors[own].bytes > 0 for own in unfused.outputs]
    names = tuple(compress(names, filled))
    unfused = replace(unfused, outputs=tuple(compress(unfused.outputs, filled)))
    if not names:
        raise FileError(f"{path}: none of its outputs has elements, so there is nothing to compute")
    unfused = without_dead(settle_outputs(unfused, names))
    outputs = zip(unfused.outputs, names, strict=True)
    network = Network(
        name=path.stem,
        tensors=unfused.tensors,
        groups=(),
        inputs=unfused.inputs,
        outputs=unfused.outputs,
        sha256=sha256,
        renamed={own: name for own, name in outputs if own != name},
        passes=passes,
        dim=dims,
        given=given,
    )
    network = _with_groups(network, unfused, machine)
    check_groups(network)
    return network


def _with_groups(network: Network, unfused: UnfusedNetwork, machine: Machine | None) -> Network:
    """Return a network with its groups; operators are divided if a group fits no memory."""
    kinds, how = machine.kinds if machine else (), network.passes.fuse
    groups = fuse(unfused, kinds, how)
    if machine is not None and not all(fits(network, machine, group) for group in groups):
        unfused = divide(unfused, network, machine)
        passes = replace(network.passes, rooms=network.passes.rooms or rooms_of(machine))
        network = replace(network, tensors=unfused.tensors, passes=passes)
        groups = fuse(unfused, kinds, how, partial(fits, network, machine))
    operators = (operator for group in groups for operator in group.operators)
    used = {name for operator in operators for name in (*operator.inputs, operator.output)}
    used |= {*network.inputs, *network.outputs}
    tensors = {name: tensor for name, tensor in network.tensors.items() if name in used}
    return replace(network, groups=groups, tensors=tensors)


def load_network_of(
    problem: Problem, model: str | Path, dims: Mapping[str, int]
) -> tuple[Path, Network]:
    """Return the file and the network that a problem was made from.

    Raises a ``SpmilpError`` if the model cannot be used, or is another one than the problem names.
    """
    file = find_model(str(model))
    texts = (what.removeprefix(GIVEN) for what, _ in problem.sources if what.startswith(GIVEN))
    passes, values = passes_of(problem.sources), input_values(texts)
    network = load_network(file, dims, problem.machine, passes, values)
    wanted = dict(problem.sources).get("model")
    if wanted is not None and wanted != network.sha256:
        raise FileError(
            f"{file} is not the model of this problem: SHA-256 {network.sha256[:12]}…, expected "
            f"{wanted[:12]}…"
        )
    return file, network
