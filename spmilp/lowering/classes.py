"""Which groups of a network are alike, so that what is found for one holds for the others."""

from collections.abc import Hashable

from spmilp.frontend.graph import Group, Network, Operator
from spmilp.frontend.operators.family import Fusion
from spmilp.frontend.operators.registry import family_of


def class_of(network: Network, group: Group) -> Hashable:
    """Return a value that is equal for groups whose tiles read, hold and cost the same.

    Such groups have the same operators on tensors of the same shapes and types, wired alike.
    Constants that may say what is read (indices of a Gather) count by name.
    """
    numbers: dict[str, int] = {"": -1}
    for name in group.inputs:
        numbers[name] = len(numbers)
    computed = {other.output for other in network.groups}
    tensors = [
        (network.tensors[name].shape, network.tensors[name].dtype.str, name in computed)
        for name in group.inputs
    ]
    operators = []
    for operator in group.operators:
        read = tuple(numbers.setdefault(name, len(numbers)) for name in operator.inputs)
        written = numbers.setdefault(operator.output, len(numbers))
        operators.append(
            (
                operator.kind,
                tuple(sorted(operator.attributes.items())),
                _quantised(operator),
                read,
                written,
                network.tensors[operator.output].shape,
                network.tensors[operator.output].dtype.str,
                _constants_that_steer(network, operator),
            )
        )
    return tuple(tensors), tuple(operators), group.anchor


def _quantised(operator: Operator) -> Hashable:
    if operator.quantisation is None:
        return None
    inputs = tuple(scale is not None for scale in operator.quantisation.inputs)
    return inputs, operator.quantisation.output is not None


def _constants_that_steer(network: Network, operator: Operator) -> tuple[str, ...]:
    if family_of(operator.kind).fusion not in (Fusion.VIEW, Fusion.INJECTIVE):
        return ()
    return tuple(
        name for name in operator.inputs if name and network.tensors[name].data is not None
    )
