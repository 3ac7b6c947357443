"""Every output of the network becomes a tensor that an operator writes to memory."""

from collections.abc import Mapping
from dataclasses import replace

from spmilp.frontend.graph import Operator, Tensor
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.registry import family_of
from spmilp.frontend.unfused import UnfusedNetwork

RESHAPES = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
"""Views with all bytes of their input, in the same order."""


def settle_outputs(network: UnfusedNetwork) -> UnfusedNetwork:
    """Return the network with outputs that no view, input or constant stands for.

    An output that is another operator's result reshaped gives its name to that result, whose bytes
    are the same; the output then has the result's shape. All other outputs that are views, inputs
    or constants are copied by an operator ``Identity``.
    """
    for name in network.outputs:
        producer = network.producers().get(name)
        if producer is None:
            network = _copied(network, name)
        elif is_view(producer):
            base = _reshaped_result(network, producer)
            network = (
                _copied(network, name) if base is None else _renamed_result(network, base, name)
            )
    return network


def is_view(operator: Operator) -> bool:
    """Return whether an operator moves no bytes."""
    return family_of(operator.kind).fusion is Fusion.VIEW


def _reshaped_result(network: UnfusedNetwork, view: Operator) -> str | None:
    """Return the tensor of which ``view`` shows all bytes in order, if it can be an output."""
    producers = network.producers()
    while view.kind in RESHAPES:
        source = view.inputs[0]
        producer = producers.get(source)
        if producer is None or source in network.outputs:
            return None
        if not is_view(producer):
            return source
        view = producer
    return None


def _renamed_result(network: UnfusedNetwork, base: str, name: str) -> UnfusedNetwork:
    """Give ``base`` the name of an output; the view of that name gets another."""
    return _renamed(network, {base: name, name: _free_name(network, f"{name}/view")})


def _copied(network: UnfusedNetwork, name: str) -> UnfusedNetwork:
    """Let an ``Identity`` write an output, from a tensor that gets another name.

    An input of the network keeps its name; it is the copy that gets another.
    """
    if name in network.inputs:
        source, target = name, _free_name(network, f"{name}/copy")
        outputs = tuple(target if other == name else other for other in network.outputs)
        network = replace(network, outputs=outputs)
    else:
        source, target = _free_name(network, f"{name}/view"), name
        network = _renamed(network, {name: source})
    copy = Operator(name=target, kind="Identity", inputs=(source,), output=target)
    tensor = network.tensors[source]
    written = Tensor(name=target, shape=tensor.shape, dtype=tensor.dtype)
    return replace(
        network,
        operators=(*network.operators, copy),
        tensors={**network.tensors, target: written},
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
