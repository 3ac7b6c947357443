"""The network before it is fused into groups; every output is a tensor that an operator writes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from spmilp.errors import ArgumentError
from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.geometry import Fusion
from spmilp.frontend.operators.moves import shows_all
from spmilp.frontend.operators.registry import family_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnfusedNetwork:
    """A network that is not fused yet: operators in topological order.

    Its tensors are at least those that they read and write, and the inputs and outputs.
    """

    operators: tuple[Operator, ...]
    tensors: Mapping[str, Tensor]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def producers(self) -> dict[str, Operator]:
        """Return the operator that writes each tensor."""
        return {operator.output: operator for operator in self.operators}

    def consumers(self) -> dict[str, list[Operator]]:
        """Return the operators that read each tensor, each once, in order; none for the others."""
        readers: dict[str, list[Operator]] = defaultdict(list)
        for operator in self.operators:
            for name in present_inputs(operator):
                readers[name].append(operator)
        return readers


def present_inputs(operator: Operator) -> tuple[str, ...]:
    """Return the tensors that an operator reads, each once, in order."""
    return tuple(name for name in dict.fromkeys(operator.inputs) if name)


def without_dead(network: UnfusedNetwork) -> UnfusedNetwork:
    """Return the network without operators on which no output depends."""
    needed = set(network.outputs)
    kept = []
    for operator in reversed(network.operators):
        if operator.output in needed:
            needed.update(operator.inputs)
            kept.append(operator)
    return replace(network, operators=tuple(reversed(kept)))


def settle_outputs(network: UnfusedNetwork, names: Sequence[str]) -> UnfusedNetwork:
    """Return the network with outputs that no view, input or constant stands for.

    An output that is another operator's result reshaped gives its name to that result, whose bytes
    are the same; the output then has the result's shape. All other outputs that are views, inputs,
    constants or an earlier output are copied by an operator ``Identity``. The ``names`` are those
    of the outputs in the model.
    """
    for position, name in enumerate(names):
        current = network.outputs[position]
        producer, base = network.producers().get(current), None
        if producer is not None and current not in network.outputs[:position]:
            if not is_view(producer):
                continue
            base = _reshaped_result(network, producer)
        if base is None:
            network = _copied(network, position, name)
        else:
            # The result takes the name of the output; the view of that name gets another.
            swapped = {base: current, current: _free_name(network, f"{current}/view")}
            network = _renamed(network, swapped)
    return network


def read_as_left(
    network: UnfusedNetwork, states: Mapping[str, str], own_name: Mapping[str, str]
) -> UnfusedNetwork:
    """Return the network with states that have the shapes in which inferences leave them.

    Readers of another shape read a view. ``states`` has of inputs the names of outputs in the
    model, ``own_name`` the names that these have here. Raises an ``ArgumentError`` if an input or
    an output is none, or they have other elements.
    """
    tensors = dict(network.tensors)
    for name, output in states.items():
        for what, one, some in (("input", name, network.inputs), ("output", output, own_name)):
            if one not in some:
                raise ArgumentError(
                    f"state {name}={output}: there is no {what} {one}; there are {', '.join(some)}",
                    is_option=True,
                )
        own, left = tensors[name], tensors[own_name[output]]
        if own.dtype != left.dtype or prod(own.shape) != prod(left.shape):
            raise ArgumentError(
                f"state {name}={output}: {own.dtype} of shape {own.shape} is read, {left.dtype} of "
                f"shape {left.shape} is left; expected the same",
                is_option=True,
            )
        if list(states.values()).count(output) > 1:
            raise ArgumentError(
                f"state {name}={output}: {output} is left in several inputs; give them one",
                is_option=True,
            )
        if own.shape != left.shape:
            view = _free_name(network, f"{name}/view")
            tensors |= {name: replace(own, shape=left.shape), view: replace(own, name=view)}
            seen = Operator(
                name=view,
                kind="Reshape",
                inputs=(name,),
                output=view,
                attributes={"shape": own.shape},
            )
            network = replace(
                network,
                tensors=tensors,
                operators=(
                    seen,
                    *(
                        replace(one, inputs=tuple(view if i == name else i for i in one.inputs))
                        for one in network.operators
                    ),
                ),
            )
    return network


def is_view(operator: Operator) -> bool:
    """Return whether an operator moves no bytes."""
    return family_of(operator.kind).fusion is Fusion.VIEW


def _reshaped_result(network: UnfusedNetwork, view: Operator) -> str | None:
    """Return the tensor of which ``view`` shows all bytes in order, if it can be an output."""
    producers = network.producers()
    producer: Operator | None = view
    while producer and shows_all(producer):
        source = producer.inputs[0]
        producer = producers.get(source)
        if producer is None or source in network.outputs:
            return None
        if not is_view(producer):
            return source
    return None


def _copied(network: UnfusedNetwork, position: int, name: str) -> UnfusedNetwork:
    """Let an ``Identity`` write an output, from a tensor that gets another name.

    An input of the network, or an earlier output, keeps its name; the copy then gets another if
    that one is the output's.
    """
    source = network.outputs[position]
    if source == name and source not in (*network.inputs, *network.outputs[:position]):
        source, target = _free_name(network, f"{name}/view"), name
        network = _renamed(network, {name: source})
    else:
        target = name if name not in network.tensors else _free_name(network, f"{name}/copy")
    is_taken = any(operator.name == target for operator in network.operators)
    label = f"{target}_2" if is_taken else target
    copy = Operator(name=label, kind="Identity", inputs=(source,), output=target)
    tensor = network.tensors[source]
    written = Tensor(name=target, shape=tensor.shape, dtype=tensor.dtype)
    return replace(
        network,
        operators=(*network.operators, copy),
        tensors={**network.tensors, target: written},
        outputs=(*network.outputs[:position], target, *network.outputs[position + 1 :]),
    )


def _renamed(network: UnfusedNetwork, names: Mapping[str, str]) -> UnfusedNetwork:
    """Return the network with tensors renamed wherever operators read or write them."""
    operators = tuple(
        replace(
            operator,
            inputs=tuple(names.get(name, name) for name in operator.inputs),
            output=names.get(operator.output, operator.output),
        )
        for operator in network.operators
    )
    tensors = {
        names.get(name, name): replace(tensor, name=names.get(name, name))
        for name, tensor in network.tensors.items()
    }
    return replace(network, operators=operators, tensors=tensors)


def _free_name(network: UnfusedNetwork, name: str) -> str:
    """Return a name that no tensor has."""
    while name in network.tensors:
        name += "_"
    return name
