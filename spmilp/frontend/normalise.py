"""Nodes become operators: explicit attributes, integers that only say *how* as attributes."""

from itertools import pairwise

from spmilp.frontend.graph import Operator
from spmilp.frontend.node import Node
from spmilp.frontend.rules import ONE_INPUT, RULES, positive_axis


def normalise(node: Node) -> tuple[Operator, ...]:
    """Return the operators that stand for a node; all but Split are one.

    Raises
    ------
    ValueError
        If the node cannot be lowered; the message is the reason.
    """
    if node.kind == "Split":
        return _split(node)
    for position in range(1, len(node.outputs())):
        if node.uses_output(position):
            raise ValueError(f"its output {position} is used; only the first is supported")
    attributes = dict(node.attributes)
    if node.kind in RULES:
        RULES[node.kind](node, attributes)
    alone = node.kind in ONE_INPUT or (node.kind == "Gather" and "indices" in attributes)
    inputs = node.input_names(1 if alone else None)
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    output = node.outputs()[0]
    return (
        Operator(
            name=node.name, kind=node.kind, inputs=inputs, output=output, attributes=attributes
        ),
    )


def _split(node: Node) -> tuple[Operator, ...]:
    """Return one Slice for each output of a Split that is used."""
    axis = positive_axis(node.integer("axis"), len(node.shape(0)))
    ends = [0]
    for position in range(len(node.outputs())):
        ends.append(ends[-1] + node.output_shape(position)[axis])
    return tuple(
        Operator(
            name=f"{node.name}:{position}",
            kind="Slice",
            inputs=node.input_names(1),
            output=output,
            attributes={"starts": (start,), "ends": (end,), "axes": (axis,), "steps": (1,)},
        )
        for position, (output, (start, end)) in enumerate(
            zip(node.outputs(), pairwise(ends), strict=True)
        )
        if node.uses_output(position)
    )
