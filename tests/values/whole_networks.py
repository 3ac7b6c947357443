"""The values of a whole network, group by group: what the replay of any valid plan must give."""

from collections.abc import Mapping

from spmilp.checker.values.kernels.call import Array
from spmilp.checker.values.replay import evaluate
from spmilp.checker.values.state import ValuesError
from spmilp.frontend.graph import Network
from spmilp.frontend.operators.boxes import slices, whole
from spmilp.units import Box


def compute_network(network: Network, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the values of every tensor that lies in memory.

    What a replay of any valid plan must give for the outputs, up to the rounding of floats.
    """
    values = {name: tensor.values for name, tensor in network.tensors.items()}
    values.update(inputs)

    def fetch(name: str, box: Box) -> Array:
        known = values.get(name)
        if known is None:
            raise ValuesError(f"there are no values of {name}")
        return known[slices(box, (0,) * len(box))]

    for group in network.groups:
        shape = network.tensors[group.output].shape
        values[group.output] = evaluate(network, group, whole(shape), fetch)
    return {name: array for name, array in values.items() if array is not None}
