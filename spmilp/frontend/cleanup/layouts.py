"""Transpositions around chains of element-wise operators cancel: the chain keeps their layout."""

from collections.abc import Iterator

import onnx_ir as ir

ELEMENTWISE = frozenset(
    {
        *("Abs", "Ceil", "Clip", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"),
        *("LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid"),
        *("Sign", "Softplus", "Softsign", "Sqrt", "Tanh", "ThresholdedRelu", "Cast"),
        *("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"),
        *("QuantizeLinear", "DequantizeLinear"),
    }
)


def cancel_transpositions(model: ir.Model) -> bool:
    """Remove pairs of transpositions that undo each other; whether there was any.

    Between them are element-wise operators only, each with one operand beside constants of one
    element, and each with one reader.
    """
    found = False
    for last in list(model.graph):
        chain = _chain_before(last)
        if chain is None:
            continue
        first, between = chain
        source, result = first.inputs[0], between[-1].outputs[0]
        between[0].replace_input_with(_position_of_data(between[0], first.outputs[0]), source)
        for node in between:
            node.outputs[0].shape = None
        ir.convenience.replace_all_uses_with(last.outputs[0], result)
        model.graph.remove(last, safe=True)
        if not first.outputs[0].uses():
            model.graph.remove(first, safe=True)
        found = True
    return found


def _chain_before(last: ir.Node) -> tuple[ir.Node, list[ir.Node]] | None:
    """Return the transposition that ``last`` undoes, and the operators between the two."""
    if not _is(last, {"Transpose"}) or last.outputs[0].is_graph_output():
        return None
    between: list[ir.Node] = []
    for node in _upwards(last):
        if _is(node, {"Transpose"}):
            undone = _composed(_permutation(node), _permutation(last))
            return (node, between[::-1]) if between and undone else None
        between.append(node)
    return None


def _upwards(last: ir.Node) -> Iterator[ir.Node]:
    """Yield what computes the data of a node, through element-wise operators, up to another."""
    data = last.inputs[0]
    while data is not None and not data.is_graph_output():
        node = data.producer()
        if node is not None and _is(node, {"Transpose"}):
            yield node
            return
        if node is None or not _is(node, ELEMENTWISE) or len(data.uses()) != 1:
            return
        operands = [value for value in node.inputs if value is not None and not _is_single(value)]
        if len(operands) != 1 or len(node.outputs) != 1:
            return
        yield node
        data = operands[0]


def _is(node: ir.Node, kinds: set[str] | frozenset[str]) -> bool:
    return node.domain == "" and node.op_type in kinds


def _is_single(value: ir.Value) -> bool:
    """Return whether a value is a constant of one element, of which the shape adds no axes."""
    return value.const_value is not None and value.const_value.size == 1


def _position_of_data(node: ir.Node, data: ir.Value) -> int:
    return next(position for position, value in enumerate(node.inputs) if value is data)


def _permutation(node: ir.Node) -> tuple[int, ...]:
    """Return the axes of a transposition; none where the node leaves them out."""
    given = node.attributes.get("perm")
    return tuple(given.as_ints()) if given is not None else ()


def _composed(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Return whether one transposition undoes another."""
    if not first or not second:
        return first == second
    return [first[axis] for axis in second] == list(range(len(first)))
