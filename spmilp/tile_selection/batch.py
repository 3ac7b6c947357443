"""A part of a network's batch: the same network on fewer examples."""

from dataclasses import replace

from spmilp.frontend.graph import Network, Operator, Tensor
from spmilp.frontend.operators.boxes import whole
from spmilp.frontend.operators.registry import family_of
from spmilp.frontend.regions import group_regions


def batch_size(network: Network) -> int:
    """Return the length of the first axis of all inputs, the batch; 1 if there is no such."""
    sizes = {network.tensors[name].shape[:1] for name in network.inputs}
    return next(iter(sizes))[0] if len(sizes) == 1 and () not in sizes else 1


def part_of_batch(network: Network, parts: int) -> Network | None:
    """Return the network on an equal part of its batch.

    ``None`` unless every computed tensor has the batch as its first axis and each example is
    computed from that example of the inputs alone.
    """
    batch = batch_size(network)
    if parts == 1:
        return network
    if batch % parts or not _keeps_examples_apart(network, batch, batch // parts):
        return None
    tensors = dict(network.tensors)
    for name in network.inputs:
        tensors[name] = _part(tensors[name], parts)
    for group in network.groups:
        for operator in group.operators:
            made = _part(tensors[operator.output], parts)
            if not _gives(operator, tensors, made):
                return None
            tensors[operator.output] = made
    return replace(network, tensors=tensors)


def _keeps_examples_apart(network: Network, batch: int, some: int) -> bool:
    computed = {group.output for group in network.groups} | set(network.inputs)
    for group in network.groups:
        made = {operator.output for operator in group.operators}
        if any(network.tensors[name].shape[:1] != (batch,) for name in made):
            return False
        rest = whole(network.tensors[group.output].shape)[1:]
        for first in (0, batch - some):
            regions = group_regions(network, group, ((first, first + some), *rest))
            read = [regions[name] for name in group.inputs if name in computed & regions.keys()]
            if any(box[:1] != ((first, first + some),) for box in read):
                return False
    return True


def _gives(operator: Operator, tensors: dict[str, Tensor], made: Tensor) -> bool:
    """Say whether an operator gives a tensor of that shape, of inputs that are cut already."""
    inputs = [tensors[name] if name else None for name in operator.inputs]
    try:
        return family_of(operator.kind).output_shape(operator, inputs) == made.shape
    except ValueError:
        return False


def _part(tensor: Tensor, parts: int) -> Tensor:
    return replace(tensor, shape=(tensor.shape[0] // parts, *tensor.shape[1:]))
