"""The network as operators and tensors, before they are fused into groups."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spmilp.frontend.graph import Operator, Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnfusedNetwork:
    """A network that is not fused yet.

    Parameters
    ----------
    operators
        In topological order.
    tensors
        At least those that the operators read and write, and the inputs and outputs.
    inputs, outputs
        Names of tensors.
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
            for name in dict.fromkeys(operator.inputs):
                if name:
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


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that differ: a name that was taken before gets a number."""
    taken: set[str] = set(names)
    seen: set[str] = set()
    result = []
    for name in names:
        chosen, number = name, 2
        while chosen in seen or (number > 2 and chosen in taken):
            chosen, number = f"{name}_{number}", number + 1
        seen.add(chosen)
        result.append(chosen)
    return tuple(result)
