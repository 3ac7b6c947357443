"""From a model file to a network of fused groups: the front end's straight line."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TypeVar

from spmilp.errors import ArgumentError, FileError
from spmilp.frontend.cleanup.bind import bind_inputs
from spmilp.frontend.cleanup.clean import clean_up
from spmilp.frontend.convert import convert
from spmilp.frontend.divide import divide, fits, rooms_of
from spmilp.frontend.find import find_model
from spmilp.frontend.fuse import fuse
from spmilp.frontend.graph import GIVEN, Joined, Network
from spmilp.frontend.join import join
from spmilp.frontend.operators.registry import known_kinds
from spmilp.frontend.passes import DEFAULT_PASSES, Passes, passes_of
from spmilp.frontend.quantise import integerise
from spmilp.frontend.read import read_model
from spmilp.frontend.unfused import UnfusedNetwork, read_as_left, settle_outputs, without_dead
from spmilp.machine.machine import Machine
from spmilp.problem.problem import Problem
from spmilp.problem.several import Member, members_of
from spmilp.quantities import input_values

T = TypeVar("T")

NO_DIMENSIONS: Mapping[str, int] = {}

NO_STATES: Mapping[str, str] = {}


def load_network(
    path: Path,
    dims: Mapping[str, int] = NO_DIMENSIONS,
    machine: Machine | None = None,
    passes: Passes = DEFAULT_PASSES,
    values: Mapping[str, str] | None = None,
    states: Mapping[str, str] = NO_STATES,
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
    states
        Of inputs that are states the output that is left there.

    Raises a ``FileError`` if the file is no sound ONNX model, an ``UnsupportedOperatorError`` that
    lists all nodes that cannot be lowered, and a ``SpmilpError`` if a dynamic dimension is unknown
    or has no length, or values are not an input's, or a state is none.
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
    own_name = dict(zip(names, unfused.outputs, strict=True))
    unfused = read_as_left(unfused, states, own_name)
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
        states={name: own_name[output] for name, output in states.items()},
    )
    return _with_groups(network, unfused, machine)


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


def load_networks(
    models: Mapping[Path, Member],
    dims: Mapping[str, int] = NO_DIMENSIONS,
    machine: Machine | None = None,
    passes: Passes = DEFAULT_PASSES,
    values: Mapping[str, str] | None = None,
) -> Network:
    """Read several models as one network; see :func:`load_network` for parameters and errors.

    Names of dimensions and inputs begin with the network's: ``kws/batch``.
    """
    names = [member.name for member in models.values()]

    def own(given: Mapping[str, T], what: str, begin: str) -> dict[str, T]:
        for name in given:
            if not any(name.startswith(f"{one}/") for one in names):
                raise ArgumentError(
                    f"{what} {name}: say of which network, as in {names[0]}/{name}; there are "
                    f"{', '.join(names)}",
                    is_option=True,
                )
        some = (name for name in given if name.startswith(begin))
        return {name.removeprefix(begin): given[name] for name in some}

    parts = list[Joined]()
    for file, member in models.items():
        sizes, known = (
            own(dims, "dim", member.constants),
            own(values or {}, "input", member.constants),
        )
        network = load_network(file, sizes, machine, passes, known)
        parts.append(Joined(member=member, network=network, file=file))
    return join(parts)


def load_network_of(
    problem: Problem, model: str | Path | Sequence[str | Path], dims: Mapping[str, int]
) -> tuple[Path, Network]:
    """Return the file and the network that a problem was made from; of several the first file.

    Raises a ``SpmilpError`` if a model cannot be used, is missing, or is another one than the
    problem names.
    """
    given = [model] if isinstance(model, str | Path) else model
    files = [find_model(str(one)) for one in given]
    texts = (what.removeprefix(GIVEN) for what, _ in problem.sources if what.startswith(GIVEN))
    passes, values = passes_of(problem.sources), input_values(texts)
    how = dims, problem.machine, passes, values
    wanted, members = dict(problem.sources), members_of(problem)
    if members:
        file_of = {file.stem: file for file in files}
        if {one.name for one in members} != file_of.keys() or len(files) > len(file_of):
            raise FileError(
                f"{problem.name} is of the networks {', '.join(one.name for one in members)}; give "
                f"the model of each of them once, not {', '.join(map(str, files))}"
            )
        network = load_networks({file_of[one.name]: one for one in members}, *how)
        for part in network.parts:
            _must_be(part.file, part.network, wanted.get(part.member.said))
    else:
        if len(files) > 1:
            raise FileError(f"{problem.name} is of one network; give one model, not {len(files)}")
        left = {
            one.name: problem.tensors[one.state].name
            for one in problem.tensors
            if one.state is not None
        }
        network = load_network(files[0], *how, left)
        _must_be(files[0], network, wanted.get("model"))
    return files[0], network


def _must_be(file: Path, network: Network, sha256: str | None) -> None:
    if sha256 is not None and sha256 != network.sha256:
        raise FileError(
            f"{file} is not the model of this problem: SHA-256 {network.sha256[:12]}…, expected "
            f"{sha256[:12]}…"
        )
