"""Pieces of the networks in ``models/``: a few successive fused groups, as networks themselves."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from spmilp.frontend.graph import Network
from spmilp.frontend.load import load_network
from spmilp.frontend.regions import splittable_axes
from spmilp.lowering.groups import reduction_length
from spmilp.lowering.tiling import Tiling
from spmilp.machine.machine import Machine

MODELS = Path(__file__).resolve().parent.parent / "models"
OPEN = {"bert_tiny_f32": {"batch": 1, "sequence": 32}}
AXES = {
    1: {"c": 0},
    2: {"h": 0, "c": 1},
    3: {"h": 1, "c": 2},
    4: {"c": 1, "h": 2, "w": 3},
}
"""Letters for the axes of an output, by its rank: channels (columns, heads), rows, columns."""


@cache
def network(model: str, machine: Machine) -> Network:
    """Return a network of ``models/``, its open dimensions bound."""
    return load_network(MODELS / f"{model}.onnx", OPEN.get(model, {}), machine)


def piece(model: str, first: int, last: int, machine: Machine) -> Network:
    """Return the groups ``first`` to ``last`` of a network, both included.

    What they read from earlier groups becomes an input of the piece, what later ones (or nobody)
    read of them an output.
    """
    whole = network(model, machine)
    groups = whole.groups[first : last + 1]
    made = {group.output for group in groups}
    read = dict.fromkeys(name for group in groups for name in group.inputs)
    constants = {name for name, tensor in whole.tensors.items() if tensor.data is not None}
    needed_later = {name for group in whole.groups[last + 1 :] for name in group.inputs}
    return replace(
        whole,
        name=f"{model} groups {first} to {last}",
        groups=tuple(replace(group, index=i) for i, group in enumerate(groups)),
        inputs=tuple(name for name in read if name not in made and name not in constants),
        outputs=tuple(
            group.output
            for group in groups
            if group.output in needed_later
            or group.output in whole.outputs
            or group.output not in read
        ),
    )


def tilings(network: Network, cuts: tuple[str, ...]) -> dict[int, Tiling]:
    """Return the tilings that cuts like ``h4``, ``c2h2`` or ``c2/4`` say, one for each group.

    The last cut stands for all further groups. Where a group cannot be cut along an axis, or not
    into as many tiles or parts of its reduction, it is cut as far as it can be.
    """
    found = {}
    for group in network.groups:
        cut = cuts[min(group.index, len(cuts) - 1)]
        grid, _, parts = cut.partition("/")
        shape = network.tensors[group.output].shape
        able = splittable_axes(network, group)
        counts = [1] * len(shape)
        for letter, number in re.findall(r"([a-z])(\d+)", grid):
            axis = AXES[len(shape)].get(letter)
            if axis is not None and able[axis]:
                counts[axis] = min(int(number), shape[axis])
        longest = reduction_length(network, group)
        found[group.index] = Tiling(counts=tuple(counts), parts=min(int(parts or 1), longest))
    return found
